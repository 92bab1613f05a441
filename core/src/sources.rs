//! What each source saw of a host, kept apart, and what all of it comes to.
//!
//! Two sources that disagree are two facts. Who beats whom:
//!
//! | what the sources say | the failure state |
//! |---|---|
//! | a silence began after the last sign of life that any source had | `UNREACHABLE` |
//! | no source reports silence, and one says UP | `UP` |
//! | no source reports silence, and none says UP | `UNKNOWN` |
//! | a source had a sign of life within another one's silence, not longer than [`CONTESTED_S`] ago, and still says UP | `UP` |
//! | as before, but it no longer says UP | `UNKNOWN` |
//! | as before, longer than [`CONTESTED_S`] ago | `UNREACHABLE` |
//!
//! A sign of life beats a silence that had begun before it: who did not hear the host then is deaf to it. It does so for a while
//! only, so that a source which has stopped to report cannot hold the host UP for ever: whoever sees a host UP repeats it.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::boots::Verdict;
use crate::guard::{Guard, on};
use crate::{Boot, Boots, FailureState, SeenBoot, Timestamp};

/// Seconds between two reports of one source after which nobody has watched in between: silence counts anew.
pub const WATCHED_GAP_S: u32 = 30;
/// Seconds for which a sign of life speaks against a source that was deaf to it.
pub const CONTESTED_S: u32 = 120;
/// The most sources of one host.
pub const MAX_SOURCES: usize = 16;

/// What one source says about a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What it saw.
    pub state: FailureState,
    /// Who it is.
    pub source: String,
    /// When it saw that. For `UP` a moment that the last sign of life came after, or the moment of the sign.
    pub observed_at: Timestamp,
    /// The boot that it saw.
    pub boot: Option<Boot>,
}

/// What one source saw last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// What it said last.
    pub state: FailureState,
    /// When it saw that.
    pub observed_at: Timestamp,
    /// When the engine heard it.
    pub reported_at: Timestamp,
    /// Its newest sign of life of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alive_at: Option<Timestamp>,
    /// When the engine last heard of a sign of life, however old that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alive_reported_at: Option<Timestamp>,
    /// The silence that it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<Silence>,
    /// The boots that it saw.
    #[serde(default)]
    pub boots: Boots,
}

/// A silence that a source reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// When the source first saw it.
    pub since: Timestamp,
    /// Since when its reports have come without a gap, by the engine's clock.
    pub watched_from: Timestamp,
}

/// What all sources come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen<'a> {
    /// The failure state.
    pub state: FailureState,
    /// The source that it rests on.
    pub source: Option<&'a str>,
    /// When that source saw it.
    pub observed_at: Option<Timestamp>,
    /// When time alone changes it.
    pub until: Option<Timestamp>,
}

/// How long a host has been silent while every source that would have heard it was listening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Since when, by the engine's clock.
    pub from: Timestamp,
    /// Until when it is known.
    pub to: Timestamp,
    /// When the watch ends unless another report comes.
    pub lapses_at: Timestamp,
}

/// A report that changes nothing: its source has said something newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stale {
    /// When the newer one was observed.
    pub known: Timestamp,
}

/// All sources of one host, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sources(BTreeMap<String, Source>);

impl Sources {
    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.0.iter().map(|(name, source)| (name.as_str(), source))
    }

    /// The one of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Source> {
        self.0.get(name)
    }

    /// Whether there is room for one of this name.
    pub(crate) fn takes(&self, name: &str) -> bool {
        self.0.len() < MAX_SOURCES || self.0.contains_key(name)
    }

    /// Strikes a source off. `false` if there is none of this name.
    pub(crate) fn forget(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    /// Takes a report down.
    ///
    /// # Errors
    /// It is older than the last one of its source, and no sign of life: that one counts whenever it arrives.
    pub(crate) fn take(&mut self, report: Report, now: Timestamp) -> Result<(), Stale> {
        let Report {
            state,
            source,
            observed_at,
            boot,
        } = report;
        let is_life = state == FailureState::Up;
        let Some(known) = self.0.get_mut(&source) else {
            let first = Source::first(state, observed_at, boot, now);
            self.0.insert(source, first);
            return Ok(());
        };
        let is_late = observed_at < known.observed_at;
        if is_late && !is_life {
            return Err(Stale {
                known: known.observed_at,
            });
        }
        if is_life {
            known.heard(observed_at, now);
        }
        if let Some(boot) = boot {
            known.boots.note(boot, observed_at);
        }
        if !is_late {
            known.silence = known.silence_after(state, observed_at, now);
            known.state = state;
            known.observed_at = observed_at;
            known.reported_at = now;
        }
        Ok(())
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

    /// The boot that was seen last, by whichever source.
    #[must_use]
    pub fn latest_boot(&self) -> Option<&SeenBoot> {
        let boots = self.0.values().filter_map(|source| source.boots.latest());
        boots.max_by_key(|seen| seen.last_seen)
    }

    /// Whether a source shows that the host runs a boot that began after `moment`, and none has seen an older one since.
    #[must_use]
    pub fn has_booted_since(&self, moment: Timestamp, clock_set_at: Option<Timestamp>) -> bool {
        let verdicts = || self.0.values().filter_map(|source| source.boots.since(moment, clock_set_at));
        let newer = verdicts().filter_map(|verdict| match verdict {
            Verdict::Newer(first_seen) => Some(first_seen),
            Verdict::Older(_) => None,
        });
        newer
            .max()
            .is_some_and(|newer| self.older_boot_seen(moment, clock_set_at).is_none_or(|older| older < newer))
    }

    /// When a boot was last seen that had begun before `moment`, if one was seen after it.
    #[must_use]
    pub fn older_boot_seen(&self, moment: Timestamp, clock_set_at: Option<Timestamp>) -> Option<Timestamp> {
        let verdicts = self.0.values().filter_map(|source| source.boots.since(moment, clock_set_at));
        let older = verdicts.filter_map(|verdict| match verdict {
            Verdict::Older(last_seen) => Some(last_seen),
            Verdict::Newer(_) => None,
        });
        older.max()
    }

    /// What all of it comes to; the table is at the top.
    #[must_use]
    pub fn seen(&self, now: Timestamp) -> Seen<'_> {
        let silent = self.latest_of(|_, source| source.silence.is_some());
        let Some(silent) = silent else {
            let up = self.latest_of(|_, source| source.state == FailureState::Up);
            return Seen::by(up.or_else(|| self.latest_of(|_, _| true)));
        };
        if let Some(good) = self.latest_of(|name, source| self.is_uncontested(name, source)) {
            return Seen::by(Some(good));
        }
        let heard_at = self.alive_at().unwrap_or(now);
        let until = heard_at + TimeDelta::seconds(i64::from(CONTESTED_S));
        if until <= now {
            return Seen::by(Some(silent));
        }
        let up = self.latest_of(|_, source| source.state == FailureState::Up);
        let seen = Seen::by(up);
        Seen {
            until: Some(until),
            ..seen
        }
    }

    /// Whether its silence began after every sign of life that another one had.
    fn is_uncontested(&self, name: &str, source: &Source) -> bool {
        let Some(silence) = source.silence else {
            return false;
        };
        let others = self.iter().filter(|(other, _)| *other != name);
        let mut signs = others.filter_map(|(_, other)| other.alive_at);
        !(on(Guard::SilenceContested) && signs.any(|at| at > silence.since))
    }

    fn latest_of(&self, is_it: impl Fn(&str, &Source) -> bool) -> Option<(&str, &Source)> {
        let found = self.iter().filter(|(name, source)| is_it(name, source));
        found.max_by_key(|(_, source)| source.observed_at)
    }

    /// How long the host has been silent while it was watched. `None` if no source has ever heard it, or one that has does not report
    /// silence: that one might hear it.
    #[must_use]
    pub fn watched_silence(&self) -> Option<Watched> {
        let mut watched: Option<Watched> = None;
        for source in self.0.values() {
            if on(Guard::WitnessHasHeard) && source.alive_at.is_none() {
                continue;
            }
            let Some(silence) = source.silence else {
                if on(Guard::EveryWitnessIsSilent) {
                    return None;
                }
                continue;
            };
            let own = Watched {
                from: silence.watched_from,
                to: source.observed_at,
                lapses_at: source.reported_at + TimeDelta::seconds(i64::from(WATCHED_GAP_S)),
            };
            watched = Some(watched.map_or(own, |other| other.and(own)));
        }
        let heard = self
            .0
            .values()
            .filter_map(|source| source.alive_reported_at)
            .max();
        let heard = heard.filter(|_| on(Guard::LifeBreaksSilence));
        watched.map(|watched| Watched {
            from: heard.map_or(watched.from, |heard| watched.from.max(heard)),
            ..watched
        })
    }

    /// No moment lies after `now`.
    pub(crate) fn adjust(&mut self, now: Timestamp) {
        for source in self.0.values_mut() {
            source.observed_at = source.observed_at.min(now);
            source.reported_at = source.reported_at.min(now);
            source.alive_at = source.alive_at.map(|at| at.min(now));
            source.alive_reported_at = source.alive_reported_at.map(|at| at.min(now));
            if let Some(silence) = &mut source.silence {
                silence.since = silence.since.min(now);
                silence.watched_from = silence.watched_from.min(now);
            }
            source.boots.adjust(now);
        }
    }
}

impl Source {
    fn first(state: FailureState, observed_at: Timestamp, boot: Option<Boot>, now: Timestamp) -> Self {
        let is_life = state == FailureState::Up;
        let mut boots = Boots::default();
        if let Some(boot) = boot {
            boots.note(boot, observed_at);
        }
        Self {
            state,
            observed_at,
            reported_at: now,
            alive_at: is_life.then_some(observed_at),
            alive_reported_at: is_life.then_some(now),
            silence: (state == FailureState::Unreachable).then_some(Silence {
                since: observed_at,
                watched_from: now,
            }),
            boots,
        }
    }

    /// A sign of life, perhaps a late one: silence begins anew after it.
    fn heard(&mut self, observed_at: Timestamp, now: Timestamp) {
        self.alive_at = self.alive_at.max(Some(observed_at));
        self.alive_reported_at = self.alive_reported_at.max(Some(now));
        if let Some(silence) = &mut self.silence {
            silence.since = silence.since.max(observed_at);
        }
    }

    /// The silence that it reports now.
    fn silence_after(&self, state: FailureState, observed_at: Timestamp, now: Timestamp) -> Option<Silence> {
        if state != FailureState::Unreachable {
            return None;
        }
        let gap = TimeDelta::seconds(i64::from(WATCHED_GAP_S));
        let Some(silence) = self.silence else {
            return Some(Silence {
                since: observed_at,
                watched_from: now,
            });
        };
        let is_watched = now - self.reported_at <= gap && observed_at - self.observed_at <= gap;
        Some(Silence {
            since: silence.since,
            watched_from: if is_watched || !on(Guard::GapBreaksSilence) {
                silence.watched_from
            } else {
                now
            },
        })
    }
}

impl<'a> Seen<'a> {
    fn by(found: Option<(&'a str, &'a Source)>) -> Self {
        Self {
            state: found.map_or(FailureState::Unknown, |(_, source)| source.state),
            source: found.map(|(name, _)| name),
            observed_at: found.map(|(_, source)| source.observed_at),
            until: None,
        }
    }
}

impl Watched {
    fn and(self, other: Self) -> Self {
        Self {
            from: self.from.max(other.from),
            to: self.to.min(other.to),
            lapses_at: self.lapses_at.min(other.lapses_at),
        }
    }
}
