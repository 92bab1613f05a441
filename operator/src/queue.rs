//! Which object is served when. An object is never served twice at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// The pauses before an object that could not be served is tried again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The objects that wait, and those that are being served.
#[derive(Debug)]
pub(crate) struct Queue<K> {
    due: BTreeMap<K, Instant>,
    served: BTreeSet<K>,
    failures: BTreeMap<K, u32>,
}

impl<K: Ord + Clone> Queue<K> {
    pub fn new() -> Self {
        Self {
            due: BTreeMap::new(),
            served: BTreeSet::new(),
            failures: BTreeMap::new(),
        }
    }

    /// Serves an object at a moment, or earlier.
    pub fn put(&mut self, key: K, at: Instant) {
        let due = self.due.entry(key).or_insert(at);
        *due = at.min(*due);
    }

    /// When the next object is due.
    pub fn next_due(&self) -> Option<Instant> {
        let waiting = self.due.iter().filter(|(key, _)| !self.served.contains(key));
        waiting.map(|(_, at)| *at).min()
    }

    /// The object that has been due for the longest time.
    pub fn take(&mut self, now: Instant) -> Option<K> {
        let is_due = |(key, at): &(&K, &Instant)| **at <= now && !self.served.contains(*key);
        let (key, _) = self.due.iter().filter(is_due).min_by_key(|(_, at)| **at)?;
        let key = key.clone();
        self.due.remove(&key);
        self.served.insert(key.clone());
        Some(key)
    }

    /// An object was served; `next` is when it is looked at again without a change.
    pub fn done(&mut self, key: K, next: Option<Duration>, now: Instant) {
        self.served.remove(&key);
        self.failures.remove(&key);
        if let Some(next) = next {
            self.put(key, now + next);
        }
    }

    /// Whether an object could not be served the last time either.
    pub fn has_failed(&self, key: &K) -> bool {
        self.failures.contains_key(key)
    }

    /// An object could not be served.
    pub fn failed(&mut self, key: K, now: Instant) {
        self.served.remove(&key);
        let failures = self.failures.entry(key.clone()).or_default();
        let pause = FIRST_PAUSE * 2_u32.saturating_pow(*failures).min(64);
        *failures = failures.saturating_add(1);
        // What has changed while it was served does not shorten the pause: it may be what was written here.
        self.due.insert(key, now + pause.min(LONGEST_PAUSE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_that_changes_while_it_is_served_is_served_once_more_afterwards() {
        let now = Instant::now();
        let mut queue = Queue::new();
        queue.put("n1", now);
        assert_eq!(queue.take(now), Some("n1"));
        queue.put("n1", now);
        assert_eq!(queue.take(now), None);
        assert_eq!(queue.next_due(), None);
        queue.done("n1", None, now);
        assert_eq!(queue.take(now), Some("n1"));
    }

    #[test]
    fn the_pauses_after_failures_grow_and_are_bounded() {
        let now = Instant::now();
        let mut queue = Queue::new();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            queue.failed("n1", now);
            pauses.push((queue.next_due().unwrap() - now).as_secs());
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        queue.done("n1", None, now);
        queue.failed("n1", now);
        queue.put("n1", now + Duration::from_secs(9));
        assert_eq!(queue.next_due(), Some(now + FIRST_PAUSE));
    }
}
