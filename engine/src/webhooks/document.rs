//! An event as it is told: CloudEvents 1.0, structured JSON.

use ringfence_core::{MessageFormat, Subscription, Timestamp};
use ringfence_db::EventRow;
use serde_json::{Value, json};
use uuid::Uuid;

use super::chat::Message;

/// The content type of the structured form.
const CLOUD_EVENT: &str = "application/cloudevents+json; charset=utf-8";

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
/// `partitionkey` is the host's id: events of one host come in order.
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

/// An event in the form that the subscription's receiver takes.
pub(super) fn document(row: &EventRow, source: &str, subscription: &Subscription) -> Value {
    match subscription.format {
        MessageFormat::CloudEvents => cloud_event(row, source),
        format => Message::of_event(row).document(format),
    }
}

/// A test call in that form.
pub(super) fn test_document(id: Uuid, at: Timestamp, source: &str, subscription: &Subscription) -> Value {
    match subscription.format {
        MessageFormat::CloudEvents => test_event(id, at, source, &subscription.name),
        format => Message::of_test(&subscription.name).document(format),
    }
}

/// The content type of a form.
pub(super) fn content_type(format: MessageFormat) -> &'static str {
    match format {
        MessageFormat::CloudEvents => CLOUD_EVENT,
        MessageFormat::Slack | MessageFormat::Mattermost | MessageFormat::Teams => "application/json",
    }
}

fn test_event(id: Uuid, at: Timestamp, source: &str, name: &str) -> Value {
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
