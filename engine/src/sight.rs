//! Counts what the sources hear, where a segment wants that: one engine at a time.

use std::time::Duration;

use chrono::TimeDelta;
use ringfence_core::{FencingPolicy, HEARD_S, HostState, Sights, error_chain};
use tokio_util::sync::CancellationToken;

use crate::pause::pause;
use crate::{Engine, EngineError};

/// Between two counts.
const EVERY: Duration = Duration::from_secs(5);
/// The work of counting.
const WORK: &str = "sight";
/// An engine keeps it for so long after each count.
const KEPT_FOR: TimeDelta = TimeDelta::seconds(15);

/// Counts until it is told to stop.
pub(crate) async fn run(engine: Engine, stop: CancellationToken) {
    loop {
        if let Err(error) = engine.count_sights().await {
            tracing::warn!(error = %error_chain(&error), "what the sources hear could not be counted");
        }
        if !pause(&stop, EVERY).await {
            return;
        }
    }
}

impl Engine {
    async fn count_sights(&self) -> Result<(), EngineError> {
        let mut reader = self.0.db.reader();
        if !ringfence_db::are_sights_wanted(&mut reader).await? || !self.take_work(WORK, KEPT_FOR).await? {
            return Ok(());
        }
        let known = ringfence_db::sights(&mut reader).await?;
        let sights = self.counted_anew(known).await?;
        let mut tx = self.0.db.begin().await?;
        ringfence_db::set_sights(&mut tx, &sights).await?;
        tx.commit().await?;
        Ok(())
    }

    async fn counted_anew(&self, mut sights: Sights) -> Result<Sights, EngineError> {
        // By the moment before, so that the count is not older than it says.
        let now = self.0.clock.now();
        let since = now - TimeDelta::seconds(HEARD_S);
        let counts = ringfence_db::count_sources(&mut self.0.db.reader(), since).await?;
        sights.count(counts, now);
        Ok(sights)
    }

    /// What the sources hear, as it was counted after the fence of the host became due.
    pub(crate) async fn sights(&self, state: &HostState) -> Result<Sights, EngineError> {
        let FencingPolicy { sight, after_s, .. } = &state.policy.fencing;
        if sight.is_none() {
            return Ok(Sights::default());
        }
        let known = ringfence_db::sights(&mut self.0.db.reader()).await?;
        let due = state.host.failure_since;
        let due = due.map(|since| since + TimeDelta::seconds(i64::from(*after_s)));
        if due.is_some_and(|due| known.are_before(due)) {
            return self.counted_anew(known).await;
        }
        Ok(known)
    }
}
