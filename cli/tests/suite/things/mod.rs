//! Listing, adding and changing hosts, methods, plans and segments.

mod hosts;
mod importing;
mod methods;
mod segments;

use serde_json::{Value, json};

fn host(name: &str) -> Value {
    json!({
        "id": name, "name": name, "segment": "default", "backend": "none", "zone": "default",
        "parameters": {"bmc": {"ip": "192.0.2.1"}}, "failure_state": "UP", "fencing_state": "UNFENCED", "generation": 0,
        "operation": null, "created_at": "2026-01-31T12:00:00Z",
    })
}
