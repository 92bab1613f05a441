//! Objects of Ringfence's own that have no record yet: it may be written for a fence that is about to be committed.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A record follows its object within such a time, or its writer has died.
const RECORD_FOLLOWS: Duration = Duration::from_secs(10);
/// An object that was not looked at for so long is gone.
const REMEMBERED: Duration = Duration::from_mins(10);

/// When this process saw an object.
#[derive(Clone, Copy, Debug)]
struct Sight {
    first: Instant,
    last: Instant,
}

/// When this process saw each object first. The clock of the API server says nothing here: it may be behind.
#[derive(Debug, Default)]
pub(crate) struct Awaiting {
    sights: Mutex<HashMap<String, Sight>>,
}

impl Awaiting {
    /// Whether the record of an object that has none may still be on its way. To remove the object then is to refuse its fence.
    pub fn awaits_record(&self, uid: &str, now: Instant) -> bool {
        let mut sights = self.sights.lock();
        sights.retain(|_, sight| now < sight.last + REMEMBERED);
        let new = Sight {
            first: now,
            last: now,
        };
        let sight = sights.entry(uid.to_owned()).or_insert(new);
        sight.last = now;
        now < sight.first + RECORD_FOLLOWS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_awaited_for_10_seconds_from_the_first_sight_of_each_object() {
        let (awaiting, now) = (Awaiting::default(), Instant::now());
        let after = |ms| now + Duration::from_millis(ms);
        assert!(awaiting.awaits_record("a", now));
        assert!(awaiting.awaits_record("b", after(9_000)));
        assert!(awaiting.awaits_record("a", after(9_999)));
        assert!(!awaiting.awaits_record("a", after(10_000)));
        assert!(awaiting.awaits_record("b", after(18_999)));
    }

    #[test]
    fn what_is_looked_at_stays_known_and_what_was_not_for_10_minutes_is_forgotten() {
        let (awaiting, now) = (Awaiting::default(), Instant::now());
        awaiting.awaits_record("gone", now);
        for minute in 0..30 {
            let awaits = awaiting.awaits_record("kept", now + Duration::from_secs(60 * minute));
            assert_eq!(awaits, minute == 0);
        }
        assert_eq!(awaiting.sights.lock().keys().collect::<Vec<_>>(), ["kept"]);
    }
}
