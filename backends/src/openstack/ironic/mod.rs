//! Ironic: the power of nodes, which the crate `openstack` reads.

mod power;
mod rights;

pub use power::NodePower;

use openstack::baremetal::Node;
use openstack::session::Session;

use super::Cloud;
use super::beyond::IRONIC_API;
use super::cloud::unless_gone;
use crate::BackendError;

/// The name in errors and methods.
pub const IRONIC: &str = "ironic";

/// Whether no request holds a node.
fn is_idle(node: &Node) -> bool {
    node.reservation().is_none() && node.target_power_state().is_none()
}

impl Cloud {
    /// A node by its id or name, with all fields; `None` if Ironic knows none.
    pub async fn node(&self, node: &str) -> Result<Option<Box<Node>>, BackendError> {
        let call = |session: Session| async move {
            let cloud = openstack::Cloud::from(session);
            Box::pin(cloud.get_baremetal_node(node)).await.map(Box::new)
        };
        unless_gone(self.again(IRONIC_API.name, call).await)
    }
}
