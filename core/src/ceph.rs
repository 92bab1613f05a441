//! What a fence of a host would cost a Ceph: its OSDs and monitors there, and the placement groups that need them.
//!
//! Both questions are asked, for each has been answered wrongly: Ceph's own `osd ok-to-stop` passed over placement groups whose last acting OSD is elsewhere, and what is
//! counted here knows nothing of what Ceph plans.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The number of an OSD.
pub type OsdId = i32;

/// What a Ceph has told, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CephMaps {
    /// Tells it from every other Ceph.
    pub fsid: String,
    /// Its OSDs.
    pub osds: BTreeMap<OsdId, CephOsd>,
    /// Its monitors.
    pub monitors: Vec<CephMonitor>,
    /// Its pools by number.
    pub pools: BTreeMap<u64, CephPool>,
    /// All placement groups.
    pub groups: Vec<PlacementGroup>,
}

/// One OSD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CephOsd {
    /// Whether Ceph sees it up.
    pub is_up: bool,
    /// Whether placement groups are still meant to be on it.
    pub is_in: bool,
    /// The names by which Ceph knows its host.
    pub hosts: BTreeSet<String>,
    /// The part of the site that fails as a whole, as the rules of the pools have it.
    pub domain: Option<String>,
}

/// One monitor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CephMonitor {
    /// The names by which Ceph knows its host.
    pub hosts: BTreeSet<String>,
    /// Whether it is one of those that agree.
    pub is_in_quorum: bool,
}

/// One pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CephPool {
    /// The least number of OSDs with which a placement group takes writes.
    pub min_size: u32,
    /// Its placement groups.
    pub groups: u32,
}

/// One placement group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementGroup {
    /// As in `2.1f`: the pool's number, and its own.
    pub id: String,
    /// As in `active+clean+scrubbing`.
    pub state: String,
    /// The OSDs that serve it.
    pub acting: Vec<OsdId>,
}

/// What a fence of one host would cost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CephSurvey {
    /// Tells the Ceph from every other.
    pub fsid: String,
    /// OSDs of the host.
    pub osds: u32,
    /// Those of them that are up.
    pub up: u32,
    /// All placement groups.
    pub groups: u32,
    /// Those that are not active and clean.
    pub unclean: u32,
    /// One of them.
    pub one_unclean: Option<String>,
    /// Whether the host serves none of those, and the OSDs that are missing are all of its own failure domain.
    pub is_own_domain: bool,
    /// Those that would take no writes without the host.
    pub stopped: u32,
    /// One of them.
    pub one_stopped: Option<String>,
    /// FENCED hosts, and hosts that are being fenced, whose OSDs Ceph sees up.
    pub gone: Vec<String>,
    /// All monitors.
    pub monitors: u32,
    /// Those of the host that are in the quorum.
    pub own_monitors: u32,
    /// Those that would be left in the quorum without the host.
    pub monitors_left: u32,
    /// What Ceph's own answer is; `None` if it was not asked.
    pub is_ok_to_stop: Option<bool>,
}

/// What a placement group may be beside active, and still be clean.
const CLEAN: [&str; 5] = ["clean", "deep", "scrubbing", "snaptrim", "snaptrim_wait"];

impl PlacementGroup {
    fn is_clean(&self) -> bool {
        let mut words = self.state.split('+');
        let is_active = words.next() == Some("active");
        let rest: Vec<&str> = words.collect();
        is_active && rest.contains(&"clean") && rest.iter().all(|word| CLEAN.contains(word))
    }

    fn pool(&self) -> Option<u64> {
        self.id.split_once('.')?.0.parse().ok()
    }

    fn is_served_by(&self, osds: &BTreeSet<OsdId>) -> bool {
        self.acting.iter().any(|osd| osds.contains(osd))
    }

    /// Whether it takes writes by these OSDs alone. One of a pool that is not known does not.
    fn goes_on_with(&self, osds: &BTreeSet<OsdId>, pools: &BTreeMap<u64, CephPool>) -> bool {
        // A place that no OSD has is a number that no OSD has.
        let left = self.acting.iter().filter(|osd| osds.contains(osd)).count();
        let pool = self.pool().and_then(|pool| pools.get(&pool));
        let is_active = self.state.split('+').any(|word| word == "active");
        is_active && pool.is_some_and(|pool| left >= pool.min_size as usize)
    }
}

impl CephMaps {
    /// Whether it has told of as many placement groups as its pools have: a manager that has just begun has not.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let expected: u64 = self.pools.values().map(|pool| u64::from(pool.groups)).sum();
        self.groups.len() as u64 >= expected
    }

    /// The OSDs of a host that are up.
    #[must_use]
    pub fn up_on(&self, host: &str) -> Vec<OsdId> {
        let osds = self.osds_of(host);
        osds.into_iter()
            .filter(|id| self.osds.get(id).is_some_and(|osd| osd.is_up))
            .collect()
    }

    /// What a fence of the host would cost. Hosts that are `gone` are FENCED or being fenced, which Ceph may not have noticed yet.
    #[must_use]
    pub fn survey(&self, host: &str, gone: &[String], is_ok_to_stop: Option<bool>) -> CephSurvey {
        let own = self.osds_of(host);
        let up = number(self.up_on(host).len());
        let gone_osds: BTreeSet<OsdId> = gone.iter().flat_map(|name| self.up_on(name)).collect();
        let is_there = |id: &OsdId, osd: &CephOsd| osd.is_up && !gone_osds.contains(id);
        let others = self
            .osds
            .iter()
            .filter(|(id, osd)| is_there(id, osd) && !own.contains(id));
        let others: BTreeSet<OsdId> = others.map(|(id, _)| *id).collect();
        // What a group tells of itself may be older than what is known of its OSDs.
        let is_lost = |id: &OsdId| !self.osds.get(id).is_some_and(|osd| is_there(id, osd));
        let unclean = || {
            self.groups
                .iter()
                .filter(|group| !group.is_clean() || group.acting.iter().any(is_lost))
        };
        let stopped = || {
            self.groups
                .iter()
                .filter(|group| group.is_served_by(&own) && !group.goes_on_with(&others, &self.pools))
        };
        let (own_monitors, monitors_left) = self.monitors_without(host, gone);
        CephSurvey {
            fsid: self.fsid.clone(),
            osds: number(own.len()),
            up,
            groups: number(self.groups.len()),
            unclean: number(unclean().count()),
            one_unclean: unclean().next().map(told),
            is_own_domain: !unclean().any(|group| group.is_served_by(&own))
                && self.is_own_domain(&own, is_there),
            stopped: number(stopped().count()),
            one_stopped: stopped().next().map(told),
            gone: gone
                .iter()
                .filter(|name| !self.up_on(name).is_empty())
                .cloned()
                .collect(),
            monitors: number(self.monitors.len()),
            own_monitors,
            monitors_left,
            is_ok_to_stop,
        }
    }

    fn osds_of(&self, host: &str) -> BTreeSet<OsdId> {
        let all: Vec<&BTreeSet<String>> = self.osds.values().map(|osd| &osd.hosts).collect();
        let is_its = named(host, &all);
        self.osds
            .iter()
            .filter(|(_, osd)| is_its(&osd.hosts))
            .map(|(id, _)| *id)
            .collect()
    }

    /// The host's monitors in the quorum, and those that would be left there without it.
    fn monitors_without(&self, host: &str, gone: &[String]) -> (u32, u32) {
        let all: Vec<&BTreeSet<String>> = self.monitors.iter().map(|monitor| &monitor.hosts).collect();
        let is_its = named(host, &all);
        let gone: Vec<_> = gone.iter().map(|name| named(name, &all)).collect();
        let agreeing = self.monitors.iter().filter(|monitor| monitor.is_in_quorum);
        let (own, others): (Vec<_>, Vec<_>) = agreeing.partition(|monitor| is_its(&monitor.hosts));
        let left = others
            .iter()
            .filter(|monitor| !gone.iter().any(|is_gone| is_gone(&monitor.hosts)));
        (number(own.len()), number(left.count()))
    }

    /// OSDs that are out are no more missed by any placement group.
    fn is_own_domain(&self, own: &BTreeSet<OsdId>, is_there: impl Fn(&OsdId, &CephOsd) -> bool) -> bool {
        let domain_of = |id: &OsdId| self.osds.get(id).and_then(|osd| osd.domain.as_deref());
        let own: BTreeSet<_> = own.iter().map(domain_of).collect();
        let mut missing = self
            .osds
            .iter()
            .filter(|(id, osd)| osd.is_in && !is_there(id, osd))
            .peekable();
        missing.peek().is_some()
            && own.len() == 1
            && missing.all(|(_, osd)| osd.domain.is_some() && own.contains(&osd.domain.as_deref()))
    }
}

/// Whether names are those of the host. Ceph may know it by the first label of its name, or by the whole of it; where it knows a host by exactly this name, no
/// other is meant.
fn named<'a>(host: &'a str, all: &[&BTreeSet<String>]) -> impl Fn(&BTreeSet<String>) -> bool + use<'a> {
    let is_known = all.iter().any(|names| names.contains(host));
    move |names| names.contains(host) || !is_known && names.iter().any(|name| label(name) == label(host))
}

fn label(name: &str) -> &str {
    name.split_once('.').map_or(name, |(first, _)| first)
}

fn told(group: &PlacementGroup) -> String {
    format!("{} ({})", group.id, group.state)
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
