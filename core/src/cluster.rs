//! What a cluster says of a request that it is asked to admit.

use std::collections::BTreeMap;

/// A pod, as far as it tells what its eviction removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodToEvict {
    /// Its UID.
    pub uid: String,
    /// The node that it is bound to.
    pub node: Option<String>,
    /// Its own grace period, in seconds.
    pub grace_s: i64,
    /// Whether it has a volume claim, or the label of guarded pods.
    pub is_guarded: bool,
    /// Whether its kubelet has called it finished.
    pub is_finished: bool,
}

/// A user, as an API server has authenticated it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterUser {
    /// The name.
    pub name: String,
    /// The UID, empty where there is none.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// What the authentication says besides.
    pub extra: BTreeMap<String, Vec<String>>,
}
