//! An event as it is told: CloudEvents 1.0, structured JSON.

use ringfence_db::EventRow;
use serde_json::{Value, json};

/// The content type of the structured form.
pub(super) const CONTENT_TYPE: &str = "application/cloudevents+json; charset=utf-8";

/// The event with its number, as `GET /events` shows it.
fn data(row: &EventRow) -> Value {
    let event = &row.event;
    let host = event.host.as_ref();
    json!({
        "sequence": row.sequence,
        "id": event.id,
        "type": event.kind.as_str(),
        "host": host.map(|host| &host.name),
        "host_id": host.map(|host| host.id),
        "host_sequence": host.map(|host| host.sequence),
        "segment": row.segment,
        "generation": host.map(|host| host.generation),
        "occurred_at": event.occurred_at,
        "data": event.data,
    })
}

/// An event as a CloudEvent of this source. `sequence` is text that sorts as the numbers do (the extension of that name);
/// `partitionkey` is the host's id: what has the same one comes in order.
#[must_use]
pub fn cloud_event(row: &EventRow, source: &str) -> Value {
    let event = &row.event;
    let mut document = json!({
        "specversion": "1.0",
        "id": event.id,
        "source": source,
        "type": format!("ringfence.{}", event.kind),
        "time": event.occurred_at,
        "datacontenttype": "application/json",
        "sequence": format!("{:020}", row.sequence),
        "data": data(row),
    });
    if let Some(host) = &event.host {
        document["subject"] = json!(host.name);
        document["partitionkey"] = json!(host.id);
    }
    document
}

/// What a test call says.
pub(super) fn test_event(id: uuid::Uuid, at: ringfence_core::Timestamp, source: &str, name: &str) -> Value {
    json!({
        "specversion": "1.0",
        "id": id,
        "source": source,
        "type": "ringfence.test",
        "time": at,
        "datacontenttype": "application/json",
        "data": { "subscription": name },
    })
}
