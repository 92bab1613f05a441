//! How long a host has been silent while it was watched (S13).

use chrono::TimeDelta;

use super::{Silence, Sources, WATCHED_GAP_S};
use crate::Timestamp;
use crate::guard::{Guard, on};

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

impl Sources {
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
