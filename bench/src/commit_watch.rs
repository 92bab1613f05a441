//! The times of commits that are followed by events.
//!
//! PostgreSQL announces a commit to its listeners, after the commit. The event stream is later: the API gets the announcement, reads the
//! events and writes them to its listeners.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::postgres::PgListener;
use tokio::task::JoinHandle;

use crate::error::BenchError;

/// The channel on which such commits are announced.
const CHANNEL: &str = "ringfence_events";
/// How long the watch waits for an announcement.
const GRACE: Duration = Duration::from_millis(2);
/// How many announcements are kept.
const REMEMBERED: usize = 64;

/// Listens to the announcements of commits.
pub struct CommitWatch {
    heard: Arc<Mutex<VecDeque<Instant>>>,
    task: JoinHandle<()>,
}

impl CommitWatch {
    /// Begins to listen to a PostgreSQL.
    pub async fn open(url: &str) -> Result<Self, BenchError> {
        let mut listener = PgListener::connect(url).await?;
        listener.listen(CHANNEL).await?;
        let heard = Arc::new(Mutex::new(VecDeque::with_capacity(REMEMBERED)));
        let told = Arc::clone(&heard);
        let task = tokio::spawn(async move {
            while listener.recv().await.is_ok() {
                let mut told = told.lock();
                if told.len() == REMEMBERED {
                    told.pop_front();
                }
                told.push_back(Instant::now());
            }
        });
        Ok(Self { heard, task })
    }

    /// The announcement that is nearest to the moment `told` in which the stream's event arrived, if it came after `begun`. The
    /// announcement of the event's own commit is some tenths of a millisecond away, the one before is a whole transaction away.
    pub async fn nearest_to(&self, begun: Instant, told: Instant) -> Option<Instant> {
        // The announcement may arrive a little later than the event.
        tokio::time::sleep(GRACE).await;
        let heard = self.heard.lock();
        nearest(heard.iter().copied().filter(|at| *at > begun), told)
    }
}

fn nearest(heard: impl Iterator<Item = Instant>, told: Instant) -> Option<Instant> {
    let apart = |at: Instant| {
        at.saturating_duration_since(told)
            .max(told.saturating_duration_since(at))
    };
    heard.min_by_key(|at| apart(*at))
}

impl Drop for CommitWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announcement_of_a_commit_may_come_before_or_after_the_event() {
        let told = Instant::now() + Duration::from_secs(1);
        let us = Duration::from_micros;
        let (claim, result, late) = (told - us(1500), told - us(300), told + us(100));
        assert_eq!(nearest([claim, result].into_iter(), told), Some(result));
        assert_eq!(nearest([claim, late].into_iter(), told), Some(late));
        assert_eq!(nearest([].into_iter(), told), None);
    }
}
