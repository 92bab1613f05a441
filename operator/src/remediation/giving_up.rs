//! A machine of Cluster API that is to be replaced is left to its owner.
//!
//! The owner deletes the machine and its node, and with the node its pods: so only while the host is FENCED, by proofs that hold.

use chrono::SecondsFormat;
use kube::core::ObjectMeta;
use ringfence_core::Timestamp;
use serde_json::{Value, json};

use super::target::{machine, machines};
use crate::OperatorError;
use crate::door::Door;
use crate::refusal::Why;
use crate::text::{MESSAGE, cut};

/// The condition by which the owner of a machine is told to replace it.
const OWNER_REMEDIATED: &str = "OwnerRemediated";
const REASON: &str = "WaitingForRemediation";
const CLUSTER_API: &str = "cluster.x-k8s.io/";

/// Tells the owner of the remediation's machine, if it has one.
pub(super) async fn give_up(
    door: &Door,
    namespace: &str,
    of: &ObjectMeta,
    why: &Why,
) -> Result<(), OperatorError> {
    let Some(machine) = machine(of).filter(|machine| machine.api_version.starts_with(CLUSTER_API)) else {
        return Ok(());
    };
    let api = machines(door, namespace, machine);
    let Some(found) = door.call(api.get_opt(&machine.name)).await? else {
        return Ok(());
    };
    let known = found.data["status"]["conditions"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let Some(conditions) = with_given_up(known, why, door.now()) else {
        return Ok(());
    };
    let change = json!({
        "metadata": { "resourceVersion": found.metadata.resource_version },
        "status": { "conditions": conditions },
    });
    door.merge_into_status(&api, &machine.name, &change).await?;
    let (cluster, machine) = (&door.cluster, &machine.name);
    tracing::warn!(
        cluster,
        namespace,
        machine,
        "a machine whose node is FENCED is left to its owner, which replaces it"
    );
    Ok(())
}

/// The conditions of a machine that is given up; `None` if it is so already.
fn with_given_up(mut conditions: Vec<Value>, why: &Why, now: Timestamp) -> Option<Vec<Value>> {
    let is_it = |condition: &Value| condition["type"] == OWNER_REMEDIATED;
    if conditions
        .iter()
        .any(|condition| is_it(condition) && condition["status"] == "False")
    {
        return None;
    }
    conditions.retain(|condition| !is_it(condition));
    conditions.push(json!({
        "type": OWNER_REMEDIATED,
        "status": "False",
        "severity": "Warning",
        "reason": REASON,
        "message": cut(&why.message, MESSAGE),
        "lastTransitionTime": now.to_rfc3339_opts(SecondsFormat::Secs, true),
    }));
    Some(conditions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_given_up_once_and_keeps_its_other_conditions() {
        let ready = json!({ "type": "Ready", "status": "False" });
        let was_healthy = json!({ "type": OWNER_REMEDIATED, "status": "True" });
        let why = Why::new("Fenced", "the node is FENCED");
        let now = Timestamp::UNIX_EPOCH;
        let given_up = with_given_up(vec![ready.clone(), was_healthy], &why, now).unwrap();
        assert_eq!(given_up.len(), 2, "{given_up:?}");
        assert_eq!(given_up[0], ready);
        assert_eq!(given_up[1]["reason"], REASON);
        assert_eq!(with_given_up(given_up, &why, now), None);
    }
}
