//! What the API server was told to change, as it writes it down itself.

use std::path::Path;

use serde_json::{Value, json};

use crate::error::{During, LabError};

/// A change that the API server was asked for and has answered.
#[derive(Clone, Debug)]
pub struct AuditedCall {
    /// When it was answered, by this machine's clock, as in `2026-01-01T00:00:00.000000Z`.
    pub at: String,
    /// Who has asked.
    pub user: String,
    /// `patch`, `update`, `delete` and so on.
    pub verb: String,
    /// The sort of the object, as in `nodes`.
    pub resource: String,
    /// The object's name.
    pub name: String,
    /// The HTTP status.
    pub code: u64,
    /// The body of the request: for a deletion, its `DeleteOptions`.
    pub request: Value,
    /// The body of the answer: for a change, the object after it.
    pub response: Value,
}

/// All changes of nodes but those of their status, and all deletions of pods and attachments.
pub(super) fn policy() -> String {
    let rule = |verbs: &[&str], group: &str, resources: &[&str]| {
        json!({
            "level": "RequestResponse",
            "verbs": verbs,
            "resources": [{"group": group, "resources": resources}],
            "omitStages": ["RequestReceived"],
        })
    };
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [
            rule(&["create", "update", "patch", "delete"], "", &["nodes"]),
            rule(&["delete"], "", &["pods"]),
            rule(&["delete"], "storage.k8s.io", &["volumeattachments"]),
            {"level": "None"},
        ],
    })
    .to_string()
}

/// Reads the API server's list, the oldest call first. A line that is being written is left out.
pub(super) fn read(list: &Path) -> Result<Vec<AuditedCall>, LabError> {
    let text = std::fs::read_to_string(list).during(|| format!("reading {}", list.display()))?;
    let calls = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    Ok(calls.map(call).collect())
}

fn call(mut entry: Value) -> AuditedCall {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    AuditedCall {
        at: text(&entry["stageTimestamp"]),
        user: text(&entry["user"]["username"]),
        verb: text(&entry["verb"]),
        resource: text(&entry["objectRef"]["resource"]),
        name: text(&entry["objectRef"]["name"]),
        code: entry["responseStatus"]["code"].as_u64().unwrap_or_default(),
        request: entry["requestObject"].take(),
        response: entry["responseObject"].take(),
    }
}
