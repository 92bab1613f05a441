//! Events of Kubernetes, on the node and its `NodeFence`, for what happens to a host.

use std::time::Duration;

use chrono::TimeDelta;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::runtime::events::{Event as KubeEvent, EventType, Recorder, Reporter};
use ringfence_core::{EventKind, error_chain};
use ringfence_db::EventRow;
use ringfence_engine::{EngineError, Listener};
use serde_json::Value;

use crate::OperatorError;
use crate::door::{Door, WRITER};
use crate::node_fence;
use crate::text::cut;

/// The longest note that Kubernetes takes, in bytes; a character has four at most.
const NOTE: usize = 256;
/// What is older is not told any more: an API server that was away is not flooded.
const TOLD_FOR: TimeDelta = TimeDelta::minutes(5);
const PAUSE: Duration = Duration::from_secs(1);

/// Tells the cluster what happens to its hosts, until it is dropped.
pub(crate) async fn tell(door: Door, mut listener: Listener) {
    loop {
        match listener.next().await {
            Ok(row) => {
                if let Err(error) = tell_one(&door, &row).await {
                    let cluster = &door.cluster;
                    tracing::debug!(
                        cluster,
                        error = error_chain(&error),
                        "an Event could not be written"
                    );
                }
            }
            Err(EngineError::EventsGone { up_to, .. }) => listener = door.engine.listen_within(up_to),
            Err(error) => {
                tracing::warn!(error = error_chain(&error), "the events cannot be read");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn tell_one(door: &Door, row: &EventRow) -> Result<(), OperatorError> {
    let Some(host) = &row.event.host else {
        return Ok(());
    };
    if door.now() - row.event.occurred_at > TOLD_FOR {
        return Ok(());
    }
    let Some(event) = event(row.event.kind, &row.event.data) else {
        return Ok(());
    };
    let Some(node) = door.node_of(host.id).await? else {
        return Ok(());
    };
    publish(door, &event, &of_node(&node)).await?;
    let object = door.call(node_fence::api(&door.client).get_opt(&node)).await?;
    if let Some(uid) = object.and_then(|object| object.metadata.uid) {
        publish(door, &event, &of_node_fence(&node, uid)).await?;
    }
    Ok(())
}

/// Each event is written as one of its own: a recorder that remembers would count two with different notes as one.
async fn publish(door: &Door, event: &KubeEvent, of: &ObjectReference) -> Result<(), OperatorError> {
    let reporter = Reporter {
        controller: format!("ringfence.io/{WRITER}"),
        instance: Some(WRITER.to_owned()),
    };
    let recorder = Recorder::new(door.client.clone(), reporter);
    door.call(recorder.publish(event, of)).await
}

/// Kubelets name their node so; the node's own uid is not needed.
fn of_node(node: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Node".to_owned()),
        name: Some(node.to_owned()),
        uid: Some(node.to_owned()),
        ..ObjectReference::default()
    }
}

fn of_node_fence(node: &str, uid: String) -> ObjectReference {
    let kind = node_fence::kind();
    ObjectReference {
        api_version: Some(kind.api_version),
        kind: Some(kind.kind),
        name: Some(node.to_owned()),
        uid: Some(uid),
        ..ObjectReference::default()
    }
}

/// An event of the engine as one of Kubernetes; `None` for one that people do not look for on a node.
fn event(kind: EventKind, data: &Value) -> Option<KubeEvent> {
    let text = |field: &str| data[field].as_str().unwrap_or("?");
    let of = |what: &str| match text("kind") {
        "fence" => format!("Fence{what}"),
        "rejoin" => format!("Rejoin{what}"),
        _ => format!("Evacuation{what}"),
    };
    let generation = data["generation"].as_u64().unwrap_or_default();
    let (type_, reason, note) = match kind {
        EventKind::HostFailureState => (
            EventType::Normal,
            "FailureStateChanged".to_owned(),
            format!("the node is {}, as {} has seen it", text("to"), text("source")),
        ),
        EventKind::OperationStarted => (
            EventType::Normal,
            of("Started"),
            format!(
                "generation {generation}, asked for by {}: {}",
                text("requested_by"),
                text("reason")
            ),
        ),
        EventKind::OperationProof => (
            EventType::Normal,
            "Proven".to_owned(),
            format!(
                "{} by {}: {}",
                data["proof"]["kind"].as_str().unwrap_or("?"),
                data["proof"]["source"].as_str().unwrap_or("?"),
                data["proof"]["detail"].as_str().unwrap_or("?")
            ),
        ),
        EventKind::HostFenced => (
            EventType::Normal,
            "Fenced".to_owned(),
            format!("generation {generation} is proven: the node's pods may be started elsewhere"),
        ),
        EventKind::HostUnfenced => (
            EventType::Normal,
            "Unfenced".to_owned(),
            format!("the node was taken back, generation {generation}: it may run pods again"),
        ),
        EventKind::HostLeftOff => (
            EventType::Warning,
            "LeftOff".to_owned(),
            "the node's power was not read as on again".to_owned(),
        ),
        EventKind::OperationNeedsOperator => {
            (EventType::Warning, of("NeedsOperator"), text("detail").to_owned())
        }
        EventKind::OperationRestarted => (
            EventType::Normal,
            of("Restarted"),
            format!("generation {generation}"),
        ),
        EventKind::OperationSucceeded => (EventType::Normal, of("Succeeded"), text("detail").to_owned()),
        EventKind::OperationCancelled => (EventType::Warning, of("Cancelled"), text("detail").to_owned()),
        EventKind::WorkloadNotMoved => (
            EventType::Warning,
            "PodNotDeleted".to_owned(),
            "a pod of the node could not be deleted; see the evacuation".to_owned(),
        ),
        EventKind::HostCreated
        | EventKind::HostUpdated
        | EventKind::HostDeleted
        | EventKind::WorkloadMoving
        | EventKind::WorkloadMoved
        | EventKind::SubscriptionDisabled => return None,
    };
    Some(KubeEvent {
        type_,
        reason,
        note: Some(cut(&note, NOTE)),
        action: "Fencing".to_owned(),
        secondary: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_event_of_a_host_fits_what_kubernetes_takes() {
        let long = "ü".repeat(3000);
        let data = json!({
            "kind": "fence", "generation": 7, "requested_by": long, "reason": long, "detail": long, "to": "UP", "source": long,
            "proof": { "kind": "power.off", "source": long, "detail": long },
        });
        for kind in EventKind::ALL {
            let Some(event) = event(*kind, &data) else {
                continue;
            };
            assert!(event.note.is_some_and(|note| note.len() <= 1024), "{kind}");
            assert!(event.reason.len() <= 128 && !event.action.is_empty(), "{kind}");
        }
    }

    #[test]
    fn a_proof_tells_what_was_read_and_by_what() {
        let data = json!({ "proof": { "kind": "power.off", "source": "bmc", "detail": "off" } });
        let event = event(EventKind::OperationProof, &data).unwrap();
        assert_eq!(event.note.as_deref(), Some("power.off by bmc: off"));
    }
}
