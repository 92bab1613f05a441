//! The differences between one cluster and the usual one.

use std::time::Duration;

use super::Component;

/// How a control plane differs from the usual one.
#[derive(Clone, Debug)]
pub struct ControlPlaneOptions {
    /// The time after which a silent node becomes NotReady; 40 s in production. Nodes renew their leases four times as often.
    pub node_grace: Duration,
    /// The time between two looks at the nodes; 5 s in production.
    pub node_period: Duration,
    /// The time after which the controllers notice that an attachment has gone of which nothing has told them; 1 min in production. A kubelet
    /// that waits for the volume meanwhile looks again after up to 2 min.
    pub volume_sync: Duration,
    /// More arguments for a component, as in `--v=4`. (From 1.30 on, `--disable-force-detach-on-timeout=true` keeps the controller manager from
    /// detaching the volumes of a silent node after six minutes.)
    pub arguments: Vec<(Component, String)>,
    /// Whether the API server writes down changes of nodes, and deletions of pods and attachments.
    pub is_audited: bool,
}

impl Default for ControlPlaneOptions {
    fn default() -> Self {
        Self {
            node_grace: Duration::from_secs(8),
            node_period: Duration::from_secs(1),
            volume_sync: Duration::from_secs(5),
            arguments: Vec::new(),
            is_audited: false,
        }
    }
}

/// How a node differs from the usual one.
#[derive(Clone, Debug, Default)]
pub struct KubeletOptions {
    /// The node's labels, beside those of every kubelet.
    pub labels: Vec<(String, String)>,
    /// Whether the host has a BMC, which takes a second more to start.
    pub with_bmc: bool,
}
