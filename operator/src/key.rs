//! The objects that are served, by their names.

use std::fmt;

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// The `NodeFence` of a node, whether it exists or not.
    NodeFence(String),
    /// The configuration of a cluster, as its objects declare it.
    FenceConfig,
    /// A remediation, by its namespace and name.
    Remediation(String, String),
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeFence(node) => write!(f, "NodeFence {node}"),
            Self::FenceConfig => f.write_str("fence configuration"),
            Self::Remediation(namespace, name) => write!(f, "RingfenceRemediation {namespace}/{name}"),
        }
    }
}
