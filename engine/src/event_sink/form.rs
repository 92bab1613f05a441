//! Events as each kind of listener wants them.

use ringfence_bus::Announcement;
use ringfence_core::EventKind;
use ringfence_db::EventRow;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::SinkForm;
use crate::webhooks::cloud_event;

/// The event as it is told.
pub(super) fn announcement(form: &SinkForm, row: &EventRow, source: &str) -> Announcement {
    match form {
        SinkForm::CloudEvents => Announcement {
            id: row.event.id,
            routing_key: routing_key(row),
            kind: format!("ringfence.{}", row.event.kind),
            content_type: "application/cloudevents+json",
            body: cloud_event(row, source).to_string().into_bytes(),
        },
        SinkForm::Oslo { topic, publisher_id } => {
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

/// The longest word that a name makes, in bytes. With what stands around it no key has more than the 255 that AMQP allows.
const MAX_WORD: usize = 200;
/// Characters of the digest that a shortened name ends with.
const DIGEST: usize = 32;

/// A word of a routing key: a dot would begin another one. A name that is too long keeps its beginning and ends with `~`, which no name
/// has, and with a digest of all of it.
fn word(name: &str) -> String {
    let word = name.replace('.', "_");
    if word.len() <= MAX_WORD {
        return word;
    }
    let digest: String = Sha256::digest(name.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let kept: String = word.chars().take(MAX_WORD - DIGEST - 1).collect();
    format!("{kept}~{}", digest.get(..DIGEST).unwrap_or(&digest))
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
        | EventKind::HostCondition
        | EventKind::HostQuarantined
        | EventKind::HostQuarantineEnded
        | EventKind::HostAlarmBegan
        | EventKind::HostAlarmEnded
        | EventKind::HostKdumpBegan
        | EventKind::HostKdumpEnded
        | EventKind::HostSuspended
        | EventKind::HostResumed
        | EventKind::HostFenced
        | EventKind::HostUnfenced
        | EventKind::HostLeftOff
        | EventKind::OperationStarted
        | EventKind::OperationHeld
        | EventKind::OperationReleased
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

#[cfg(test)]
mod tests {
    use ringfence_core::{Generation, HostId, SegmentId, Timestamp};
    use ringfence_db::{EventHost, NewEvent};
    use uuid::Uuid;

    use super::*;

    fn row(kind: EventKind, segment: Option<&str>, data: Value) -> EventRow {
        let host = EventHost {
            id: HostId(Uuid::nil()),
            name: "h1".to_owned(),
            segment_id: SegmentId(Uuid::nil()),
            sequence: 1,
            generation: Generation(1),
        };
        EventRow {
            sequence: 1,
            event: NewEvent {
                id: Uuid::nil(),
                host: (kind != EventKind::SubscriptionDisabled).then_some(host),
                kind,
                occurred_at: Timestamp::UNIX_EPOCH,
                data,
            },
            segment: segment.map(ToOwned::to_owned),
        }
    }

    #[test]
    fn the_routing_key_of_an_event_with_any_name_fits() {
        let name = "s".repeat(ringfence_core::MAX_NAME_CHARS);
        for kind in EventKind::ALL {
            let key = routing_key(&row(*kind, Some(&name), json!({ "subscription": name })));
            assert!(
                key.len() <= 255 && key.ends_with(kind.as_str()),
                "{} {key}",
                key.len()
            );
        }
    }

    #[test]
    fn a_shortened_name_is_stable_and_unique() {
        assert_eq!(word("rack.2"), "rack_2");
        assert_eq!(word(&"s".repeat(200)), "s".repeat(200));
        // The beginning of the output of `printf %s NAME | sha256sum`.
        let long = "s".repeat(201);
        let expected = format!("{}~{DIGEST_OF_201}", "s".repeat(167));
        assert_eq!(word(&long), expected);
        let others = [
            "s".repeat(202),
            format!("{}t", "s".repeat(200)),
            format!("{}.s", "s".repeat(199)),
        ];
        for other in &others {
            assert_ne!(word(other), word(&long));
            assert!(ringfence_core::validate_name("name", &word(other)).is_err());
        }
    }

    const DIGEST_OF_201: &str = "74b5c10a8aca9ec209ac84937fefc96d";
}
