//! How long to wait before trying again.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_millis(2500);

/// Doubles from 50 ms to 2.5 s; each wait is lengthened by up to as much again, so that services do not return all at once.
pub(super) struct Backoff(ExponentialBackoff);

impl Backoff {
    pub fn new() -> Self {
        Self::from(SHORTEST)
    }

    fn from(first: Duration) -> Self {
        let waits = ExponentialBuilder::new().with_jitter().without_max_times();
        Self(waits.with_min_delay(first).with_max_delay(LONGEST).build())
    }

    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// From here on as long as it ever waits: it does not pass by itself.
    pub fn exhaust(&mut self) {
        *self = Self::from(LONGEST);
    }

    pub fn next(&mut self) -> Duration {
        self.0.next().unwrap_or(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_bound_and_start_again_after_a_reset() {
        let mut backoff = Backoff::new();
        for shortest in [50, 100, 200, 400, 800, 1600, 2500, 2500] {
            let wait = backoff.next();
            let shortest = Duration::from_millis(shortest);
            assert!(
                wait >= shortest && wait <= shortest * 2,
                "{wait:?} for {shortest:?}"
            );
        }
        backoff.reset();
        assert!(backoff.next() <= SHORTEST * 2);
        backoff.exhaust();
        assert!(backoff.next() >= LONGEST);
    }
}
