//! Whether a host that falls silent is fenced without being asked, and when so many have that a person is asked first (S11).

use serde::{Deserialize, Serialize};

use crate::{
    FailureState, FencingState, GroupCounts, GroupRule, HostState, OperationKind, OperationStatus, Problems,
    SightPolicy, Sights, Timestamp, decide::condition_due, group, validate_name,
};

/// What a segment says of automatic fences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FencingPolicy {
    /// Whether a host that is UNREACHABLE is fenced without being asked.
    pub automatic: bool,
    /// Seconds that it has to be UNREACHABLE before, 0 to 3600. Others that fail with it have to show within them, or the brake does not
    /// see them.
    pub after_s: u32,
    /// The brake: hosts of the segment that may fall silent or be fenced within `within_s`, 1 to 10,000.
    pub at_most: u32,
    /// Seconds that the brake looks back, 10 to 86,400.
    pub within_s: u32,
    /// The brake: the percentage of the segment's hosts that may be out of service, 1 to 100. One host may be out of service at any
    /// percentage, and two hosts while a third host is in service: in a small segment each host is a large percentage.
    pub at_most_percent: u32,
    /// Fences of the segment's hosts beside which another one may begin by itself, this one counted, 1 to 10,000; `null`: any number. Beyond
    /// them a fence that was not asked for is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
    /// Fences of the segment's hosts that may begin by themselves in one minute of the clock, 1 to 10,000; `null`: any number. Beyond them a fence is
    /// held until the next minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<u32>,
    /// Seconds without a change in the segment for which a fence waits after the storm brake has held one, 10 to 86,400; `null`: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_s: Option<u32>,
    /// Seconds for which a fence that has begun by itself leaves the power to a host that writes a crash dump, 10 to 21,600; `null`: it does not wait for dumps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kdump_timeout_s: Option<u32>,
    /// When a source's word that a host is silent counts; `null`: always.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sight: Option<SightPolicy>,
    /// Rules for groups of hosts, at most 8.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupRule>,
    /// Methods of the driver `ceph` by name, at most 8: a fence that begins by itself waits until every Ceph that they reach goes on without the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ceph: Vec<String>,
    /// Methods for queries by name, at most 8: a fence that begins by itself waits until each of them allows it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queries: Vec<String>,
}

/// Methods of one sort that one segment may name.
const MAX_ASKED: usize = 8;

impl Default for FencingPolicy {
    fn default() -> Self {
        Self {
            automatic: false,
            after_s: 15,
            at_most: 5,
            within_s: 600,
            at_most_percent: 40,
            at_once: None,
            per_minute: None,
            quiet_s: None,
            kdump_timeout_s: None,
            sight: None,
            groups: Vec::new(),
            ceph: Vec::new(),
            queries: Vec::new(),
        }
    }
}

/// How the hosts of a segment stand, the one that it is about included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Neighbourhood {
    /// All of them.
    pub hosts: u64,
    /// UNREACHABLE or FENCED, being fenced, or sick with what they are to be fenced for; however long.
    pub out_of_service: u64,
    /// Those of them that have become so within [`FencingPolicy::within_s`].
    pub lately: u64,
    /// All hosts of its cloud, in whichever segment; 0 for one of no cloud.
    pub in_cloud: u64,
    /// UNREACHABLE or FENCED of these.
    pub out_of_service_in_cloud: u64,
    /// Fences of other hosts of the segment that are running.
    pub under_way: u64,
    /// Other hosts of the segment that fell silent earlier, and whose fences have not begun or are held.
    pub before_it: u64,
    /// Fences of the segment's hosts that have begun by themselves in this minute, while the segment bounds them.
    pub begun: u64,
    /// When the segment changed last, if its storm brake has held a fence and it has not been quiet since ([`not_quiet_since`](crate::not_quiet_since)).
    pub not_quiet_since: Option<Timestamp>,
    /// The groups of the host that the segment has rules for.
    pub groups: GroupCounts,
    /// What the sources hear, where the segment wants that counted.
    pub sights: Sights,
}

/// So many hosts may be out of service whatever their percentage, while another one is in service.
const ALWAYS_ALLOWED: u64 = 2;

impl FencingPolicy {
    /// Why nothing is fenced without a person's word at the moment; `None` if it is.
    #[must_use]
    pub fn brake(&self, around: &Neighbourhood) -> Option<String> {
        let Neighbourhood {
            hosts,
            out_of_service,
            lately,
            in_cloud,
            out_of_service_in_cloud,
            under_way: _,
            before_it: _,
            begun: _,
            not_quiet_since: _,
            groups: _,
            sights: _,
        } = around;
        let [hosts, out_of_service, lately] = [*hosts, *out_of_service, *lately];
        let [in_cloud, out_of_service_in_cloud] = [*in_cloud, *out_of_service_in_cloud];
        let percent = u64::from(self.at_most_percent);
        let is_small = |out: u64, all: u64| out <= 1 || (out <= ALWAYS_ALLOWED && out < all);
        let is_too_much =
            |out: u64, all: u64| !is_small(out, all) && out.saturating_mul(100) > all.saturating_mul(percent);
        if lately > u64::from(self.at_most) {
            return Some(format!(
                "{lately} hosts of the segment fell silent or were fenced within {} s, and at most {} are fenced without being asked",
                self.within_s, self.at_most
            ));
        }
        if is_too_much(out_of_service, hosts) {
            return Some(format!(
                "{out_of_service} of the {hosts} hosts of the segment are out of service, and nothing is fenced without being asked beyond \
                 {percent} %"
            ));
        }
        // What all hosts of a cloud have in common may have failed, and segments may be small.
        if is_too_much(out_of_service_in_cloud, in_cloud) {
            return Some(format!(
                "{out_of_service_in_cloud} of the {in_cloud} hosts of the cloud are out of service, and nothing is fenced without being asked \
                 beyond {percent} %"
            ));
        }
        None
    }

    pub(crate) fn check(&self, problems: &mut Problems) {
        let at_once = self.at_once.map(|value| ("at_once", value, 1, 10_000));
        let per_minute = self.per_minute.map(|value| ("per_minute", value, 1, 10_000));
        let quiet_s = self.quiet_s.map(|value| ("quiet_s", value, 10, 86_400));
        let kdump_s = self
            .kdump_timeout_s
            .map(|value| ("kdump_timeout_s", value, 10, 21_600));
        let given = [at_once, per_minute, quiet_s, kdump_s].into_iter().flatten();
        let ranges = [
            ("after_s", self.after_s, 0, 3_600),
            ("at_most", self.at_most, 1, 10_000),
            ("within_s", self.within_s, 10, 86_400),
            ("at_most_percent", self.at_most_percent, 1, 100),
        ];
        for (field, value, min, max) in ranges.into_iter().chain(given) {
            if !(min..=max).contains(&value) {
                problems.add(
                    format!("policy.fencing.{field}"),
                    format!("is {value}; {min} to {max} is allowed"),
                );
            }
        }
        if let Some(sight) = self.sight {
            sight.check(problems);
        }
        group::check(&self.groups, problems);
        check_names("policy.fencing.ceph", &self.ceph, MAX_ASKED, problems);
        check_names("policy.fencing.queries", &self.queries, MAX_ASKED, problems);
    }

    /// Whether others are asked before a fence begins by itself.
    #[must_use]
    pub fn asks_others(&self) -> bool {
        !self.ceph.is_empty() || !self.queries.is_empty()
    }
}

/// Names of methods, at most so many, each once.
pub(crate) fn check_names(list: &str, names: &[String], most: usize, problems: &mut Problems) {
    if names.len() > most {
        let count = names.len();
        problems.add(list, format!("has {count} names; at most {most} are allowed"));
    }
    for (at, name) in names.iter().enumerate() {
        let field = format!("{list}[{at}]");
        if let Err(problem) = validate_name(&field, name) {
            problems.0.push(problem);
        } else if names[..at].contains(name) {
            problems.add(
                field,
                format!("names {name:?} a second time; each name is allowed once"),
            );
        }
    }
}

/// When the host is to be fenced automatically: its segment says so, it is silent, nothing holds it, and no fence has answered this silence
/// yet. A fence that a person has cancelled stays cancelled until the host has been seen UP again.
///
/// One that is FENCED already and was seen UP since may be booting, and one observer sees that before another: it has the time that a
/// rejoin would give it.
#[must_use]
pub fn fence_due(state: &HostState) -> Option<Timestamp> {
    let by_condition = due_for_a_condition(state);
    silence_due(state).map_or(by_condition, |at| {
        Some(by_condition.map_or(at, |other| at.min(other)))
    })
}

/// A host that answers is fenced for a condition where its segment says so.
fn due_for_a_condition(state: &HostState) -> Option<Timestamp> {
    let host = &state.host;
    let is_live = state
        .operation
        .as_ref()
        .is_some_and(|known| known.status.is_live());
    let is_wanted = state.policy.fencing.automatic && host.failure_state == FailureState::Up;
    let is_due = is_wanted && !is_live && host.good_fence().is_none();
    condition_due(state).filter(|_| is_due)
}

fn silence_due(state: &HostState) -> Option<Timestamp> {
    let HostState {
        host,
        operation,
        policy,
        shared: _,
        clock_set_at: _,
    } = state;
    let is_free = operation.as_ref().is_none_or(|known| {
        // One that waits for a person does not hold a host that has come back and died since.
        let gave_up = known.kind() == OperationKind::Rejoin && known.status == OperationStatus::NeedsOperator;
        gave_up || !known.status.is_live()
    });
    let is_open = host.good_fence().is_none() && !host.is_silence_answered;
    let is_wanted = policy.fencing.automatic && host.failure_state == FailureState::Unreachable;
    let since = host.failure_since.max(host.released_at)?;
    let patience_s = match host.fencing_state() {
        FencingState::Unfenced => policy.fencing.after_s,
        FencingState::Fenced => policy.fencing.after_s.max(policy.rejoin_wait_s),
    };
    (is_free && is_open && is_wanted).then(|| crate::decide::after_s(since, patience_s))
}
