//! Nodes of Ironic. The crate changes none, and cannot read a node whose fault or step it does not know.

use serde::Deserialize;
use serde_json::json;

use super::service::IRONIC_API;
use crate::BackendError;
use crate::openstack::Cloud;
use crate::openstack::cloud::unless_gone;

/// Every field of `Node`.
const FIELDS: &[(&str, &str)] = &[(
    "fields",
    "power_state,target_power_state,last_error,maintenance,maintenance_reason,reservation",
)];

/// The power state that a node is told to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerTarget {
    /// Switched off.
    Off,
    /// Switched on.
    On,
}

impl PowerTarget {
    /// The target in Ironic's words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "power off",
            Self::On => "power on",
        }
    }
}

/// A node.
#[derive(Debug, Deserialize)]
pub struct Node {
    /// `power off`, `power on`, another word, or nothing: what Ironic last did or read.
    pub power_state: Option<String>,
    /// The power state that Ironic is about to reach.
    pub target_power_state: Option<String>,
    /// Why the last action on the node failed.
    pub last_error: Option<String>,
    /// Whether Ironic leaves the node's power alone.
    pub maintenance: bool,
    /// Why.
    pub maintenance_reason: Option<String>,
    /// The conductor that works on the node.
    pub reservation: Option<String>,
}

impl Node {
    /// Whether no request holds the node.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.reservation.is_none() && self.target_power_state.is_none()
    }
}

impl Cloud {
    /// A node by its id or name; `None` if there is none.
    pub async fn node(&self, node: &str) -> Result<Option<Node>, BackendError> {
        let request = self.get(IRONIC_API, &["nodes", node]).query(FIELDS);
        unless_gone(request.read_whole().await)
    }

    /// Reads one node, whichever it is.
    pub(in crate::openstack) async fn try_listing_nodes(&self) -> Result<(), BackendError> {
        let request = self.get(IRONIC_API, &["nodes"]).query(&[("limit", "1")]);
        request.send().await
    }

    /// Sets a node to maintenance, in which Ironic does not switch it on again by itself.
    pub async fn begin_maintenance(&self, node: &str, reason: &str) -> Result<(), BackendError> {
        let request = self.put(IRONIC_API, &["nodes", node, "maintenance"]);
        request
            .json(json!({ "reason": reason }))
            .repeatable()
            .send()
            .await
    }

    /// Ends the maintenance of a node.
    pub async fn end_maintenance(&self, node: &str) -> Result<(), BackendError> {
        let request = self.delete(IRONIC_API, &["nodes", node, "maintenance"]);
        request.repeatable().send().await
    }

    /// Tells a node to be off or on. Ironic reads the node's device first, and commands it only if the power state differs. Ironic refuses
    /// while another request holds the node.
    pub async fn set_power(&self, node: &str, target: PowerTarget) -> Result<(), BackendError> {
        let request = self.put(IRONIC_API, &["nodes", node, "states", "power"]);
        request.json(json!({ "target": target.as_str() })).send().await
    }
}
