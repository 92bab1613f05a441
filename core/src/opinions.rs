//! Opinions: what others were asked before a fence begins by itself, and what they say of it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use crate::{Answer, CephSurvey, Permit, Ruling, Safeguard, SegmentPolicy, Timestamp, Verdict};

/// Seconds for which an answer counts.
pub(crate) const COUNTS_S: i64 = 30;

/// What others have said when they were asked for one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opinions {
    /// When they were asked; `None` if they were not.
    pub asked_at: Option<Timestamp>,
    /// What a fence would cost each Ceph, by the name of the method by which it was asked; or why it could not be asked.
    pub ceph: BTreeMap<String, Result<CephSurvey, String>>,
    /// What each query says, by the name of its method; or why it could not be asked.
    pub queries: BTreeMap<String, Result<Answer, String>>,
}

impl Opinions {
    /// What they come to, for all that the segment wants asked.
    pub(crate) fn rulings(&self, policy: &SegmentPolicy, now: Timestamp) -> Vec<Ruling> {
        let fencing = &policy.fencing;
        let of_ceph = fencing.ceph.iter().map(|name| {
            let heard = self.heard(&format!("Ceph {name}"), self.ceph.get(name), now);
            let said = heard.map_or_else(
                |why| (Verdict::Unknown, why, Some("an answer of Ceph")),
                |survey| surveyed(name, survey),
            );
            ruling(Safeguard::Ceph, said)
        });
        let of_queries = fencing.queries.iter().map(|name| {
            let heard = self.heard(&format!("query {name}"), self.queries.get(name), now);
            let said = heard.map_or_else(
                |why| (Verdict::Unknown, why, Some("an answer to the query")),
                |answer| answered(name, answer),
            );
            ruling(Safeguard::Query, said)
        });
        of_ceph.chain(of_queries).collect()
    }

    /// An answer that counts, or why there is none.
    fn heard<'a, T>(
        &self,
        whom: &str,
        answer: Option<&'a Result<T, String>>,
        now: Timestamp,
    ) -> Result<&'a T, String> {
        match answer {
            _ if !self.are_fresh(now) => Err(format!("{whom} was not asked within {COUNTS_S} s")),
            None => Err(format!("{whom} was not asked")),
            Some(Err(why)) => Err(format!("{whom} could not be asked: {why}")),
            Some(Ok(answer)) => Ok(answer),
        }
    }

    /// What a fence takes that begins now. The answers may be old by then, and of two hosts that were asked about at one time only one may be fenced.
    pub(crate) fn permits(&self, now: Timestamp) -> Vec<Permit> {
        let carried = self.ceph.values().flatten().filter(|survey| survey.up > 0);
        let cephs: BTreeSet<&str> = carried.map(|survey| survey.fsid.as_str()).collect();
        let asked_at = self.asked_at.filter(|_| self.are_fresh(now));
        let of_one = |fsid: &str| Permit::of_ceph(fsid, asked_at.unwrap_or(now), now);
        cephs.into_iter().flat_map(of_one).collect()
    }

    /// Until when they count; `None` where nothing was asked.
    pub(crate) fn count_until(&self) -> Option<Timestamp> {
        self.asked_at
            .map(|asked_at| asked_at + TimeDelta::seconds(COUNTS_S))
    }

    fn are_fresh(&self, now: Timestamp) -> bool {
        self.asked_at
            .is_some_and(|asked_at| (0..=COUNTS_S).contains(&(now - asked_at).num_seconds()))
    }
}

type Said = (Verdict, String, Option<&'static str>);

fn ruling(safeguard: Safeguard, (verdict, reason, release): Said) -> Ruling {
    Ruling {
        safeguard,
        verdict,
        reason,
        release: release.map(str::to_owned),
    }
}

fn answered(query: &str, Answer { is_allowed, reason }: &Answer) -> Said {
    if *is_allowed {
        allow(format!("query {query} allows it: {reason}"))
    } else {
        hold(
            format!("query {query} holds it: {reason}"),
            "an answer that allows it",
        )
    }
}

fn allow(why: String) -> Said {
    (Verdict::Allow, why, None)
}

fn hold(why: String, release: &'static str) -> Said {
    (Verdict::Hold, why, Some(release))
}

/// A host whose OSDs are all down costs nothing more, so that its own failure does not hold its fence.
fn surveyed(ceph: &str, survey: &CephSurvey) -> Said {
    let CephSurvey {
        osds,
        up,
        groups,
        unclean,
        one_unclean,
        stopped,
        one_stopped,
        ..
    } = survey;
    let one = |group: &Option<String>| group.as_deref().unwrap_or("?").to_owned();
    if let Some(why) = costs_quorum(ceph, survey) {
        return hold(why, "monitors that are back in the quorum");
    }
    if *osds == 0 {
        return allow(format!("no OSD of Ceph {ceph} is on the host"));
    }
    if *up == 0 {
        return allow(format!(
            "all {osds} OSDs of the host in Ceph {ceph} are down already"
        ));
    }
    let clean = "placement groups that are all active and clean";
    if *unclean > 0 && !survey.is_own_domain {
        let why = format!(
            "{unclean} of {groups} placement groups of Ceph {ceph} are not active and clean, as {}",
            one(one_unclean)
        );
        return hold(why + &counted_as_gone(survey), clean);
    }
    if *stopped > 0 {
        let why = format!(
            "{stopped} of {groups} placement groups of Ceph {ceph} would take no writes without the host, as {}",
            one(one_stopped)
        );
        return hold(why + &counted_as_gone(survey), clean);
    }
    match survey.is_ok_to_stop {
        Some(true) => allow(format!("Ceph {ceph} goes on without the {up} OSDs of the host")),
        Some(false) => hold(
            format!("Ceph {ceph} says that the OSDs of the host cannot be stopped"),
            clean,
        ),
        None => (
            Verdict::Unknown,
            format!("Ceph {ceph} was not asked whether the OSDs of the host can be stopped"),
            Some("an answer of Ceph"),
        ),
    }
}

fn costs_quorum(ceph: &str, survey: &CephSurvey) -> Option<String> {
    let CephSurvey {
        monitors,
        own_monitors,
        monitors_left,
        ..
    } = survey;
    let is_majority = monitors_left.saturating_mul(2) > *monitors;
    (*own_monitors > 0 && !is_majority).then(|| {
        format!(
            "a monitor of Ceph {ceph} is on the host, and without it {monitors_left} of {monitors} would be left in the quorum, which is no majority"
        )
    })
}

/// Hosts that are named in a reason; others are counted.
const NAMED: usize = 3;

fn counted_as_gone(survey: &CephSurvey) -> String {
    let gone = &survey.gone;
    if gone.is_empty() {
        return String::new();
    }
    let names: Vec<&str> = gone.iter().take(NAMED).map(String::as_str).collect();
    let more = match gone.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "; those of {}{more}, which are FENCED or being fenced, are counted as lost",
        names.join(", ")
    )
}
