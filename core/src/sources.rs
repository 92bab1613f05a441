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
/// What is known of a source's lateness is forgotten by a millisecond in so many: its clock may have been set.
const LEARNT_PER_MS: i64 = 100;
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
    /// When it last had a sign of life of the host, where it reports something else than UP: that moment, or one that the sign came
    /// after. Without it a report of silence says nothing about the time before it.
    pub last_seen_at: Option<Timestamp>,
    /// A moment since which it has had none for certain; `last_seen_at` if that is not known to be earlier.
    pub silent_since: Option<Timestamp>,
    /// The boot that it saw.
    pub boot: Option<Boot>,
}

impl Report {
    /// The sign of life that it tells of.
    #[must_use]
    pub fn alive_at(&self) -> Option<Timestamp> {
        match self.state {
            FailureState::Up => Some(self.observed_at),
            FailureState::Unreachable | FailureState::Unknown => self.last_seen_at,
        }
    }
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
    /// Milliseconds by which its reports are late at least: its clock is behind, or its way is long. What it saw, it saw up to so much
    /// later than it says.
    pub late_ms: i64,
    /// By when its newest sign of life came, by the engine's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alive_by: Option<Timestamp>,
    /// Its newest sign of life of the host, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alive_at: Option<Timestamp>,
    /// When the engine last heard of a sign of life, however old that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alive_reported_at: Option<Timestamp>,
    /// The silence that it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<Silence>,
    /// The boots that it saw.
    pub boots: Boots,
}

/// A silence that a source reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// When the source first saw it.
    pub since: Timestamp,
    /// Since when its reports have come without a gap, by the engine's clock.
    pub watched_from: Timestamp,
    /// Whether the source says when it last had a sign of life: without that it does not tell whether it had one between two reports.
    pub is_dated: bool,
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
    pub(crate) fn take(&mut self, report: &Report, now: Timestamp) -> Result<Option<Timestamp>, Stale> {
        let known = self.by_name.entry(report.source.clone());
        let known = known.or_insert_with(|| Source::new(report.observed_at, now));
        let is_late = report.observed_at < known.observed_at;
        let late_ms = known.lateness_ms(report.observed_at, now);
        let late = TimeDelta::milliseconds(if on(Guard::LateSourceIsLate) { late_ms } else { 0 });
        let alive_at = report.alive_at();
        let alive_by = alive_at.map(|at| (at + late).min(now));
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
    /// silence, or not since when: that one might have heard it.
    #[must_use]
    pub fn watched_silence(&self) -> Option<Watched> {
        let mut watched: Option<Watched> = None;
        for source in self.by_name.values() {
            if source.alive_at.is_none() {
                continue;
            }
            let dated = |silence: &Silence| silence.is_dated || !on(Guard::SilenceIsDated);
            let Some(silence) = source.silence.filter(dated) else {
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
            .by_name
            .values()
            .filter_map(|source| source.alive_reported_at);
        let heard = heard.chain(self.struck_off.alive_reported_at).max();
        let heard = heard.filter(|_| on(Guard::LifeBreaksSilence));
        watched.map(|watched| Watched {
            from: heard.map_or(watched.from, |heard| watched.from.max(heard)),
            ..watched
        })
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
            if let Some(silence) = &mut source.silence {
                silence.since = silence.since.min(now);
                silence.watched_from = silence.watched_from.min(now);
            }
            source.boots.adjust(now);
        }
    }
}

impl Source {
    /// The least by which its reports have been late, lately: a single late one says nothing about its clock.
    fn lateness_ms(&self, observed_at: Timestamp, now: Timestamp) -> i64 {
        let late_ms = (now - observed_at).num_milliseconds().max(0);
        let forgotten_ms = (now - self.reported_at).num_milliseconds().max(0) / LEARNT_PER_MS;
        late_ms.min(self.late_ms + forgotten_ms)
    }

    /// One that has said nothing yet.
    fn new(observed_at: Timestamp, now: Timestamp) -> Self {
        Self {
            state: FailureState::Unknown,
            observed_at,
            reported_at: now,
            late_ms: (now - observed_at).num_milliseconds().max(0),
            alive_by: None,
            alive_at: None,
            alive_reported_at: None,
            silence: None,
            boots: Boots::default(),
        }
    }

    /// A sign of life, perhaps a late one: silence begins anew after it.
    fn heard(&mut self, alive_at: Timestamp, state: FailureState, now: Timestamp) {
        let is_new = Some(alive_at) > self.alive_at;
        self.alive_at = self.alive_at.max(Some(alive_at));
        if state == FailureState::Up {
            self.alive_reported_at = self.alive_reported_at.max(Some(now));
        }
        if let Some(silence) = &mut self.silence
            && (is_new || state == FailureState::Up)
        {
            silence.since = silence.since.max(alive_at);
        }
    }

    /// The silence that it reports now.
    fn silence_after(&self, report: &Report, now: Timestamp) -> Option<Silence> {
        if report.state != FailureState::Unreachable {
            return None;
        }
        let gap = TimeDelta::seconds(i64::from(WATCHED_GAP_S));
        let is_watched = now - self.reported_at <= gap && report.observed_at - self.observed_at <= gap;
        let known = self.silence;
        let watched = known.filter(|_| is_watched || !on(Guard::GapBreaksSilence));
        // By its own clock the source tells how long ago it had its last sign of life.
        let silent_since = report.silent_since.or(report.last_seen_at);
        let silent_for = silent_since.map(|since| (report.observed_at - since).max(TimeDelta::zero()));
        let last_seen = silent_for
            .map(|silent_for| now - silent_for)
            .filter(|_| on(Guard::LastSeenBreaksSilence));
        let watched_from = watched.map_or(now, |silence| silence.watched_from);
        Some(Silence {
            since: known.map_or(report.observed_at, |silence| silence.since),
            watched_from: last_seen.map_or(watched_from, |last_seen| watched_from.max(last_seen)),
            is_dated: silent_since.is_some(),
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
