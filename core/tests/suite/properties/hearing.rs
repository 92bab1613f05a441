//! What was known of a host from all that its sources had said, worked out by the book: whether it was UP, and how long it had been
//! silent while it was watched.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::*;

use super::facts::releases;
use ringfence_world::{Moment, World};

/// Between two reports of one source; after it its silence counts anew.
const GAP: TimeDelta = TimeDelta::seconds(30);
/// For so long a sign of life speaks against a source that was deaf to it.
const CONTESTED: TimeDelta = TimeDelta::seconds(120);
/// What is known of the lateness of a source is forgotten by a millisecond in so many.
const LEARNT_PER_MS: i64 = 100;

/// A silence that was watched by every source that had ever heard the host: from when on, and until when it is known.
#[derive(Clone, Copy, Debug)]
pub struct Silent {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// What was known after one moment.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub state: FailureState,
    pub silence: Option<Silent>,
    /// By when, at the latest, a sign of life came that was told of in this moment, and that is not known already: a source that hears
    /// nothing repeats its last one.
    pub sign: Option<Timestamp>,
}

/// What one source has said.
#[derive(Clone, Copy, Debug)]
struct Ear {
    state: FailureState,
    observed_at: Timestamp,
    reported_at: Timestamp,
    alive_at: Option<Timestamp>,
    /// The least by which its reports have been late, lately: its clock may be behind.
    late: TimeDelta,
    /// Whether it says when it last heard the host.
    is_dated: bool,
    /// Since when, by what it saw, it hears nothing.
    silent_since: Option<Timestamp>,
    /// Since when, by the engine's clock, its reports of that have come without a gap.
    watched_from: Timestamp,
}

/// What all sources have said, and what breaks a silence.
struct Listening<'a> {
    ears: BTreeMap<&'a str, Ear>,
    /// The last sign of life, and the last time that anything may have been given back.
    broken_at: Option<Timestamp>,
    /// Claims of what gives something back whose results have not arrived.
    giving: Vec<Claim>,
}

/// What was known after each moment of a record.
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
    /// A clock that was moved back takes the moments of the future with it.
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

    /// Gives the sign of life that it tells of.
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

    /// By the table: a silence that no sign of another source speaks against; else whoever says UP; and a sign that is old speaks no more.
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

    /// Every source that has ever heard the host says that it hears nothing, and since when.
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
    /// By how much the clock of its source may be behind.
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
            // By its own clock it tells for how long it has heard nothing.
            self.watched_from = self.watched_from.max(now - (observed_at - last_seen));
        }
        self.is_dated = last_seen.is_some();
        self.state = state;
        self.observed_at = observed_at;
        self.reported_at = now;
    }
}
