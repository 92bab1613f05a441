//! What a node of Ironic is told. The crate reads nodes, and changes none.

use serde_json::json;

use super::service::IRONIC_API;
use crate::BackendError;
use crate::openstack::Cloud;

/// What a node is told to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerTarget {
    /// Without power.
    Off,
    /// With power.
    On,
}

impl PowerTarget {
    /// Ironic's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "power off",
            Self::On => "power on",
        }
    }
}

impl Cloud {
    /// Has Ironic keep its hands off a node: it would switch it on again by itself.
    pub async fn begin_maintenance(&self, node: &str, reason: &str) -> Result<(), BackendError> {
        let request = self.put(IRONIC_API, &["nodes", node, "maintenance"]);
        request
            .json(json!({ "reason": reason }))
            .repeatable()
            .send()
            .await
    }

    /// Takes that back.
    pub async fn end_maintenance(&self, node: &str) -> Result<(), BackendError> {
        let request = self.delete(IRONIC_API, &["nodes", node, "maintenance"]);
        request.repeatable().send().await
    }

    /// Tells a node to be off or on. Ironic reads the node's device first, and sends it something only if it has to. While another request
    /// holds the node this is refused.
    pub async fn set_power(&self, node: &str, target: PowerTarget) -> Result<(), BackendError> {
        let request = self.put(IRONIC_API, &["nodes", node, "states", "power"]);
        request.json(json!({ "target": target.as_str() })).send().await
    }
}
