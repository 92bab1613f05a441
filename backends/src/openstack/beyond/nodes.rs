//! Changes of Ironic's nodes. The crate only reads nodes.

use serde_json::json;

use super::service::IRONIC_API;
use crate::BackendError;
use crate::openstack::Cloud;

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

impl Cloud {
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
