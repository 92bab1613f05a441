//! What all sources' reports together say about a host, worked out by the design: whether the host was UP, and how long it had been
//! silent while it was watched.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::*;

use super::facts::releases;
use ringfence_world::{Moment, World};

/// The largest gap between two reports of one source; after a larger gap its silence counts anew.
const GAP: TimeDelta = TimeDelta::seconds(30);
/// How long a sign of life counts against a source that missed it.
const CONTESTED: TimeDelta = TimeDelta::seconds(120);
/// The part of a source's known lateness that is forgotten: one millisecond in this number.
const LEARNT_PER_MS: i64 = 100;

/// A silence that was watched by every source that had ever heard the host: its beginning, and its end so far.
#[derive(Clone, Copy, Debug)]
pub struct Silent {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// What is known after one moment.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub state: FailureState,
    pub silence: Option<Silent>,
    /// The latest possible time of a new sign of life in this moment. A source that hears nothing repeats its last sign, which is not
    /// new.
    pub sign: Option<Timestamp>,
}

/// What one source has reported.
#[derive(Clone, Copy, Debug)]
struct Ear {
    state: FailureState,
    observed_at: Timestamp,
    reported_at: Timestamp,
    alive_at: Option<Timestamp>,
    /// The least lateness of its recent reports: its clock may be behind.
    late: TimeDelta,
    /// Whether it reports when it last heard the host.
    is_dated: bool,
    /// The beginning of its silence, by its own observations.
    silent_since: Option<Timestamp>,
    /// The time since which it has reported silence without a gap, by the engine's clock.
    watched_from: Timestamp,
}

/// What all sources have reported, and what ends a silence.
struct Listening<'a> {
    ears: BTreeMap<&'a str, Ear>,
    /// The last sign of life, or the last time that something may have been given back.
    broken_at: Option<Timestamp>,
    /// Claims that give something back and have no result yet.
    giving: Vec<Claim>,
}

/// What is known after each moment of a record.
pub fn heard(world: &World) -> Vec<Known> {
    let mut listening = Listening {
        ears: BTreeMap::new(),
        broken_at: None,
        giving: Vec::new(),
    };
    let mut all = Vec::with_capacity(world.trace.len());
    for moment in &world.trace {
        let mut sign = None;
        if let Ok(decision) = &moment.said {
            listening.pull_back(moment.now);
            sign = listening.take(moment, decision);
        }
        all.push(Known {
            sign,
            state: listening.state(moment.now),
            silence: listening.silence(),
        });
    }
    all
}

impl<'a> Listening<'a> {
    /// Setting the clock back also sets back times that are in the future.
    fn pull_back(&mut self, now: Timestamp) {
        for ear in self.ears.values_mut() {
            ear.observed_at = ear.observed_at.min(now);
            ear.reported_at = ear.reported_at.min(now);
            ear.alive_at = ear.alive_at.map(|at| at.min(now));
            ear.silent_since = ear.silent_since.map(|at| at.min(now));
            ear.watched_from = ear.watched_from.min(now);
        }
        self.broken_at = self.broken_at.map(|at| at.min(now));
    }

    /// Takes a moment in, and returns its new sign of life.
    fn take(&mut self, moment: &'a Moment, decision: &Decision) -> Option<Timestamp> {
        let now = moment.now;
        match (&moment.input, &decision.answer) {
            (Input::FailureState { report, .. }, _) => return self.hear(report, now),
            (Input::ForgetSource { source, .. }, _) => drop(self.ears.remove(source.as_str())),
            (Input::Rejoin { .. }, Reply::Started(_)) | (Input::ConfirmReleased { .. }, Reply::Done) => {
                self.broken_at = Some(now);
            }
            (Input::Claim(claim), Reply::Granted { .. }) => self.may_give(claim, now),
            (Input::Result(TaskResult { claim, .. }), _) => self.has_given(claim, now),
            _ => {}
        }
        None
    }

    fn may_give(&mut self, claim: &Claim, now: Timestamp) {
        if releases(claim.kind) && !self.giving.contains(claim) {
            self.giving.push(claim.clone());
            self.broken_at = Some(now);
        }
    }

    fn has_given(&mut self, claim: &Claim, now: Timestamp) {
        if self.giving.contains(claim) {
            self.giving.retain(|known| known != claim);
            self.broken_at = Some(now);
        }
    }

    fn hear(&mut self, report: &'a Report, now: Timestamp) -> Option<Timestamp> {
        let is_up = report.state == FailureState::Up;
        if is_up {
            self.broken_at = Some(now);
        }
        let observed_at = report.observed_at.min(now);
        let ear = self.ears.entry(&report.source).or_insert(Ear {
            state: FailureState::Unknown,
            observed_at,
            reported_at: now,
            alive_at: None,
            late: now - observed_at,
            is_dated: false,
            silent_since: None,
            watched_from: now,
        });
        let late = ear.lateness(observed_at, now);
        let alive_at = report.alive_at().map(|at| at.min(observed_at));
        let sign = alive_at.filter(|at| is_up || Some(*at) > ear.alive_at);
        if let Some(sign) = sign {
            ear.silent_since = ear.silent_since.map(|since| since.max(sign));
        }
        ear.alive_at = ear.alive_at.max(alive_at);
        if observed_at >= ear.observed_at {
            ear.late = late;
            let last_seen = report.silent_since.or(report.last_seen_at);
            let last_seen = last_seen.map(|at| at.min(observed_at));
            ear.say(report.state, observed_at, last_seen, now);
        }
        sign.map(|at| (at + late).min(now))
    }

    /// By the design: silence, if no sign of life of another source counts against it; otherwise UP, until the sign is too old.
    fn state(&self, now: Timestamp) -> FailureState {
        let says_up = self.ears.values().any(|ear| ear.state == FailureState::Up);
        let otherwise = if says_up {
            FailureState::Up
        } else {
            FailureState::Unknown
        };
        let mut silent = self
            .ears
            .iter()
            .filter(|(_, ear)| ear.silent_since.is_some())
            .peekable();
        if silent.peek().is_none() {
            return otherwise;
        }
        let is_good = |(name, ear): (&&str, &Ear)| {
            let mut others = self.ears.iter().filter(|(other, _)| *other != name);
            !others.any(|(_, other)| other.alive_at > ear.silent_since)
        };
        let last_sign = self.ears.values().filter_map(|ear| ear.alive_at).max();
        let is_old = last_sign.is_none_or(|at| at + CONTESTED <= now);
        if silent.any(is_good) || is_old {
            FailureState::Unreachable
        } else {
            otherwise
        }
    }

    /// The silence that every source which has ever heard the host reports.
    fn silence(&self) -> Option<Silent> {
        let witnesses = || self.ears.values().filter(|ear| ear.alive_at.is_some());
        if witnesses().any(|ear| ear.silent_since.is_none() || !ear.is_dated) {
            return None;
        }
        let from = witnesses().map(|ear| ear.watched_from).max()?;
        Some(Silent {
            from: self.broken_at.map_or(from, |at| from.max(at)),
            to: witnesses().map(|ear| ear.observed_at).min()?,
        })
    }
}

impl Ear {
    /// The most that the source's clock may be behind.
    fn lateness(&self, observed_at: Timestamp, now: Timestamp) -> TimeDelta {
        let forgotten = (now - self.reported_at).num_milliseconds() / LEARNT_PER_MS;
        (now - observed_at).min(self.late + TimeDelta::milliseconds(forgotten))
    }

    fn say(
        &mut self,
        state: FailureState,
        observed_at: Timestamp,
        last_seen: Option<Timestamp>,
        now: Timestamp,
    ) {
        let is_watched = now - self.reported_at <= GAP && observed_at - self.observed_at <= GAP;
        match (state, self.silent_since) {
            (FailureState::Unreachable, Some(_)) if is_watched => {}
            (FailureState::Unreachable, since) => {
                self.silent_since = since.or(Some(observed_at));
                self.watched_from = now;
            }
            (FailureState::Up | FailureState::Unknown, _) => self.silent_since = None,
        }
        if let Some(last_seen) = last_seen {
            // By its own clock the source reports how long it has heard nothing.
            self.watched_from = self.watched_from.max(now - (observed_at - last_seen));
        }
        self.is_dated = last_seen.is_some();
        self.state = state;
        self.observed_at = observed_at;
        self.reported_at = now;
    }
}
