//! Sight: whether a source still hears most of its hosts. One that suddenly hears few of them is more likely cut off itself than all of them dead.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{FailureState, Host, Problems, Ruling, Safeguard, Timestamp, Verdict};

/// Seconds within which a source has to have said UP of a host to count as hearing it.
pub const HEARD_S: i64 = 180;
/// Seconds for which a count is good. Without a count for so long all begins anew: a source may have been cut off in between.
const COUNT_GOOD_S: i64 = 10;
/// Seconds by which two engines' clocks may differ.
const CLOCKS_DIFFER_S: i64 = 5;
/// Sources that one reason names.
const NAMED: usize = 3;
/// The percentage of a source that hears none of its hosts.
const ALL: u32 = 100;

/// When a source's word that a host is silent counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SightPolicy {
    /// The percentage of a source's hosts that it may not hear, 1 to 99: beyond it the source counts as cut off. One host that is not heard, of two hosts or more, never is too much.
    pub at_most_percent: u32,
    /// Seconds for which it has to have heard enough of them since then, or since it was first counted, 10 to 3600.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceCount {
    /// On which it has reported.
    pub hosts: u64,
    /// Of which it has said UP within [`HEARD_S`].
    pub heard: u64,
}

impl SourceCount {
    /// The percentage that is not heard, rounded up.
    fn deaf_percent(self) -> u32 {
        let deaf = self.hosts.saturating_sub(self.heard);
        match deaf {
            0 => 0,
            deaf if deaf == self.hosts => ALL,
            1 => 0,
            // Not all of them: less than 100 %.
            deaf => u32::try_from(deaf.saturating_mul(100).div_ceil(self.hosts))
                .map_or(ALL - 1, |of| of.min(ALL - 1)),
        }
    }
}

/// A percentage that was not heard, and when it was less again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Peak {
    percent: u32,
    /// `None` for the present one.
    until: Option<Timestamp>,
}

/// What one source hears, and heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Sight {
    /// When it was first counted.
    since: Timestamp,
    count: SourceCount,
    /// By falling percentage, the present one last: what came before a higher one matters to no bound any more.
    peaks: Vec<Peak>,
}

impl Sight {
    fn new(now: Timestamp) -> Self {
        Self {
            since: now,
            count: SourceCount::default(),
            peaks: Vec::new(),
        }
    }

    fn see(&mut self, count: SourceCount, now: Timestamp) {
        self.count = count;
        let percent = count.deaf_percent();
        while self.peaks.pop_if(|peak| peak.percent <= percent).is_some() {}
        // The moment at which it shows, not the last one before: hosts that are heard again come one after the other.
        if let Some(last) = self.peaks.last_mut() {
            last.until.get_or_insert(now);
        }
        self.peaks.push(Peak { percent, until: None });
    }

    /// Since when it has heard enough; `None` while it does not.
    fn clear_since(&self, at_most_percent: u32) -> Option<Timestamp> {
        match self.peaks.iter().rfind(|peak| peak.percent > at_most_percent) {
            None => Some(self.since),
            Some(peak) => peak.until,
        }
    }
}

/// What all sources hear.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sights {
    counted_at: Option<Timestamp>,
    by_source: BTreeMap<String, Sight>,
}

impl Sights {
    /// Takes a count of all sources down. After a time without one all begins anew.
    pub fn count(&mut self, counts: BTreeMap<String, SourceCount>, now: Timestamp) {
        if !self.is_fresh(now) {
            self.by_source.clear();
        }
        let mut known = std::mem::take(&mut self.by_source);
        for (source, count) in counts {
            let mut sight = known.remove(&source).unwrap_or_else(|| Sight::new(now));
            sight.see(count, now);
            self.by_source.insert(source, sight);
        }
        self.counted_at = Some(now);
    }

    /// Whether the count is from before this moment, or there is none.
    #[must_use]
    pub fn are_before(&self, moment: Timestamp) -> bool {
        self.counted_at.is_none_or(|at| at < moment)
    }

    fn is_fresh(&self, now: Timestamp) -> bool {
        let is_within = |at: Timestamp| (-CLOCKS_DIFFER_S..=COUNT_GOOD_S).contains(&(now - at).num_seconds());
        self.counted_at.is_some_and(is_within)
    }

    /// The sources, by name.
    pub fn counts(&self) -> impl Iterator<Item = (&str, SourceCount)> {
        self.by_source
            .iter()
            .map(|(name, sight)| (name.as_str(), sight.count))
    }

    fn of_source(&self, source: &str, policy: SightPolicy, now: Timestamp) -> Result<Seeing<'_>, String> {
        let sight = self.by_source.get(source);
        let Some(sight) = sight.filter(|_| self.is_fresh(now)) else {
            return Err(format!(
                "the hosts that {source} hears were not counted within {COUNT_GOOD_S} s"
            ));
        };
        let quiet = TimeDelta::seconds(i64::from(policy.quiet_s));
        Ok(match sight.clear_since(policy.at_most_percent) {
            None => Seeing::Little(&sight.count),
            Some(since) if now - since < quiet => Seeing::Since(since, &sight.count),
            Some(_) => Seeing::Well(&sight.count),
        })
    }
}

/// What one source sees at the moment.
enum Seeing<'a> {
    Well(&'a SourceCount),
    Since(Timestamp, &'a SourceCount),
    Little(&'a SourceCount),
}

/// Holds a fence of a silent host until a source that does not hear it hears enough others. `due` is when the fence is: a count from before tells nothing of hosts that fall silent
/// with this one.
pub(crate) fn ruling(
    policy: SightPolicy,
    host: &Host,
    sights: &Sights,
    due: Option<Timestamp>,
    now: Timestamp,
) -> Ruling {
    if let Some(due) = due.filter(|due| *due <= now && sights.are_before(*due)) {
        let due = due.format("%FT%TZ");
        let why = format!("the hosts that sources hear were not counted since the fence became due at {due}");
        return held(policy, Verdict::Unknown, why);
    }
    let is_silent = host.failure_state == FailureState::Unreachable;
    // Before it falls silent: those that would say so.
    let sources = host
        .sources
        .iter()
        .filter(|(_, source)| source.silence.is_some() || !is_silent);
    let mut verdict = Verdict::Unknown;
    let mut reasons = Vec::new();
    for (name, _) in sources {
        let hears =
            |count: &SourceCount| format!("{name} hears {} of its {} hosts", count.heard, count.hosts);
        match sights.of_source(name, policy, now) {
            Ok(Seeing::Well(count)) => {
                return Ruling {
                    safeguard: Safeguard::Sight,
                    verdict: Verdict::Allow,
                    reason: hears(count),
                    release: None,
                };
            }
            Ok(Seeing::Since(since, count)) => {
                verdict = Verdict::Hold;
                reasons.push(format!("{}, since {}", hears(count), since.format("%FT%TZ")));
            }
            Ok(Seeing::Little(count)) => {
                verdict = Verdict::Hold;
                reasons.push(format!("{}, and may be cut off itself", hears(count)));
            }
            Err(why) => reasons.push(why),
        }
    }
    if reasons.is_empty() {
        reasons.push("no source says that the host is silent".to_owned());
    }
    reasons.truncate(NAMED);
    held(policy, verdict, reasons.join("; "))
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
            "a source that does not hear the host, and for {quiet_s} s all of its other hosts but {at_most_percent} %"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    /// What a source of ten hosts comes to that heard so many of them every 5 s.
    fn heard(counts: &[u64]) -> Sights {
        let mut sights = Sights::default();
        for (n, heard) in (0_i64..).zip(counts) {
            let count = SourceCount {
                hosts: 10,
                heard: *heard,
            };
            sights.count([("m".to_owned(), count)].into(), at(n * 5));
        }
        sights
    }

    #[track_caller]
    fn clear_since(counts: &[u64], at_most_percent: u32, expected: Option<i64>) {
        let sights = heard(counts);
        let found = sights.by_source["m"].clear_since(at_most_percent);
        assert_eq!(found, expected.map(at), "{sights:?}");
    }

    #[test]
    fn a_share_is_rounded_up_and_one_host_of_several_is_no_share() {
        for (hosts, heard, percent) in [
            (0, 0, 0),
            (1, 0, 100),
            (2, 1, 0),
            (2, 0, 100),
            (3, 1, 67),
            (1_000, 0, 100),
            (1_000, 1, 99),
            (1_000, 501, 50),
            (1_000, 499, 51),
        ] {
            assert_eq!(
                SourceCount { hosts, heard }.deaf_percent(),
                percent,
                "{heard} of {hosts}"
            );
        }
    }

    #[test]
    fn it_is_clear_from_the_first_count_at_which_enough_is_heard() {
        clear_since(&[10, 9, 8], 50, Some(0));
        clear_since(&[10, 2, 2], 50, None);
        clear_since(&[10, 2, 8, 9], 50, Some(10));
        // Less than for a stricter bound: to each its own moment.
        clear_since(&[10, 2, 5, 7, 10], 50, Some(10));
        clear_since(&[10, 2, 5, 7, 10], 30, Some(15));
        clear_since(&[10, 2, 5, 7, 10], 20, Some(20));
        clear_since(&[10, 2, 8, 3, 9], 75, Some(10));
        clear_since(&[10, 2, 8, 3, 9], 60, Some(20));
        clear_since(&[10, 5, 2, 9], 40, Some(15));
    }

    #[test]
    fn a_gap_begins_anew() {
        let mut sights = heard(&[10, 9]);
        sights.count(
            [("m".to_owned(), SourceCount { hosts: 10, heard: 10 })].into(),
            at(16),
        );
        assert_eq!(sights.by_source["m"].clear_since(50), Some(at(16)));
        let mut sights = heard(&[10, 9]);
        sights.count(
            [("m".to_owned(), SourceCount { hosts: 10, heard: 10 })].into(),
            at(15),
        );
        assert_eq!(sights.by_source["m"].clear_since(50), Some(at(0)));
        // The clock was set back.
        sights.count(
            [("m".to_owned(), SourceCount { hosts: 10, heard: 10 })].into(),
            at(5),
        );
        assert_eq!(sights.by_source["m"].clear_since(50), Some(at(5)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let counts: Vec<u64> = (0..400).map(|n| (n * 7) % 11).collect();
        assert!(heard(&counts).by_source["m"].peaks.len() <= 12);
    }
}
