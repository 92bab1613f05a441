//! How long to wait before trying again.

use std::time::Duration;

use uuid::Uuid;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// Doubles from 100 ms to 5 s; each wait is shortened by up to a half, so that services do not return all at once.
pub(super) struct Backoff(Duration);

impl Backoff {
    pub fn new() -> Self {
        Self(FIRST)
    }

    pub fn reset(&mut self) {
        self.0 = FIRST;
    }

    /// From here on as long as it ever waits: it does not pass by itself.
    pub fn exhaust(&mut self) {
        self.0 = LONGEST;
    }

    pub fn next(&mut self) -> Duration {
        let wait = self.0;
        self.0 = (wait * 2).min(LONGEST);
        let [roll, ..] = Uuid::new_v4().into_bytes();
        wait.mul_f64(1.0 - f64::from(roll) / 512.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_bound_and_start_again_after_a_reset() {
        let mut backoff = Backoff::new();
        for longest in [100, 200, 400, 800, 1600, 3200, 5000, 5000] {
            let wait = backoff.next();
            let longest = Duration::from_millis(longest);
            assert!(
                wait > longest.mul_f64(0.49) && wait <= longest,
                "{wait:?} for {longest:?}"
            );
        }
        backoff.reset();
        assert!(backoff.next() <= FIRST);
    }
}
