//! Looking at a host before the next regular look at those that are due.
//!
//! A decision says when its host wants to be looked at again, and the database is asked for such hosts several times a second. What is
//! due before that, the engine that has decided it knows by itself; should it die, the regular look of any other finds it.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use ringfence_core::Timestamp;
use tokio::sync::Notify;

use crate::clock::Clock;

/// Hosts that are due within this time are looked at together.
const BREATH: Duration = Duration::from_millis(5);

/// The soonest of the moments that it was set for; the others wait for the regular look.
#[derive(Default)]
pub(crate) struct Waker {
    soonest: Mutex<Option<Timestamp>>,
    changed: Notify,
}

impl Waker {
    /// Something is due then.
    pub fn set(&self, at: Timestamp) {
        let mut soonest = self.soonest();
        if soonest.is_none_or(|known| at < known) {
            *soonest = Some(at);
            self.changed.notify_one();
        }
    }

    /// A look at this moment finds what was due until now.
    pub fn forget(&self, until: Timestamp) {
        self.soonest().take_if(|at| *at <= until);
    }

    /// Waits until something is due. Dropped half-way, it forgets nothing.
    pub async fn ring(&self, clock: &Clock) {
        loop {
            let soonest = *self.soonest();
            let wait = soonest.map(|at| (at - clock.now()).to_std().unwrap_or_default());
            match wait {
                None => self.changed.notified().await,
                Some(Duration::ZERO) => return tokio::time::sleep(BREATH).await,
                // One that is sooner cuts the wait short. Not less than a breath: a clock that is moved by hand may stand still.
                Some(wait) => {
                    let _ = tokio::time::timeout(wait.max(BREATH), self.changed.notified()).await;
                }
            }
        }
    }

    fn soonest(&self) -> MutexGuard<'_, Option<Timestamp>> {
        self.soonest.lock()
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    async fn rings(waker: &Waker, clock: &Clock) -> bool {
        let ring = tokio::time::timeout(Duration::from_millis(100), waker.ring(clock));
        ring.await.is_ok()
    }

    #[tokio::test]
    async fn an_alarm_rings_for_the_earliest_time_until_a_pass_has_looked() {
        let begun = Timestamp::UNIX_EPOCH;
        let (waker, clock) = (Waker::default(), Clock::by_hand(begun));
        assert!(!rings(&waker, &clock).await, "no time is set");
        let second = |n| begun + TimeDelta::seconds(n);
        waker.set(second(9));
        waker.set(second(5));
        waker.set(second(7));
        clock.advance(TimeDelta::milliseconds(4_999));
        assert!(!rings(&waker, &clock).await);
        clock.advance(TimeDelta::milliseconds(1));
        assert!(rings(&waker, &clock).await);
        waker.forget(second(4));
        assert!(
            rings(&waker, &clock).await,
            "a pass before the time does not stop the waker"
        );
        waker.forget(clock.now());
        clock.advance(TimeDelta::seconds(60));
        assert!(!rings(&waker, &clock).await);
    }

    #[tokio::test]
    async fn an_earlier_time_shortens_the_wait() {
        let begun = Timestamp::UNIX_EPOCH;
        let (waker, clock) = (Waker::default(), Clock::by_hand(begun));
        waker.set(begun + TimeDelta::days(1));
        let set = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            waker.set(begun);
        };
        let ring = tokio::time::timeout(Duration::from_secs(30), waker.ring(&clock));
        let (rung, ()) = tokio::join!(ring, set);
        assert!(rung.is_ok());
    }
}
