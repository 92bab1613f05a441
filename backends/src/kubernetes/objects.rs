//! The parts of a cluster's objects that are used. The rest, such as a node's list of images, is not kept.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::api::ApiResource;
use kube::core::Object;
use serde::{Deserialize, Serialize};

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

/// The condition `Ready` of a node.
pub(super) fn ready(node: &NodeObject) -> Ready {
    let conditions = node.status.iter().flat_map(|status| &status.conditions);
    let found = conditions.into_iter().find(|condition| condition.kind == "Ready");
    match found.map(|condition| condition.status.as_str()) {
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
