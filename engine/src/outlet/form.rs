//! Events as each kind of listener wants them.

use ringfence_bus::Announcement;
use ringfence_core::EventKind;
use ringfence_db::EventRow;
use serde_json::{Value, json};

use super::OutletForm;
use crate::webhooks::cloud_event;

/// The event as it is told.
pub(super) fn announcement(form: &OutletForm, row: &EventRow, source: &str) -> Announcement {
    match form {
        OutletForm::CloudEvents => Announcement {
            id: row.event.id,
            routing_key: routing_key(row),
            kind: format!("ringfence.{}", row.event.kind),
            content_type: "application/cloudevents+json",
            body: cloud_event(row, source).to_string().into_bytes(),
        },
        OutletForm::Oslo { topic, publisher_id } => {
            let priority = priority(row.event.kind);
            Announcement {
                id: row.event.id,
                routing_key: format!("{topic}.{}", priority.to_ascii_lowercase()),
                kind: format!("ringfence.{}", row.event.kind),
                content_type: "application/json",
                body: envelope(&notification(row, source, publisher_id, priority)),
            }
        }
    }
}

/// A word of a routing key: a dot would begin another one.
fn word(name: &str) -> String {
    name.replace('.', "_")
}

fn routing_key(row: &EventRow) -> String {
    let kind = row.event.kind;
    match (&row.event.host, &row.segment) {
        (Some(_), Some(segment)) => format!("host.{}.{kind}", word(segment)),
        // The segment has been removed since.
        (Some(_), None) => format!("host._.{kind}"),
        (None, _) => {
            let name = row.event.data["subscription"].as_str().unwrap_or("_");
            format!("subscription.{}.{kind}", word(name))
        }
    }
}

fn priority(kind: EventKind) -> &'static str {
    match kind {
        EventKind::OperationNeedsOperator | EventKind::WorkloadNotMoved | EventKind::SubscriptionDisabled => {
            "ERROR"
        }
        EventKind::HostCreated
        | EventKind::HostUpdated
        | EventKind::HostDeleted
        | EventKind::HostFailureState
        | EventKind::HostFenced
        | EventKind::HostUnfenced
        | EventKind::OperationStarted
        | EventKind::OperationProof
        | EventKind::OperationRestarted
        | EventKind::OperationSucceeded
        | EventKind::OperationCancelled
        | EventKind::WorkloadMoving
        | EventKind::WorkloadMoved => "INFO",
    }
}

/// The fields that oslo.messaging gives a notification. `_unique_id` is what its consumers tell doubles by.
fn notification(row: &EventRow, source: &str, publisher_id: &str, priority: &str) -> Value {
    let event = &row.event;
    json!({
        "message_id": event.id,
        "publisher_id": publisher_id,
        "event_type": format!("ringfence.{}", event.kind),
        "priority": priority,
        "payload": cloud_event(row, source)["data"],
        "timestamp": event.occurred_at.format("%Y-%m-%d %H:%M:%S%.6f").to_string(),
        "_unique_id": event.id.simple().to_string(),
    })
}

/// Version 2 of oslo.messaging's envelope: the message is text within.
fn envelope(message: &Value) -> Vec<u8> {
    json!({ "oslo.version": "2.0", "oslo.message": message.to_string() })
        .to_string()
        .into_bytes()
}
