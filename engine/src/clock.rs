//! The one clock of an engine.
//!
//! Deadlines outlive restarts and are compared by several machines, so that they are wall-clock times. But a machine's wall clock
//! can be moved, by a person or by time synchronisation, and a clock moved forward by a day would let every self-fencing timeout run
//! out at once. The clock therefore takes the database's time once, counts on from there with the monotonic clock, and follows the
//! database afterwards in small steps. That count stands still while a machine is halted, by a snapshot for instance; and the database's
//! clock may be moved. Which of the two it was cannot be told. A clock that is far from the database's is set to its time, so that all
//! agree again, and remembers when: decisions then know from which moment on it tells durations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use parking_lot::{Mutex, MutexGuard};
use ringfence_core::{EngineTime, Timestamp, error_chain};
use ringfence_db::{Database, DbError};
use tokio_util::sync::CancellationToken;

use crate::pause::pause;

/// The largest difference to the database's clock, in milliseconds, that is evened out without a word: what slewing can make of a minute.
const MAX_STEP_MS: i64 = 500;

/// What the clocks of two processes may differ by: each follows the database's.
pub(crate) const MAX_DIFFERENCE: TimeDelta = TimeDelta::seconds(5);

/// Between two comparisons with the database's clock.
const FOLLOW_EVERY: Duration = Duration::from_secs(10);

/// Where the time comes from.
#[derive(Clone, Debug)]
pub enum ClockSource {
    /// The database's time, counted on with the monotonic clock.
    Database,
    /// A time that is moved by hand, for tests.
    Manual(Timestamp),
    /// A time that is counted on from, for tests: that of a process which was halted.
    Counting(Timestamp),
}

/// The clock; clones share it.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    base: Timestamp,
    /// `None` for a clock that is moved by hand.
    since: Option<Instant>,
    set_at: Option<Timestamp>,
}

impl Inner {
    fn now(&self) -> Timestamp {
        let elapsed = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        self.base + TimeDelta::from_std(elapsed).unwrap_or(TimeDelta::MAX)
    }
}

impl Clock {
    /// Starts the clock.
    pub async fn start(source: ClockSource, db: &Database) -> Result<Self, DbError> {
        let (base, since) = match source {
            ClockSource::Database => (db.now().await?, Some(Instant::now())),
            ClockSource::Manual(base) => (base, None),
            ClockSource::Counting(base) => (base, Some(Instant::now())),
        };
        Ok(Self::at(base, since))
    }

    fn at(base: Timestamp, since: Option<Instant>) -> Self {
        let set_at = None;
        Self(Arc::new(Mutex::new(Inner { base, since, set_at })))
    }

    #[cfg(test)]
    pub(crate) fn by_hand(base: Timestamp) -> Self {
        Self::at(base, None)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock()
    }

    /// The time, in whole microseconds, which is what the databases keep.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let now = self.lock().now();
        Timestamp::from_timestamp_micros(now.timestamp_micros()).unwrap_or(now)
    }

    /// The time, with when it was last set: what a worker counts on from.
    #[must_use]
    pub fn time(&self) -> EngineTime {
        let inner = self.lock();
        EngineTime {
            at: inner.now(),
            clock_set_at: inner.set_at,
        }
    }

    /// Moves a clock that is moved by hand; the other is not touched.
    pub fn advance(&self, by: TimeDelta) {
        let mut inner = self.lock();
        if inner.since.is_none() {
            inner.base += by;
        }
    }

    /// When it was last set to another time, if it was.
    #[must_use]
    pub fn set_at(&self) -> Option<Timestamp> {
        self.lock().set_at
    }

    /// The latest that it can be by the database's clock if this one is right; none for one that is moved by hand.
    pub(crate) fn latest(&self) -> Option<Timestamp> {
        let inner = self.lock();
        inner.since.map(|_| inner.now() + MAX_DIFFERENCE)
    }

    /// Is set at once if the database, asked a moment ago, shows that it is far behind: nothing must be decided by it then. A wait for the
    /// answer makes it look ahead, so that nothing is concluded from that here.
    pub(crate) fn catch_up(&self, database: Option<Timestamp>) {
        let mut inner = self.lock();
        let behind = database.map(|database| database - inner.now());
        if let Some(behind) = behind.filter(|behind| behind.num_milliseconds() > MAX_STEP_MS) {
            inner.set(behind);
        }
    }

    /// Follows the database's time until `stop`.
    pub async fn keep(&self, db: &Database, stop: &CancellationToken) {
        while pause(stop, FOLLOW_EVERY).await {
            let asked_at = self.now();
            match db.now().await {
                Ok(now) => self.follow(asked_at, now),
                Err(error) => {
                    tracing::debug!(error = %error_chain(&error), "the database's clock could not be read")
                }
            }
        }
    }

    /// Follows the database's time, which was read between `asked_at` and now.
    fn follow(&self, asked_at: Timestamp, database: Timestamp) {
        let mut inner = self.lock();
        let now = inner.now();
        let difference = database - database.clamp(asked_at.min(now), now);
        if difference.num_milliseconds().abs() > MAX_STEP_MS {
            inner.set(difference);
        } else if inner.since.is_some() {
            // Never backwards: a moment that was written must not come again.
            inner.base = now.max(database);
            inner.since = Some(Instant::now());
        }
    }
}

impl Inner {
    /// One that is moved by hand is not touched.
    fn set(&mut self, by: TimeDelta) {
        if self.since.is_none() {
            return;
        }
        let to = self.now() + by;
        (self.base, self.since, self.set_at) = (to, Some(Instant::now()), Some(to));
        tracing::warn!(
            difference_ms = by.num_milliseconds(),
            "this process was halted, or the database's clock was moved: its clock was set to the database's, and self-fencing timeouts count anew"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(base: Timestamp) -> Clock {
        Clock::at(base, Some(Instant::now()))
    }

    fn s(seconds: i64) -> TimeDelta {
        TimeDelta::seconds(seconds)
    }

    fn is_about(clock: &Clock, time: Timestamp) -> bool {
        (clock.now() - time).abs() < s(1)
    }

    fn noon() -> Timestamp {
        "2026-01-01T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn a_clock_that_is_far_behind_is_set_before_the_first_decision_and_keeps_the_time() {
        let clock = at(noon());
        clock.catch_up(Some(noon() + TimeDelta::milliseconds(300)));
        clock.catch_up(Some(noon() - s(60)));
        clock.catch_up(None);
        assert_eq!(
            clock.set_at(),
            None,
            "neither a small difference nor a late answer sets the clock"
        );
        clock.catch_up(Some(noon() + s(60)));
        assert!(is_about(&clock, noon() + s(60)));
        assert!(
            clock
                .set_at()
                .is_some_and(|at| at >= noon() + s(60) && at <= clock.now())
        );
    }

    #[test]
    fn a_clock_follows_the_database_in_both_directions() {
        let clock = at(noon());
        clock.follow(noon(), noon() + TimeDelta::milliseconds(400));
        assert!(clock.now() >= noon() + TimeDelta::milliseconds(400) && clock.set_at().is_none());
        clock.follow(clock.now(), noon() - s(60));
        assert!(is_about(&clock, noon() - s(60)) && clock.set_at().is_some());
        clock.follow(clock.now(), noon() + s(60));
        assert!(is_about(&clock, noon() + s(60)));
    }

    #[test]
    fn a_late_answer_of_the_database_does_not_set_the_clock() {
        let clock = at(noon() + s(10));
        clock.follow(noon(), noon() + s(3));
        assert!(clock.set_at().is_none() && clock.now() >= noon() + s(10));
    }

    #[test]
    fn a_clock_that_is_set_by_hand_does_not_follow_the_database() {
        let clock = Clock::by_hand(noon());
        clock.catch_up(Some(noon() + s(60)));
        clock.follow(noon(), noon() + s(60));
        assert_eq!((clock.now(), clock.set_at()), (noon(), None));
    }
}
