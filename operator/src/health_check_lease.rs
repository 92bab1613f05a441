//! The lease by which programs of medik8s keep each other from one node: held while Ringfence fences on its own.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use ringfence_core::Timestamp;
use serde_json::{Value, json};

use crate::OperatorError;
use crate::door::{Door, WRITER};

const NAMESPACE: &str = "medik8s-leases";
/// How long it counts without being written again. A host that is FENCED is looked at once a minute.
const SECONDS: i64 = 180;
/// It is written again when a third of that has passed.
const WRITTEN_AGAIN_AFTER: TimeDelta = TimeDelta::seconds(SECONDS / 3);

/// What is to be done with a lease.
#[derive(Debug, PartialEq, Eq)]
enum Wanted {
    /// It is held by another, or was written just now.
    Nothing,
    Make,
    Write,
}

fn leases(door: &Door) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
    let kind = ApiResource::from_gvk_with_plural(&kind, "leases");
    Api::namespaced_with(door.client.clone(), NAMESPACE, &kind)
}

/// Takes or keeps the lease of a node. One that another program holds is left to it: its remediation joins the fence.
pub(crate) async fn hold(door: &Door, node: &str) -> Result<(), OperatorError> {
    or_not_there(try_to_hold(door, node).await)
}

/// Gives the lease of a node back.
pub(crate) async fn give_back(door: &Door, node: &str) -> Result<(), OperatorError> {
    or_not_there(try_to_give_back(door, node).await)
}

async fn try_to_hold(door: &Door, node: &str) -> Result<(), OperatorError> {
    let (leases, name) = (leases(door), format!("node-{node}"));
    let known = door.call(leases.get_opt(&name)).await?;
    let now = door.now();
    let spec = json!({
        "holderIdentity": WRITER,
        "leaseDurationSeconds": SECONDS,
        "renewTime": now.to_rfc3339_opts(SecondsFormat::Micros, true),
    });
    match wanted(known.as_ref().map(|lease| &lease.data["spec"]), now) {
        Wanted::Nothing => Ok(()),
        Wanted::Make => {
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec,
            });
            let Ok(lease) = serde_json::from_value(lease) else {
                return Ok(());
            };
            door.call(leases.create(&PostParams::default(), &lease))
                .await
                .map(drop)
        }
        Wanted::Write => {
            let version = known.and_then(|lease| lease.metadata.resource_version);
            let change = json!({ "metadata": { "resourceVersion": version }, "spec": spec });
            door.merge(&leases, &name, &change).await.map(drop)
        }
    }
}

async fn try_to_give_back(door: &Door, node: &str) -> Result<(), OperatorError> {
    let (leases, name) = (leases(door), format!("node-{node}"));
    let Some(known) = door.call(leases.get_opt(&name)).await? else {
        return Ok(());
    };
    if known.data["spec"]["holderIdentity"] != WRITER {
        return Ok(());
    }
    let change = json!({
        "metadata": { "resourceVersion": known.metadata.resource_version },
        "spec": { "holderIdentity": null, "leaseDurationSeconds": null, "renewTime": null },
    });
    door.merge(&leases, &name, &change).await.map(drop)
}

/// What is to be done with a lease whose spec is this.
fn wanted(spec: Option<&Value>, now: Timestamp) -> Wanted {
    let Some(spec) = spec else { return Wanted::Make };
    let renewed = spec["renewTime"]
        .as_str()
        .and_then(|at| DateTime::parse_from_rfc3339(at).ok());
    let renewed = renewed.map(|at| at.with_timezone(&Utc));
    let is_ours = spec["holderIdentity"] == WRITER;
    let is_held = spec["holderIdentity"]
        .as_str()
        .is_some_and(|holder| !holder.is_empty());
    let counts_for = TimeDelta::seconds(
        spec["leaseDurationSeconds"]
            .as_i64()
            .unwrap_or_default()
            .clamp(0, 86_400),
    );
    let lasts = if is_ours { WRITTEN_AGAIN_AFTER } else { counts_for };
    match renewed {
        Some(at) if is_held && now < at + lasts => Wanted::Nothing,
        Some(_) | None => Wanted::Write,
    }
}

/// Where there is no such namespace, or the right is not given, nothing of medik8s is there.
fn or_not_there(done: Result<(), OperatorError>) -> Result<(), OperatorError> {
    match done {
        Err(error) if error.is_not_found() || error.is_denied() => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, seconds_ago: i64, now: Timestamp) -> Value {
        let at = now - TimeDelta::seconds(seconds_ago);
        json!({
            "holderIdentity": holder, "leaseDurationSeconds": 660,
            "renewTime": at.to_rfc3339_opts(SecondsFormat::Micros, true),
        })
    }

    #[test]
    fn a_lease_that_another_program_holds_is_left_to_it_until_it_runs_out() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        let theirs = |ago| wanted(Some(&lease("NodeHealthCheck-workers", ago, now)), now);
        assert_eq!(theirs(659), Wanted::Nothing);
        assert_eq!(theirs(661), Wanted::Write);
        assert_eq!(
            wanted(Some(&json!({ "holderIdentity": "x" })), now),
            Wanted::Write
        );
    }

    #[test]
    fn our_own_lease_is_written_again_in_time() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        assert_eq!(wanted(None, now), Wanted::Make);
        assert_eq!(wanted(Some(&lease(WRITER, 59, now)), now), Wanted::Nothing);
        assert_eq!(wanted(Some(&lease(WRITER, 61, now)), now), Wanted::Write);
    }
}
