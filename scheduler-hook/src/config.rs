//! The settings of the hook.

use std::time::Duration;

use crate::confirmation::Confirmation;
use crate::lookup::ClusterLookup;

/// The settings of the hook.
#[derive(Clone, Debug)]
pub struct HookConfig {
    /// Clouds that are known even if none of their hosts is.
    pub clouds: Vec<String>,
    /// Clusters that are known even if none of their nodes is.
    pub clusters: Vec<String>,
    /// The answer about a host that Ringfence does not know.
    pub unknown_hosts: UnknownHosts,
    /// Who asks clusters.
    pub lookup: ClusterLookup,
    /// What is asked before an answer that opens something.
    pub confirmation: Confirmation,
    /// Between two reads of the hosts without a change.
    pub refresh_every: Duration,
    /// The greatest age of a read from which schedule gates are answered.
    pub max_age: Duration,
}

impl HookConfig {
    /// All platforms that are known.
    pub(crate) fn platforms(&self) -> impl Iterator<Item = &String> {
        self.clouds.iter().chain(&self.clusters)
    }
}

impl Default for HookConfig {
    fn default() -> Self {
        Self {
            clouds: Vec::new(),
            clusters: Vec::new(),
            unknown_hosts: UnknownHosts::Refused,
            lookup: ClusterLookup::default(),
            confirmation: Confirmation::default(),
            refresh_every: Duration::from_secs(1),
            max_age: Duration::from_secs(5),
        }
    }
}

/// The answer about a host that Ringfence does not know, in a cloud that it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownHosts {
    /// The host gets no workloads until it is known: it would not be fenced.
    #[default]
    Refused,
    /// The host may get workloads: Ringfence guards only some hosts of the cloud.
    Allowed,
}
