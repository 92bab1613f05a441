//! The time limit of one call, and how much of it has passed.

use std::time::Duration;

use tokio::time::Instant;

/// The time from the call of the worker, which comes after the claim was granted, until the call must have stopped.
#[derive(Clone, Copy, Debug)]
pub struct TimeGiven {
    begun: Instant,
    /// When the call must have stopped.
    pub until: Instant,
}

impl TimeGiven {
    /// A limit that begins now.
    #[must_use]
    pub fn of(budget: Duration) -> Self {
        let begun = Instant::now();
        Self {
            begun,
            until: begun + budget,
        }
    }

    /// The limit of a call that has to end earlier.
    #[must_use]
    pub fn ending(self, until: Instant) -> Self {
        Self { until, ..self }
    }

    /// The time that is left.
    #[must_use]
    pub fn left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Milliseconds from the call to a moment within it: what is read from then on is not older.
    #[must_use]
    pub fn ms_before(self, moment: Instant) -> u64 {
        let passed = moment.saturating_duration_since(self.begun);
        u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_from_the_call_however_early_it_has_to_end() {
        let time = TimeGiven::of(Duration::from_secs(20));
        let shorter = time.ending(time.until - Duration::from_secs(1));
        let moment = time.until - Duration::from_millis(18_500);
        assert_eq!(shorter.ms_before(moment), 1_500);
        assert_eq!(shorter.ms_before(moment - Duration::from_secs(60)), 0);
    }
}
