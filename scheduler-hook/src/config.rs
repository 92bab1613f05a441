//! How the hook answers.

use std::time::Duration;

/// How the hook answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookConfig {
    /// Clouds that are known although none of their hosts is.
    pub clouds: Vec<String>,
    /// What is said of a host that Ringfence does not know.
    pub unknown_hosts: UnknownHosts,
    /// Between two reads of the hosts that nothing has asked for.
    pub refresh_every: Duration,
    /// How old what was read may be for a schedule gate to be answered from it.
    pub max_age: Duration,
}

impl Default for HookConfig {
    fn default() -> Self {
        Self {
            clouds: Vec::new(),
            unknown_hosts: UnknownHosts::Refused,
            refresh_every: Duration::from_secs(1),
            max_age: Duration::from_secs(5),
        }
    }
}

/// What is said of a host that Ringfence does not know, in a cloud that it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownHosts {
    /// It gets no workloads until it is known: it would not be fenced.
    #[default]
    Refused,
    /// It is none of Ringfence's: some hosts of the cloud are guarded and others are not.
    Allowed,
}
