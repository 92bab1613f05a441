//! Keeps the hosts in memory fresh: reads them at intervals, and after each change.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringfence_db::hosts_to_place;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::error::HookError;
use crate::hook::Hook;
use crate::moment::Moment;
use crate::snapshot::Snapshot;

/// The shortest pause between two reads. After a longer read, the pause is as long as the read, so that reads take at most half of the time
/// in a storm of changes.
const BREATH: Duration = Duration::from_millis(20);
/// The pause before the next try to listen.
const LISTEN_AGAIN_AFTER: Duration = Duration::from_secs(2);

impl Hook {
    /// Reads and listens until `stop`.
    pub async fn keep(&self, stop: CancellationToken) {
        let both = async { tokio::join!(self.read_on(), self.listen()) };
        tokio::select! {
            () = stop.cancelled() => {}
            _ = both => {}
        }
    }

    async fn read_on(&self) {
        let mut is_told = false;
        let every = self.0.config.refresh_every;
        loop {
            let begun = Instant::now();
            match self.read().await {
                Ok(()) if is_told => {
                    is_told = false;
                    tracing::info!("the hosts can be read again");
                }
                Ok(()) => {}
                Err(error) if !is_told => {
                    is_told = true;
                    tracing::warn!(
                        error = &error as &dyn Error,
                        "the hosts cannot be read; answers rest on the last read until it is too old"
                    );
                }
                Err(_) => {}
            }
            sleep(begun.elapsed().clamp(BREATH, every.max(BREATH))).await;
            // A change that was announced during the last read, which may have missed it, is waiting here.
            tokio::select! {
                () = self.0.wake.notified() => {}
                () = sleep(every) => {}
            }
        }
    }

    async fn read(&self) -> Result<(), HookError> {
        let max_age = self.0.config.max_age;
        // Both times are taken before the query is sent: commits from here on may be missed.
        let (begun, as_of) = (Moment::now(), (self.0.now)());
        let mut reader = self.0.db.reader_of_what_grows();
        let rows = timeout(max_age, hosts_to_place(&mut reader)).await;
        let rows = rows.map_err(|_| HookError::Slow { within: max_age })??;
        let begun = begun.ok_or(HookError::Stale { age: None, max_age })?;
        let snapshot = Snapshot::new(begun, as_of, self.0.config.platforms(), rows);
        self.0.snapshot.store(Some(Arc::new(snapshot)));
        Ok(())
    }

    /// Listens to changes where the database announces them, which only shortens the wait.
    async fn listen(&self) {
        loop {
            match self.0.db.announcements().await {
                Ok(None) => return,
                Ok(Some(mut announcements)) => loop {
                    // Also after the first start: changes from before were not heard.
                    self.nudge();
                    if let Err(error) = announcements.next().await {
                        tracing::debug!(
                            error = &error as &dyn Error,
                            "the database's changes cannot be listened to"
                        );
                        break;
                    }
                },
                Err(error) => tracing::debug!(
                    error = &error as &dyn Error,
                    "the database's changes cannot be listened to"
                ),
            }
            sleep(LISTEN_AGAIN_AFTER).await;
        }
    }
}
