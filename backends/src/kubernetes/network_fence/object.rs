//! The objects of csi-addons, as far as they are used.

use kube::api::{ApiResource, GroupVersionKind};
use kube::core::Object;
use serde::{Deserialize, Serialize};

use crate::Address;

pub(super) const GROUP: &str = "csiaddons.openshift.io";

/// What a `NetworkFence` asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub enum FenceState {
    /// The addresses cannot reach the storage. It is what csi-addons takes where nothing is said.
    #[default]
    Fenced,
    /// They can.
    Unfenced,
}

impl FenceState {
    /// The message of the status beside `Succeeded`.
    pub(super) fn success(self) -> &'static str {
        match self {
            Self::Fenced => "fencing operation successful",
            Self::Unfenced => "unfencing operation successful",
        }
    }
}

/// One fence.
pub(super) type NetworkFence = Object<Spec, Status>;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Spec {
    pub network_fence_class_name: String,
    pub fence_state: FenceState,
    pub cidrs: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Status {
    pub result: String,
    pub message: String,
}

/// What a node's CSI driver has reported.
pub(super) type CsiAddonsNode = Object<NodeSpec, NodeStatus>;

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct NodeSpec {
    pub driver: NodeDriver,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct NodeDriver {
    #[serde(rename = "nodeID")]
    pub node_id: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NodeStatus {
    pub network_fence_client_status: Vec<ClientStatus>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ClientStatus {
    pub network_fence_class_name: String,
    pub client_details: Vec<ClientDetail>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct ClientDetail {
    pub cidrs: Vec<String>,
}

pub(super) fn kind(name: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, "v1alpha1", name), plural)
}

pub(super) fn is_removed(object: &NetworkFence) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

pub(super) fn has_succeeded(object: &NetworkFence) -> bool {
    let success = object.spec.fence_state.success();
    let status = object.status.as_ref();
    status.is_some_and(|status| status.result == "Succeeded" && status.message == success)
}

pub(super) fn parsed<'a>(cidrs: impl IntoIterator<Item = &'a String>) -> Vec<Address> {
    let nets = cidrs.into_iter().filter_map(|cidr| cidr.parse().ok());
    nets.map(Address::network).collect()
}
