//! Events of Kubernetes, on the node and its `NodeFence`, for what happens to a host.

use std::time::Duration;

use chrono::{SecondsFormat, TimeDelta};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PostParams};
use ringfence_core::{EventKind, error_chain};
use ringfence_db::EventRow;
use ringfence_engine::{EngineError, Listener};
use serde_json::{Value, json};

use crate::OperatorError;
use crate::door::{Door, WRITER};
use crate::node_fence;
use crate::text::cut_bytes;

/// Where Events of objects without a namespace are: releases before 1.21 take them in no other one, and all that show them look in all.
const NAMESPACE: &str = "kube-system";
const ACTION: &str = "Fencing";
/// The longest note that Kubernetes takes, in bytes.
const NOTE: usize = 1024;
/// What is older is not told any more: an API server that was away is not flooded.
pub(crate) const TOLD_FOR: TimeDelta = TimeDelta::minutes(5);
const PAUSE: Duration = Duration::from_secs(1);

/// An Event to be written.
#[derive(Debug)]
pub(crate) struct Told {
    pub is_warning: bool,
    pub reason: String,
    pub note: String,
}

/// Tells the cluster what happens to its hosts, until it is dropped.
pub(crate) async fn tell(door: Door, mut listener: Listener) {
    let mut is_failing = false;
    loop {
        match listener.next().await {
            Ok(row) => {
                let told = tell_one(&door, &row).await;
                let was_failing = std::mem::replace(&mut is_failing, told.is_err());
                if let Err(error) = told
                    && !was_failing
                {
                    let (cluster, error) = (&door.cluster, error_chain(&error));
                    tracing::warn!(cluster, error, "an Event of the cluster could not be written");
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
    let id = row.event.id;
    publish_once(door, &format!("ringfence.{id}.node"), &event, &of_node(&node)).await?;
    let object = door.call(node_fence::api(&door.client).get_opt(&node)).await?;
    if let Some(uid) = object.and_then(|object| object.metadata.uid) {
        let on_fence = of_node_fence(&node, &uid);
        publish_once(door, &format!("ringfence.{id}.nodefence"), &event, &on_fence).await?;
    }
    Ok(())
}

/// Writes an Event on an object of this namespace; `None` for an object without one.
pub(crate) async fn publish_in(
    door: &Door,
    namespace: Option<&str>,
    told: &Told,
    regarding: &Value,
) -> Result<(), OperatorError> {
    create(door, namespace, None, told, regarding).await
}

/// Writes an Event of this name on an object without a namespace, unless the cluster has one of this name already.
pub(crate) async fn publish_once(
    door: &Door,
    name: &str,
    told: &Told,
    regarding: &Value,
) -> Result<(), OperatorError> {
    match create(door, None, Some(name), told, regarding).await {
        Err(error) if error.is_overtaken() => Ok(()),
        done => done,
    }
}

async fn create(
    door: &Door,
    namespace: Option<&str>,
    name: Option<&str>,
    told: &Told,
    regarding: &Value,
) -> Result<(), OperatorError> {
    let kind = GroupVersionKind::gvk("events.k8s.io", "v1", "Event");
    let kind = ApiResource::from_gvk_with_plural(&kind, "events");
    let events: Api<DynamicObject> =
        Api::namespaced_with(door.client.clone(), namespace.unwrap_or(NAMESPACE), &kind);
    let mut event = DynamicObject::new("", &kind).data(json!({
        "eventTime": door.now().to_rfc3339_opts(SecondsFormat::Micros, true),
        "reportingController": format!("ringfence.io/{WRITER}"),
        "reportingInstance": WRITER,
        "action": ACTION,
        "reason": told.reason,
        "type": if told.is_warning { "Warning" } else { "Normal" },
        "note": cut_bytes(&told.note, NOTE),
        "regarding": regarding,
    }));
    event.metadata.name = name.map(str::to_owned);
    event.metadata.generate_name = name.is_none().then(|| "ringfence-".to_owned());
    door.call(events.create(&PostParams::default(), &event))
        .await
        .map(drop)
}

/// Kubelets name their node so; the node's own uid is not needed.
pub(crate) fn of_node(node: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "name": node, "uid": node })
}

pub(crate) fn of_node_fence(node: &str, uid: &str) -> Value {
    let kind = node_fence::kind();
    json!({ "apiVersion": kind.api_version, "kind": kind.kind, "name": node, "uid": uid })
}

/// An event of the engine as one of Kubernetes; `None` for one that people do not look for on a node.
fn event(kind: EventKind, data: &Value) -> Option<Told> {
    let text = |field: &str| data[field].as_str().unwrap_or("?");
    let of = |what: &str| match text("kind") {
        "fence" => format!("Fence{what}"),
        "rejoin" => format!("Rejoin{what}"),
        _ => format!("Evacuation{what}"),
    };
    let generation = data["generation"].as_u64().unwrap_or_default();
    let (is_warning, reason, note) = match kind {
        EventKind::HostFailureState => (
            false,
            "FailureStateChanged".to_owned(),
            format!("the node is {}, as {} has seen it", text("to"), text("source")),
        ),
        EventKind::OperationStarted => (
            false,
            of("Started"),
            format!(
                "generation {generation}, asked for by {}: {}",
                text("requested_by"),
                text("reason")
            ),
        ),
        EventKind::OperationProof => (
            false,
            "Proven".to_owned(),
            format!(
                "{} by {}: {}",
                data["proof"]["kind"].as_str().unwrap_or("?"),
                data["proof"]["source"].as_str().unwrap_or("?"),
                data["proof"]["detail"].as_str().unwrap_or("?")
            ),
        ),
        EventKind::HostFenced => (
            false,
            "Fenced".to_owned(),
            format!("generation {generation} is proven: the node's pods may be started elsewhere"),
        ),
        EventKind::HostUnfenced => (
            false,
            "Unfenced".to_owned(),
            format!("the node was taken back, generation {generation}: it may run pods again"),
        ),
        EventKind::HostCondition => (
            data["action"].is_string(),
            "Condition".to_owned(),
            format!(
                "{} is {}: {}",
                data["condition"].as_str().unwrap_or("?"),
                data["status"].as_str().unwrap_or("?"),
                data["action"]
                    .as_str()
                    .unwrap_or("nothing is done about it any more")
            ),
        ),
        EventKind::HostQuarantined => {
            let (fences, within_s) = (&data["fences"], &data["within_s"]);
            let note = format!(
                "the node was fenced {fences} times within {within_s} s: it is taken back only when a rejoin is asked for"
            );
            (true, "Quarantined".to_owned(), note)
        }
        EventKind::HostQuarantineEnded => {
            let note = format!("by {}: {}", text("by"), text("reason"));
            (false, "QuarantineEnded".to_owned(), note)
        }
        EventKind::HostAlarmBegan => (true, "AlarmBegan".to_owned(), alarm(data)),
        EventKind::HostAlarmEnded => (false, "AlarmEnded".to_owned(), alarm(data)),
        EventKind::HostKdumpBegan => (
            true,
            "KdumpBegan".to_owned(),
            "the node's kernel has crashed, and the node writes a dump".to_owned(),
        ),
        EventKind::HostKdumpEnded => (
            false,
            "KdumpEnded".to_owned(),
            "no message of the node's crash dump comes any more".to_owned(),
        ),
        EventKind::HostSuspended => {
            let until = data["until"].as_str().unwrap_or("an operator resumes it");
            let note = format!("until {until}, by {}: {}", text("by"), text("reason"));
            (false, "Suspended".to_owned(), note)
        }
        EventKind::HostResumed => {
            let note = format!("by {}: {}", text("by"), text("reason"));
            (false, "Resumed".to_owned(), note)
        }
        EventKind::HostLeftOff => (
            true,
            "LeftOff".to_owned(),
            "the node's power was not read as on again".to_owned(),
        ),
        EventKind::OperationNeedsOperator => (true, of("NeedsOperator"), text("detail").to_owned()),
        EventKind::OperationHeld => (true, of("Held"), text("detail").to_owned()),
        EventKind::OperationReleased => (false, of("Released"), text("detail").to_owned()),
        EventKind::OperationRestarted => (false, of("Restarted"), format!("generation {generation}")),
        EventKind::OperationSucceeded => (false, of("Succeeded"), text("detail").to_owned()),
        EventKind::OperationCancelled => (true, of("Cancelled"), text("detail").to_owned()),
        EventKind::WorkloadNotMoved => (
            true,
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
    Some(Told {
        is_warning,
        reason,
        note: cut_bytes(&note, NOTE),
    })
}

/// What comes too often, or did.
fn alarm(data: &Value) -> String {
    let problem = data["condition"].as_str().or(data["problem"].as_str());
    let [count, times, within_s] = ["count", "times", "within_s"].map(|field| &data[field]);
    format!(
        "{}: {count} times within {within_s} s; the alarm is for {times}",
        problem.unwrap_or("?")
    )
}

#[cfg(test)]
mod tests {
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
            assert!(event.note.len() <= 1024, "{kind}");
            assert!(event.reason.len() <= 128, "{kind}");
        }
    }

    #[test]
    fn a_proof_tells_what_was_read_and_by_what() {
        let data = json!({ "proof": { "kind": "power.off", "source": "bmc", "detail": "off" } });
        let event = event(EventKind::OperationProof, &data).unwrap();
        assert_eq!(event.note, "power.off by bmc: off");
    }
}
