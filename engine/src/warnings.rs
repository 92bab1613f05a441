//! Which failures to publish are worth a warning: one a minute for a broker that is away, and one a minute for each queue that no worker
//! has made.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Between two warnings of what fails in one way.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);
/// The outcome where a queue is missing. It is told of each queue; every other outcome is told of the broker.
pub(crate) const UNROUTABLE: &str = "unroutable";

/// When each was told.
#[derive(Default)]
pub(crate) struct Warnings(Mutex<HashMap<String, Instant>>);

impl Warnings {
    /// Whether a failure is to be told now; if so, it counts as told.
    pub fn is_due(&self, outcome: &str, resource: &str, zone: &str, now: Instant) -> bool {
        let subject = match outcome {
            UNROUTABLE => format!("{resource} {zone}"),
            _ => outcome.to_owned(),
        };
        let mut told = self.0.lock();
        told.retain(|_, at| now.saturating_duration_since(*at) < BETWEEN_WARNINGS);
        if told.contains_key(&subject) {
            return false;
        }
        told.insert(subject, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_of_the_broker_is_logged_once_a_minute_and_each_missing_queue_by_itself() {
        let warnings = Warnings::default();
        let begin = Instant::now();
        let after = |s| begin + Duration::from_secs(s);
        assert!(warnings.is_due("failed", "power", "a", after(0)));
        assert!(!warnings.is_due("failed", "storage", "b", after(59)));
        assert!(warnings.is_due(UNROUTABLE, "power", "a", after(59)));
        assert!(warnings.is_due(UNROUTABLE, "power", "b", after(59)));
        assert!(!warnings.is_due(UNROUTABLE, "power", "a", after(100)));
        assert!(warnings.is_due("failed", "power", "a", after(60)));
        assert_eq!(warnings.0.lock().len(), 3);
    }
}
