//! The verdict over the reports of all sources. Precedence:
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
//! only, so that a source which has stopped to report cannot hold the host UP for ever: a source that sees a host UP repeats it.

use std::fmt;

use chrono::TimeDelta;

use super::{CONTESTED_S, Source, Sources};
use crate::guard::{Guard, on};
use crate::{FailureState, Timestamp};

/// The verdict over all sources.
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
    /// The row of the table that says so.
    pub because: SeenBecause,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenBecause {
    /// No source has reported.
    NoReport,
    /// No source reports silence, and one says UP.
    Up,
    /// No source reports silence, and none says UP.
    NotUp,
    /// A silence began after the last sign of life that any other source had.
    Silent,
    /// A source had a sign of life within the silence of another source, and still says UP.
    SaysUp,
    /// A source had a sign of life within the silence of another source, and says UP no more.
    SaidUp,
    /// The sign of life within the silence is too long ago to speak against it.
    SignIsOld,
}

impl Sources {
    /// What all of it comes to; the table is at the top.
    #[must_use]
    pub fn seen(&self, now: Timestamp) -> Seen<'_> {
        let silent = self.latest_of(|_, source| source.silence.is_some());
        let Some(silent) = silent else {
            let up = self.latest_of(|_, source| source.state == FailureState::Up);
            let because = if up.is_some() {
                SeenBecause::Up
            } else if self.by_name.is_empty() {
                SeenBecause::NoReport
            } else {
                SeenBecause::NotUp
            };
            return Seen::by(up.or_else(|| self.latest_of(|_, _| true)), because);
        };
        if let Some(good) = self.latest_of(|name, source| self.is_uncontested(name, source)) {
            return Seen::by(Some(good), SeenBecause::Silent);
        }
        let heard_at = self.alive_at().unwrap_or(now);
        let until = heard_at + TimeDelta::seconds(i64::from(CONTESTED_S));
        if until <= now {
            return Seen::by(Some(silent), SeenBecause::SignIsOld);
        }
        let up = self.latest_of(|_, source| source.state == FailureState::Up);
        let because = match up {
            Some(_) => SeenBecause::SaysUp,
            None => SeenBecause::SaidUp,
        };
        Seen {
            until: Some(until),
            ..Seen::by(up, because)
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
}

impl<'a> Seen<'a> {
    fn by(found: Option<(&'a str, &'a Source)>, because: SeenBecause) -> Self {
        Self {
            state: found.map_or(FailureState::Unknown, |(_, source)| source.state),
            source: found.map(|(name, _)| name),
            observed_at: found.map(|(_, source)| source.observed_at),
            until: None,
            because,
        }
    }
}

impl fmt::Display for SeenBecause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoReport => write!(f, "no source has reported on the host"),
            Self::Up => write!(f, "no source reports silence, and a source says UP"),
            Self::NotUp => write!(f, "no source reports silence, and no source says UP"),
            Self::Silent => write!(
                f,
                "a source reports a silence that began after the last sign of life of every other source"
            ),
            Self::SaysUp => write!(
                f,
                "a source says UP, and had a sign of life in the last {CONTESTED_S} s within the silence that another source reports"
            ),
            Self::SaidUp => write!(
                f,
                "a source had a sign of life in the last {CONTESTED_S} s within the silence that another source reports, and does not \
                 say UP any more"
            ),
            Self::SignIsOld => write!(
                f,
                "the last sign of life within the silence that a source reports is more than {CONTESTED_S} s old"
            ),
        }
    }
}
