//! The one clock of an engine.
//!
//! Deadlines outlive restarts and are compared by several machines, so that they are wall-clock times. But a machine's wall clock
//! can be moved, by a person or by time synchronisation, and a clock moved forward by a day would let every self-fencing timeout run
//! out at once. The clock therefore takes the database's time once, counts on from there with the monotonic clock, and follows the
//! database afterwards only in small steps.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::TimeDelta;
use ringfence_core::Timestamp;
use ringfence_db::{Database, DbError};
use tokio_util::sync::CancellationToken;

use crate::error::error_chain;
use crate::reconcile::pause;

/// The largest step, in milliseconds, by which the clock follows the database's: what slewing can make of a minute.
const MAX_STEP_MS: i64 = 500;

/// Between two comparisons with the database's clock.
const FOLLOW_EVERY: Duration = Duration::from_secs(10);

/// Where the time comes from.
#[derive(Clone, Debug)]
pub enum ClockSource {
    /// The database's time, counted on with the monotonic clock.
    Database,
    /// A time that is moved by hand, for tests.
    Manual(Timestamp),
}

/// The clock; clones share it.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    base: Timestamp,
    /// `None` for a clock that is moved by hand.
    since: Option<Instant>,
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
        let inner = match source {
            ClockSource::Database => Inner {
                base: db.now().await?,
                since: Some(Instant::now()),
            },
            ClockSource::Manual(base) => Inner { base, since: None },
        };
        Ok(Self(Arc::new(Mutex::new(inner))))
    }

    #[cfg(test)]
    pub(crate) fn by_hand(base: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(Inner { base, since: None })))
    }

    /// The time, in whole microseconds, which is what the databases keep.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let now = self.0.lock().unwrap_or_else(PoisonError::into_inner).now();
        Timestamp::from_timestamp_micros(now.timestamp_micros()).unwrap_or(now)
    }

    /// Moves a clock that is moved by hand; the other is not touched.
    pub fn advance(&self, by: TimeDelta) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.since.is_none() {
            inner.base += by;
        }
    }

    /// Follows the database's time until `stop`.
    pub async fn keep(&self, db: &Database, stop: &CancellationToken) {
        while pause(stop, FOLLOW_EVERY).await {
            match db.now().await {
                Ok(now) => self.follow(now),
                Err(error) => {
                    tracing::debug!(error = %error_chain(&error), "the database's clock could not be read")
                }
            }
        }
    }

    /// Follows the database's time by a small step at most. A larger difference is a moved clock: it is told and not followed.
    fn follow(&self, database: Timestamp) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.since.is_none() {
            return;
        }
        let now = inner.now();
        let difference = database - now;
        if difference.num_milliseconds().abs() <= MAX_STEP_MS {
            // Never backwards: a moment that was written must not come again.
            inner.base = now.max(database);
            inner.since = Some(Instant::now());
        } else {
            tracing::warn!(
                difference_ms = difference.num_milliseconds(),
                "the database's clock was moved; this engine goes on counting and will follow it after a restart"
            );
        }
    }
}
