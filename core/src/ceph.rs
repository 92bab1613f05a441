//! What a fence of a host would cost a Ceph: its OSDs there, and the placement groups that need them.
//!
//! Both questions are asked, for each has been answered wrongly: Ceph's own `osd ok-to-stop` passed over placement groups whose last acting OSD is elsewhere, and what is
//! counted here knows nothing of what Ceph plans.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::{Ruling, Safeguard, Timestamp, Verdict};

/// The number of an OSD.
pub type OsdId = i32;

/// What a Ceph has told, as far as it matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CephMaps {
    /// The OSDs of each host by the host's name, and whether each is up.
    pub hosts: BTreeMap<String, BTreeMap<OsdId, bool>>,
    /// The least number of OSDs with which a placement group of a pool takes writes, by the pool's number.
    pub min_sizes: BTreeMap<u64, u32>,
    /// All placement groups.
    pub groups: Vec<PlacementGroup>,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CephSurvey {
    /// When Ceph was asked.
    pub read_at: Timestamp,
    /// OSDs of the host.
    pub osds: u32,
    /// Those of them that are up.
    pub up: u32,
    /// All placement groups.
    pub groups: u32,
    /// Those that are not active and clean; the first of them by name.
    pub unclean: u32,
    /// One of them.
    pub one_unclean: Option<String>,
    /// Those that would take no writes without the host.
    pub stopped: u32,
    /// One of them.
    pub one_stopped: Option<String>,
    /// What Ceph's own answer is; `None` if it was not asked, for a host without OSDs that are up.
    pub is_ok_to_stop: Option<bool>,
}

/// Seconds for which an answer counts.
const COUNTS_S: i64 = 30;
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

    /// Whether it takes writes by these OSDs alone. One of a pool that is not known does not.
    fn goes_on_with(&self, osds: &BTreeSet<OsdId>, min_sizes: &BTreeMap<u64, u32>) -> bool {
        // A place that no OSD has is a number that no OSD has.
        let left = self.acting.iter().filter(|osd| osds.contains(osd)).count();
        let needed = self.pool().and_then(|pool| min_sizes.get(&pool));
        let is_active = self.state.split('+').any(|word| word == "active");
        is_active && needed.is_some_and(|needed| left >= *needed as usize)
    }
}

impl CephMaps {
    /// The OSDs of a host that are up.
    #[must_use]
    pub fn up_on(&self, host: &str) -> Vec<OsdId> {
        let osds = self.hosts.get(host).into_iter().flatten();
        osds.filter(|(_, is_up)| **is_up).map(|(id, _)| *id).collect()
    }

    /// What a fence of the host would cost.
    #[must_use]
    pub fn survey(&self, host: &str, is_ok_to_stop: Option<bool>, read_at: Timestamp) -> CephSurvey {
        let osds: BTreeSet<OsdId> = self
            .hosts
            .get(host)
            .into_iter()
            .flatten()
            .map(|(id, _)| *id)
            .collect();
        let others = self
            .hosts
            .iter()
            .filter(|(name, _)| *name != host)
            .flat_map(|(_, osds)| osds);
        let others: BTreeSet<OsdId> = others.filter(|(_, is_up)| **is_up).map(|(id, _)| *id).collect();
        let unclean = || self.groups.iter().filter(|group| !group.is_clean());
        let serves = |group: &&PlacementGroup| group.acting.iter().any(|osd| osds.contains(osd));
        let stops = |group: &&PlacementGroup| serves(group) && !group.goes_on_with(&others, &self.min_sizes);
        let stopped = || self.groups.iter().filter(stops);
        let first =
            |group: Option<&PlacementGroup>| group.map(|group| format!("{} ({})", group.id, group.state));
        CephSurvey {
            read_at,
            osds: number(osds.len()),
            up: number(self.up_on(host).len()),
            groups: number(self.groups.len()),
            unclean: number(unclean().count()),
            one_unclean: first(unclean().next()),
            stopped: number(stopped().count()),
            one_stopped: first(stopped().next()),
            is_ok_to_stop,
        }
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// What a Ceph says of an automatic fence of a host; `None` of the answer: it could not be asked, and why. `None` of the ruling: the host is no part of it.
#[must_use]
pub fn ceph_ruling(cluster: &str, answer: Result<&CephSurvey, &str>, now: Timestamp) -> Option<Ruling> {
    let (verdict, reason) = match answer {
        Err(why) => (
            Verdict::Unknown,
            format!("Ceph {cluster} could not be asked: {why}"),
        ),
        Ok(survey) if (now - survey.read_at).num_seconds() > COUNTS_S => (
            Verdict::Unknown,
            format!(
                "Ceph {cluster} was asked at {} and not since",
                survey.read_at.format("%FT%TZ")
            ),
        ),
        Ok(survey) if survey.osds == 0 => return None,
        Ok(survey) => said(cluster, survey),
    };
    let release = match verdict {
        Verdict::Allow => None,
        Verdict::Hold => Some("placement groups that are all active and clean".to_owned()),
        Verdict::Unknown => Some("an answer of Ceph".to_owned()),
    };
    Some(Ruling {
        safeguard: Safeguard::Ceph,
        verdict,
        reason,
        release,
    })
}

/// A host whose OSDs are all down costs nothing more, so that its own failure does not hold its fence.
fn said(cluster: &str, survey: &CephSurvey) -> (Verdict, String) {
    let CephSurvey {
        osds,
        up,
        groups,
        unclean,
        one_unclean,
        stopped,
        one_stopped,
        is_ok_to_stop,
        ..
    } = survey;
    let one = |group: &Option<String>| group.as_deref().unwrap_or("?").to_owned();
    if *up == 0 {
        return (
            Verdict::Allow,
            format!("all {osds} OSDs of the host in Ceph {cluster} are down already"),
        );
    }
    if *unclean > 0 {
        let why = format!(
            "{unclean} of {groups} placement groups of Ceph {cluster} are not active and clean, as {}",
            one(one_unclean)
        );
        return (Verdict::Hold, why);
    }
    if *stopped > 0 {
        let why = format!(
            "{stopped} placement groups of Ceph {cluster} would take no writes without the host, as {}",
            one(one_stopped)
        );
        return (Verdict::Hold, why);
    }
    match is_ok_to_stop {
        Some(true) => (
            Verdict::Allow,
            format!("Ceph {cluster} goes on without the {up} OSDs of the host"),
        ),
        Some(false) => (
            Verdict::Hold,
            format!("Ceph {cluster} says that the OSDs of the host cannot be stopped"),
        ),
        None => (
            Verdict::Unknown,
            format!("Ceph {cluster} was not asked whether the OSDs of the host can be stopped"),
        ),
    }
}
