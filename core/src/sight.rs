//! Sight: whether a source still hears most of its hosts. One that suddenly hears few of them is more likely cut off itself than all of them dead.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{FailureState, Host, Problems, Ruling, Safeguard, Timestamp, Verdict};

/// Seconds within which a source has to have said UP of a host to count as hearing it.
pub const HEARD_S: i64 = 180;
/// Seconds for which a count is good.
const COUNT_GOOD_S: i64 = 10;
/// Seconds by which two engines' clocks may differ.
const CLOCKS_DIFFER_S: i64 = 5;
/// Sources that one reason names.
const NAMED: usize = 3;

/// When a source's word that a host is silent counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SightPolicy {
    /// The percentage of a source's hosts that it may not hear, 1 to 99: beyond it the source counts as cut off. One host that is not heard, of two hosts or more, never is too much.
    pub at_most_percent: u32,
    /// Seconds for which it has to have heard enough of them without a break, 10 to 3600.
    pub quiet_s: u32,
}

impl SightPolicy {
    pub(crate) fn check(self, problems: &mut Problems) {
        let ranges = [
            ("at_most_percent", self.at_most_percent, 1, 99),
            ("quiet_s", self.quiet_s, 10, 3_600),
        ];
        for (field, value, min, max) in ranges {
            if !(min..=max).contains(&value) {
                problems.add(
                    format!("policy.fencing.sight.{field}"),
                    format!("is {value}; {min} to {max} is allowed"),
                );
            }
        }
    }
}

/// The hosts of one source. Those that are FENCED or being fenced are not among them: they are silent for a good reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCount {
    /// On which it has reported.
    pub hosts: u64,
    /// Of which it has said UP within [`HEARD_S`].
    pub heard: u64,
    /// Those of them of which it has said so for the quiet time without a break.
    pub steady: u64,
}

impl SourceCount {
    /// Whether so many of its hosts are too few.
    fn are_few(self, heard: u64, at_most_percent: u32) -> bool {
        let deaf = self.hosts.saturating_sub(heard);
        let is_one_of_several = deaf <= 1 && deaf < self.hosts;
        !is_one_of_several && deaf.saturating_mul(100) > self.hosts.saturating_mul(u64::from(at_most_percent))
    }
}

/// What all sources hear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sights {
    /// When that was counted.
    pub counted_at: Option<Timestamp>,
    /// By the names of the sources.
    pub by_source: BTreeMap<String, SourceCount>,
}

impl Sights {
    /// Whether the count tells of the hosts that fall silent with one whose fence is due at `due`, and is not old.
    #[must_use]
    pub fn are_good(&self, due: Option<Timestamp>, now: Timestamp) -> bool {
        let is_good = |at: Timestamp| {
            let is_fresh = (-CLOCKS_DIFFER_S..=COUNT_GOOD_S).contains(&(now - at).num_seconds());
            is_fresh && due.is_none_or(|due| due > now || at >= due)
        };
        self.counted_at.is_some_and(is_good)
    }
}

/// Holds a fence of a silent host until a source that does not hear it hears enough others, and has for long enough. `due` is when the fence is: a count from before tells nothing
/// of hosts that fall silent with this one, and nor does any count before it of a fence that may come early.
pub(crate) fn ruling(
    policy: SightPolicy,
    host: &Host,
    sights: &Sights,
    (due, is_early): (Option<Timestamp>, bool),
    now: Timestamp,
) -> Ruling {
    if let Some(due) = due.filter(|due| is_early && *due > now) {
        let due = due.format("%FT%TZ");
        let why =
            format!("hosts that fall silent together are told apart only from {due} on (fencing.after_s)");
        return held(policy, Verdict::Unknown, why);
    }
    if !sights.are_good(due, now) {
        let why = "the hosts that sources hear were not counted since the fence became due".to_owned();
        return held(policy, Verdict::Unknown, why);
    }
    let is_silent = host.failure_state == FailureState::Unreachable;
    // Before it falls silent: those that would say so.
    let sources = host
        .sources
        .iter()
        .filter(|(_, source)| source.silence.is_some() || !is_silent);
    let mut reasons = Vec::new();
    for (name, _) in sources {
        let Some(count) = sights.by_source.get(name).copied() else {
            reasons.push(format!("the hosts that {name} hears were not counted"));
            continue;
        };
        let SourceCount { hosts, heard, steady } = count;
        let hears = format!("{name} hears {heard} of its {hosts} hosts");
        if count.are_few(heard, policy.at_most_percent) {
            reasons.push(format!("{hears}, and may be cut off itself"));
        } else if count.are_few(steady, policy.at_most_percent) {
            reasons.push(format!("{hears}, and {steady} of them for {} s", policy.quiet_s));
        } else {
            return Ruling {
                safeguard: Safeguard::Sight,
                verdict: Verdict::Allow,
                reason: hears,
                release: None,
            };
        }
    }
    if reasons.is_empty() {
        reasons.push("no source says that the host is silent".to_owned());
    }
    reasons.truncate(NAMED);
    held(policy, Verdict::Hold, reasons.join("; "))
}

fn held(policy: SightPolicy, verdict: Verdict, reason: String) -> Ruling {
    let SightPolicy {
        at_most_percent,
        quiet_s,
    } = policy;
    Ruling {
        safeguard: Safeguard::Sight,
        verdict,
        reason,
        release: Some(format!(
            "a source that does not hear the host, and has heard all of its other hosts but {at_most_percent} % for {quiet_s} s"
        )),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn one_host_of_several_that_is_not_heard_is_not_few_and_all_of_them_are() {
        for (hosts, heard, at_most_percent, are_few) in [
            (0, 0, 50, false),
            (1, 1, 50, false),
            (1, 0, 99, true),
            (2, 1, 1, false),
            (2, 0, 99, true),
            (3, 1, 50, true),
            (3, 1, 67, false),
            (1_000, 10, 99, false),
            (1_000, 9, 99, true),
            (1_000, 500, 50, false),
            (1_000, 499, 50, true),
        ] {
            let count = SourceCount {
                hosts,
                heard,
                steady: 0,
            };
            assert_eq!(
                count.are_few(heard, at_most_percent),
                are_few,
                "{heard} of {hosts}, {at_most_percent} %"
            );
        }
    }

    #[test]
    fn a_count_is_good_for_10_s_and_not_from_before_the_fence_became_due() {
        let at = |seconds| Timestamp::UNIX_EPOCH + TimeDelta::seconds(seconds);
        let sights = Sights {
            counted_at: Some(at(100)),
            ..Sights::default()
        };
        for (due, now, is_good) in [
            (100, 100, true),
            (100, 110, true),
            (100, 111, false),
            (101, 101, false),
            // An explanation asks before the fence is due.
            (120, 105, true),
            // The clock of another engine is a little ahead.
            (90, 96, true),
            (90, 94, false),
        ] {
            assert_eq!(
                sights.are_good(Some(at(due)), at(now)),
                is_good,
                "due at {due}, at {now}"
            );
        }
        assert!(!Sights::default().are_good(None, at(100)));
    }
}
