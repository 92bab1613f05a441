//! The parts of a cluster's objects that are used. The rest, such as a node's list of images, is not kept.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::ApiResource;
use kube::core::Object;
use ringfence_core::{
    BootSign, ConditionStatus, MAX_CONDITION_REASON_CHARS, MAX_CONDITIONS, ReportedCondition,
    validate_condition_name,
};
use serde::{Deserialize, Serialize};

/// The longest id of a boot, in bytes; a longer one is none.
const MAX_BOOT_ID: usize = 128;

/// A node.
pub(super) type NodeObject = Object<NodeSpec, NodeStatus>;
/// A lease.
pub(super) type LeaseObject = Object<LeaseSpec, ()>;

/// What is wanted of a node.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NodeSpec {
    pub unschedulable: bool,
    pub taints: Vec<Taint>,
    #[serde(rename = "providerID")]
    pub provider_id: Option<String>,
}

/// What a node reports.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NodeStatus {
    pub conditions: Vec<Condition>,
    pub node_info: NodeInfo,
}

/// One condition.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: String,
    pub reason: String,
    /// When the kubelet wrote it, by the node's own clock.
    #[serde(rename = "lastHeartbeatTime")]
    pub last_heartbeat: Option<String>,
}

/// The node's own description.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NodeInfo {
    #[serde(rename = "bootID")]
    pub boot_id: String,
    pub kubelet_version: String,
}

/// A lease, as far as it tells when its holder wrote it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct LeaseSpec {
    pub renew_time: Option<String>,
}

/// The condition `Ready`, as the cluster shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ready {
    Yes,
    /// The kubelet itself says so.
    No,
    /// The kubelet has said nothing for long, or never.
    Unknown,
}

/// The boot that the node's kubelet has written down. A kubelet dates the condition `Ready` with each write, and the cluster, which may change the
/// condition, leaves its date alone.
pub(super) fn boot(node: &NodeObject) -> Option<BootSign> {
    let id = node.status.as_ref()?.node_info.boot_id.clone();
    let written = ready_condition(node)?.last_heartbeat.clone()?;
    let is_one = !id.is_empty() && id.len() <= MAX_BOOT_ID;
    is_one.then_some(BootSign { id, written })
}

fn ready_condition(node: &NodeObject) -> Option<&Condition> {
    let mut conditions = node.status.iter().flat_map(|status| &status.conditions);
    conditions.find(|condition| condition.kind == "Ready")
}

/// All conditions of a node that can be told; one without a status of Kubernetes is none.
pub(super) fn conditions(node: &NodeObject) -> Vec<ReportedCondition> {
    let all = node.status.iter().flat_map(|status| &status.conditions);
    let told = all.filter_map(|condition| {
        let status = ConditionStatus::from_word(&condition.status)?;
        let reason = condition
            .reason
            .chars()
            .take(MAX_CONDITION_REASON_CHARS)
            .collect();
        Some(ReportedCondition {
            name: condition.kind.clone(),
            status,
            reason,
        })
    });
    told.filter(|condition| validate_condition_name("type", &condition.name).is_ok())
        .take(MAX_CONDITIONS)
        .collect()
}

/// The condition `Ready` of a node.
pub(super) fn ready(node: &NodeObject) -> Ready {
    match ready_condition(node).map(|condition| condition.status.as_str()) {
        Some("True") => Ready::Yes,
        Some("False") => Ready::No,
        _ => Ready::Unknown,
    }
}

/// How nodes are asked for.
pub(super) fn nodes() -> ApiResource {
    ApiResource::erase::<Node>(&())
}

/// How leases are asked for.
pub(super) fn leases() -> ApiResource {
    ApiResource::erase::<Lease>(&())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn node(boot_id: &str, conditions: Value) -> NodeObject {
        let node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n1" }, "spec": {},
            "status": { "conditions": conditions, "nodeInfo": { "bootID": boot_id } },
        });
        serde_json::from_value(node).unwrap()
    }

    #[test]
    fn a_boot_is_dated_by_the_condition_that_only_the_kubelet_dates() {
        let conditions = json!([
            { "type": "NetworkUnavailable", "status": "False", "lastHeartbeatTime": "2026-11-26T13:00:00Z" },
            { "type": "Ready", "status": "Unknown", "lastHeartbeatTime": "2026-11-26T12:00:00Z" },
        ]);
        let seen = boot(&node("b1", conditions.clone())).unwrap();
        assert_eq!(
            (seen.id.as_str(), seen.written.as_str()),
            ("b1", "2026-11-26T12:00:00Z")
        );
        assert_eq!(boot(&node("", conditions.clone())), None);
        assert_eq!(boot(&node(&"b".repeat(129), conditions)), None);
        assert_eq!(
            boot(&node("b1", json!([{ "type": "Ready", "status": "True" }]))),
            None
        );
    }
}
