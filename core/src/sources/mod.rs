//! What each source saw of a host, kept apart. Two sources that disagree are two facts.

mod report;
mod seen;
mod source;
mod watched;

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

pub use self::report::Report;
pub use self::seen::{Seen, SeenBecause};
pub use self::source::{Silence, Source};
pub use self::watched::Watched;
use crate::boots::Verdict;
use crate::guard::{Guard, on};
use crate::undoing::dated_from;
use crate::{Boots, FailureState, SeenBoot, Timestamp};

/// Seconds between two reports of one source after which no source has watched in between: silence counts anew.
pub const WATCHED_GAP_S: u32 = 30;
/// Seconds for which a sign of life speaks against a source that was deaf to it.
pub const CONTESTED_S: u32 = 120;
/// Milliseconds by which the reports of a source may be late of which nothing is known: a day.
const UNKNOWN_LATE_MS: i64 = 86_400_000;
/// The most sources of one host.
pub const MAX_SOURCES: usize = 16;

/// A report that changes nothing: its source has said something newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stale {
    /// When the newer one was observed.
    pub known: Timestamp,
}

/// All sources of one host, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sources {
    by_name: BTreeMap<String, Source>,
    /// What is left of those that were struck off: they report no more, and what they heard was heard.
    struck_off: Heard,
}

/// The newest signs of life that some sources had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Heard {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alive_by: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    alive_reported_at: Option<Timestamp>,
}

impl Sources {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.by_name.iter().map(|(name, source)| (name.as_str(), source))
    }

    /// The one of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Source> {
        self.by_name.get(name)
    }

    /// Of those that were struck off: by when the newest sign of life came that one had, and when the engine last heard of one.
    #[must_use]
    pub fn struck_off(&self) -> (Option<Timestamp>, Option<Timestamp>) {
        let Self {
            by_name: _,
            struck_off: Heard {
                alive_by,
                alive_reported_at,
            },
        } = self;
        (*alive_by, *alive_reported_at)
    }

    /// Whether there is room for one of this name.
    pub(crate) fn takes(&self, name: &str) -> bool {
        self.by_name.len() < MAX_SOURCES || self.by_name.contains_key(name)
    }

    /// Strikes a source off. `false` if there is none of this name.
    pub(crate) fn forget(&mut self, name: &str) -> bool {
        let Some(source) = self.by_name.remove(name) else {
            return false;
        };
        let heard = &mut self.struck_off;
        heard.alive_by = heard.alive_by.max(source.alive_by);
        heard.alive_reported_at = heard.alive_reported_at.max(source.alive_reported_at);
        true
    }

    /// Takes a report down, and tells by when the sign of life came that is news in it, by the engine's clock.
    ///
    /// # Errors
    /// It is older than the last one of its source, and no sign of life: that one counts whenever it arrives.
    pub(crate) fn take(
        &mut self,
        report: &Report,
        clock_set_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, Stale> {
        let known = self.by_name.entry(report.source.clone());
        let known = known.or_insert_with(|| Source::new(report.observed_at, now));
        let is_late = report.observed_at < known.observed_at;
        let late_ms = known.lateness_ms(report.observed_at, now);
        let late = TimeDelta::milliseconds(if on(Guard::LateSourceIsLate) { late_ms } else { 0 });
        let alive_at = report.alive_at();
        // A date from before the clock was set does not tell whether the sign came before or after what was noted then.
        let set_at = clock_set_at.filter(|_| on(Guard::LifeSinceClockSet));
        let is_dated = |at: Timestamp| set_at.is_none_or(|set_at| at > dated_from(set_at));
        let by = |at| if is_dated(at) { (at + late).min(now) } else { now };
        let alive_by = alive_at.map(by);
        // A silence that goes on tells of one sign of life again and again.
        let is_news = report.state == FailureState::Up || alive_at > known.alive_at;
        if is_late && !is_news {
            return Err(Stale {
                known: known.observed_at,
            });
        }
        if let Some(alive_at) = alive_at {
            known.heard(alive_at, report.state, now);
            known.alive_by = known.alive_by.max(alive_by);
        }
        if let Some(boot) = &report.boot {
            known
                .boots
                .note(boot.clone(), alive_at.unwrap_or(report.observed_at));
        }
        if !is_late {
            known.silence = known.silence_after(report, now);
            known.up_since = known.up_since_after(report, now);
            known.state = report.state;
            known.observed_at = report.observed_at;
            known.reported_at = now;
            known.late_ms = late_ms;
        }
        Ok(alive_by.filter(|_| is_news))
    }

    /// The newest sign of life, and whose it is.
    #[must_use]
    pub fn alive(&self) -> Option<(Timestamp, &str)> {
        let signs = self
            .iter()
            .filter_map(|(name, source)| Some((source.alive_at?, name)));
        signs.max()
    }

    /// When the newest sign of life came.
    #[must_use]
    pub fn alive_at(&self) -> Option<Timestamp> {
        self.alive().map(|(at, _)| at)
    }

    /// By when the newest sign of life came.
    #[must_use]
    pub fn alive_by(&self) -> Option<Timestamp> {
        let known = self.by_name.values().filter_map(|source| source.alive_by);
        known.chain(self.struck_off.alive_by).max()
    }

    /// The boot that was seen last, by whichever source.
    #[must_use]
    pub fn latest_boot(&self) -> Option<&SeenBoot> {
        let boots = self.by_name.values().filter_map(|source| source.boots.latest());
        boots.max_by_key(|seen| seen.last_seen)
    }

    /// Whether a source shows that the host runs a boot that began after `moment`, and none has seen an older one since.
    #[must_use]
    pub fn has_booted_since(&self, moment: Timestamp, clock_set_at: Option<Timestamp>) -> bool {
        let verdicts = || {
            self.by_name
                .values()
                .filter_map(|source| source.boots.since(moment, clock_set_at))
        };
        let newer = verdicts().filter_map(|verdict| match verdict {
            Verdict::Newer(first_seen) => Some(first_seen),
            Verdict::Older(_) => None,
        });
        newer.max().is_some_and(|newer| {
            self.older_boot_seen(moment, clock_set_at)
                .is_none_or(|older| older < newer)
        })
    }

    /// When a boot was last seen that had begun before `moment`, if one was seen after it.
    #[must_use]
    pub fn older_boot_seen(&self, moment: Timestamp, clock_set_at: Option<Timestamp>) -> Option<Timestamp> {
        let verdicts = self
            .by_name
            .values()
            .filter_map(|source| source.boots.since(moment, clock_set_at));
        let older = verdicts.filter_map(|verdict| match verdict {
            Verdict::Older(last_seen) => Some(last_seen),
            Verdict::Newer(_) => None,
        });
        older.max()
    }

    /// What has to outlive the database of each source that has heard the host.
    pub(crate) fn witnesses(&self) -> BTreeMap<String, Boots> {
        let heard = self.iter().filter(|(_, source)| source.alive_at.is_some());
        heard
            .map(|(name, source)| (name.to_owned(), source.boots.settled()))
            .collect()
    }

    /// Restores the sources that have heard the host. When they did is not known any more: long ago. Nor is how late their reports are: the
    /// first one that comes is taken to be late by all that it may be.
    pub(crate) fn restore(&mut self, witnesses: BTreeMap<String, Boots>, written_at: Timestamp) {
        for (name, boots) in witnesses {
            let source = Source {
                boots,
                alive_at: Some(Timestamp::UNIX_EPOCH),
                late_ms: if on(Guard::RestoredMayBeLate) {
                    UNKNOWN_LATE_MS
                } else {
                    0
                },
                ..Source::new(written_at, written_at)
            };
            self.by_name.insert(name, source);
        }
    }

    /// No moment lies after `now`.
    pub(crate) fn adjust(&mut self, now: Timestamp) {
        let heard = &mut self.struck_off;
        heard.alive_by = heard.alive_by.map(|at| at.min(now));
        heard.alive_reported_at = heard.alive_reported_at.map(|at| at.min(now));
        for source in self.by_name.values_mut() {
            source.observed_at = source.observed_at.min(now);
            source.reported_at = source.reported_at.min(now);
            source.alive_at = source.alive_at.map(|at| at.min(now));
            source.alive_by = source.alive_by.map(|at| at.min(now));
            source.alive_reported_at = source.alive_reported_at.map(|at| at.min(now));
            source.up_since = source.up_since.map(|at| at.min(now));
            if let Some(silence) = &mut source.silence {
                silence.since = silence.since.min(now);
                silence.watched_from = silence.watched_from.min(now);
            }
            source.boots.adjust(now);
        }
    }
}
