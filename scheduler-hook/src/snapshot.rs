//! The schedule gates of all hosts at one moment.

use std::collections::HashMap;
use std::time::Duration;

use ringfence_core::{Timestamp, schedule_gate};
use ringfence_db::PlacingRow;

use crate::config::UnknownHosts;
use crate::moment::Moment;

const UNKNOWN_HOST: &str =
    "Ringfence does not know the host; add it, or allow unknown hosts by scheduler_hook.unknown_hosts";
const UNKNOWN_CLOUD: &str = "Ringfence knows no host of this platform, and neither openstack.clouds nor kubernetes.clusters names the platform; check the platform's name";

/// The schedule gates of all hosts at one moment.
pub struct Snapshot {
    /// When the read began: all earlier commits are included, later ones may be.
    begun: Moment,
    as_of: Timestamp,
    clouds: HashMap<String, Hosts>,
}

/// By the cloud's names of the hosts. A host without a reason has an open gate.
type Hosts = HashMap<String, Option<Box<str>>>;

/// The answers about some hosts, in the caller's names.
#[derive(Debug)]
pub struct Filtered<'a> {
    /// The hosts that may get workloads.
    pub allowed: Vec<&'a str>,
    /// The hosts that may not, each with its reason.
    pub refused: Vec<(&'a str, &'a str)>,
    /// The time of the gates, by the engines' clock.
    pub as_of: Timestamp,
}

impl Snapshot {
    /// Decides for all rows of a read that began at `begun`. A gate that opens only by time opens with a later read.
    pub(crate) fn new<'a>(
        begun: Moment,
        as_of: Timestamp,
        platforms: impl Iterator<Item = &'a String>,
        rows: Vec<PlacingRow>,
    ) -> Self {
        let mut known: HashMap<String, Hosts> = platforms
            .map(|platform| (platform.clone(), Hosts::new()))
            .collect();
        for row in rows {
            let gate = schedule_gate(&row.placing(), as_of);
            let reason = (!gate.allowed).then(|| gate.reason.into_boxed_str());
            known.entry(row.cloud).or_default().insert(row.known_as, reason);
        }
        Self {
            begun,
            as_of,
            clouds: known,
        }
    }

    /// The time since the read began.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.begun.age()
    }

    /// The number of hosts.
    pub(crate) fn len(&self) -> usize {
        self.clouds.values().map(HashMap::len).sum()
    }

    /// The hosts among these that may get workloads.
    pub(crate) fn filter<'a>(
        &'a self,
        cloud: &str,
        hosts: impl Iterator<Item = &'a str>,
        unknown: UnknownHosts,
    ) -> Filtered<'a> {
        let known = self.clouds.get(cloud);
        let mut filtered = Filtered {
            allowed: Vec::with_capacity(hosts.size_hint().0),
            refused: Vec::new(),
            as_of: self.as_of,
        };
        for host in hosts {
            match known.map(|known| known.get(host)) {
                Some(Some(None)) => filtered.allowed.push(host),
                Some(Some(Some(reason))) => filtered.refused.push((host, reason)),
                Some(None) if unknown == UnknownHosts::Allowed => filtered.allowed.push(host),
                Some(None) => filtered.refused.push((host, UNKNOWN_HOST)),
                None => filtered.refused.push((host, UNKNOWN_CLOUD)),
            }
        }
        filtered
    }
}
