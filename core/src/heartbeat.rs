//! What is concluded of a host from the heartbeats that it writes to a shared storage, and from what a storage tells of when it has heard the host.
//!
//! What a host writes says nothing of when it did: its clock is its own. A sign of life is that something else is read than before; it came after the
//! reading before. Readings of one worker are compared with each other and with no others: another one may read a copy that is older.
//!
//! A storage that hears its clients counts by its own clock how long ago that was. A sign of life is dated so long before the reading.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::{FailureState, Sighting, Timestamp, WATCHED_GAP_S};

/// Workers whose last readings are remembered.
const MAX_WORKERS: usize = 64;

/// What a worker reads of the heartbeats of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "heartbeat", rename_all = "snake_case")]
pub enum Heartbeat {
    /// One is there.
    Written {
        /// Who writes there, where the storage tells: when another one begins to, that is no heartbeat of the one before.
        writer: String,
        /// Another one with each heartbeat.
        mark: String,
    },
    /// The storage has heard the host.
    Heard {
        /// By what it knows the host, in words.
        by: String,
        /// The most seconds that have passed since, by the storage's own clock.
        within_s: u32,
    },
    /// The storage does not hear the host. That says nothing of a host that it has never heard.
    Unheard,
    /// None is there, or it cannot be told.
    Unclear {
        /// Why, in words.
        why: String,
    },
}

/// One reading.
#[derive(Clone, Copy, Debug)]
pub struct HeartbeatReading<'a> {
    /// What was read.
    pub heartbeat: &'a Heartbeat,
    /// The worker that read it.
    pub worker: &'a str,
    /// A moment before it was read, by the engine's clock.
    pub asked_at: Timestamp,
    /// A moment after it was read, by the engine's clock.
    pub answered_at: Timestamp,
}

/// What a worker read last.
#[derive(Clone, Debug)]
struct Last {
    heartbeat: Heartbeat,
    asked_at: Timestamp,
}

/// Watches the heartbeats of one host by one method. One that has just begun knows nothing: the first reading is what others are compared with.
#[derive(Clone, Debug)]
pub struct HeartbeatWatch {
    silent_after: TimeDelta,
    /// By worker.
    last: BTreeMap<String, Last>,
    /// A moment that the newest heartbeat came after.
    beat_after: Option<Timestamp>,
    /// Since when all readings have shown what was there before.
    still_since: Option<Timestamp>,
    /// When it could last be read, or the watch began.
    read_at: Timestamp,
}

impl HeartbeatWatch {
    /// One that counts a host as UNREACHABLE after so long without a heartbeat.
    #[must_use]
    pub fn new(silent_after: TimeDelta, now: Timestamp) -> Self {
        Self {
            silent_after,
            last: BTreeMap::new(),
            beat_after: None,
            still_since: None,
            read_at: now,
        }
    }

    /// Takes a reading, and says how the host is, as far as it tells.
    ///
    /// A host is silent only where it was heard before (`was_heard`), now or by an engine before this one: what was left behind long ago says nothing. While the
    /// storage cannot be read, the host may not be able to write to it: its silence counts anew after that.
    pub fn take(&mut self, reading: HeartbeatReading<'_>, was_heard: bool) -> Option<Sighting> {
        let HeartbeatReading {
            heartbeat,
            worker,
            asked_at,
            answered_at,
        } = reading;
        let unread_for = asked_at - self.read_at;
        if matches!(heartbeat, Heartbeat::Unclear { .. }) {
            self.still_since = None;
            let is_lost = unread_for >= self.silent_after / 2;
            return is_lost.then(|| Sighting::of(FailureState::Unknown, asked_at));
        }
        self.read_at = asked_at;
        let before = self.remember(worker, heartbeat, asked_at);
        if let Some(after) = sign_of_life(reading, before.as_ref()) {
            self.beat_after = self.beat_after.max(Some(after));
            self.still_since = Some(answered_at);
            return Some(Sighting::of(FailureState::Up, after));
        }
        let is_watched = unread_for <= TimeDelta::seconds(i64::from(WATCHED_GAP_S))
            && before.is_some_and(|before| before.heartbeat == *heartbeat);
        let still_since = self.still_since.filter(|_| is_watched);
        let still_since = *self.still_since.insert(still_since.unwrap_or(answered_at));
        let is_silent = asked_at - still_since >= self.silent_after;
        (is_silent && (was_heard || self.beat_after.is_some())).then(|| Sighting {
            last_seen_at: self.beat_after,
            silent_since: Some(still_since),
            ..Sighting::of(FailureState::Unreachable, asked_at)
        })
    }

    /// What the worker had read before.
    fn remember(&mut self, worker: &str, heartbeat: &Heartbeat, asked_at: Timestamp) -> Option<Last> {
        let last = Last {
            heartbeat: heartbeat.clone(),
            asked_at,
        };
        let before = self.last.insert(worker.to_owned(), last);
        if self.last.len() > MAX_WORKERS {
            let oldest = self.last.iter().min_by_key(|(_, last)| last.asked_at);
            let oldest = oldest.map(|(worker, _)| worker.clone());
            oldest.and_then(|worker| self.last.remove(&worker));
        }
        before
    }
}

/// The moment that a sign of life came after, if there is one.
fn sign_of_life(reading: HeartbeatReading<'_>, before: Option<&Last>) -> Option<Timestamp> {
    match (reading.heartbeat, before.map(|before| &before.heartbeat)) {
        (Heartbeat::Heard { within_s, .. }, _) => {
            Some(reading.asked_at - TimeDelta::seconds(i64::from(*within_s)))
        }
        (
            Heartbeat::Written { writer, mark },
            Some(Heartbeat::Written {
                writer: known,
                mark: known_mark,
            }),
        ) if writer == known && mark != known_mark => before.map(|before| before.asked_at),
        (Heartbeat::Written { .. } | Heartbeat::Unheard | Heartbeat::Unclear { .. }, _) => None,
    }
}
