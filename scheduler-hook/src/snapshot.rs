//! The schedule gates of all hosts as they were at one moment.

use std::collections::HashMap;
use std::time::Duration;

use ringfence_core::{Timestamp, schedule_gate};
use ringfence_db::PlacingRow;

use crate::config::UnknownHosts;
use crate::moment::Moment;

const UNKNOWN_HOST: &str =
    "Ringfence does not know the host; add it, or allow unknown hosts by scheduler_hook.unknown_hosts";
const UNKNOWN_CLOUD: &str =
    "Ringfence knows no host of this cloud, nor is the cloud among openstack.clouds; is its name right?";

/// The schedule gates of all hosts as they were at one moment.
pub struct Snapshot {
    /// When the read began: all that was committed before has been seen, and nothing later need have been.
    begun: Moment,
    as_of: Timestamp,
    clouds: HashMap<String, Hosts>,
}

/// By what the cloud calls them. No reason: open.
type Hosts = HashMap<String, Option<Box<str>>>;

/// What is said of some hosts, in the names that the caller has used.
#[derive(Debug)]
pub struct Filtered<'a> {
    /// They may get workloads.
    pub allowed: Vec<&'a str>,
    /// They may not: each with its reason.
    pub refused: Vec<(&'a str, &'a str)>,
    /// When it was so, by the engines' clock.
    pub as_of: Timestamp,
}

impl Snapshot {
    /// Decides for all rows of a read that began at that moment. A gate that time alone will open opens with a later read.
    pub(crate) fn new(begun: Moment, as_of: Timestamp, clouds: &[String], rows: Vec<PlacingRow>) -> Self {
        let mut known: HashMap<String, Hosts> =
            clouds.iter().map(|cloud| (cloud.clone(), Hosts::new())).collect();
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

    /// How long ago it was begun to be read.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.begun.age()
    }

    /// How many hosts are in it.
    pub(crate) fn len(&self) -> usize {
        self.clouds.values().map(HashMap::len).sum()
    }

    /// Which of these hosts may get workloads.
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
