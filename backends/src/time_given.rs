//! The time that a caller has for one call, and what of it has passed.

use std::time::Duration;

use tokio::time::Instant;

/// From the call of a caller, which comes after the claim was granted, until it must have stopped.
#[derive(Clone, Copy, Debug)]
pub struct TimeGiven {
    begun: Instant,
    /// When it must have stopped.
    pub until: Instant,
}

impl TimeGiven {
    /// So much from now on.
    #[must_use]
    pub fn of(budget: Duration) -> Self {
        let begun = Instant::now();
        Self {
            begun,
            until: begun + budget,
        }
    }

    /// This call, which has to end earlier.
    #[must_use]
    pub fn ending(self, until: Instant) -> Self {
        Self { until, ..self }
    }

    /// What is left.
    #[must_use]
    pub fn left(self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Milliseconds from the call to a moment within it: what is read from then on is not older than that.
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
