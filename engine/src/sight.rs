//! Counts what the sources hear, where the segment of a host wants that: once for all hosts that are due together.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use ringfence_core::{FencingPolicy, HostState, SightPolicy, Sights};
use tokio::sync::Mutex;

use crate::{Engine, EngineError};

/// How long one count serves.
const SERVES: TimeDelta = TimeDelta::seconds(2);

/// The last count for each quiet time.
pub(crate) type Counted = Mutex<BTreeMap<u32, Sights>>;

impl Engine {
    /// What the sources hear, counted after the fence of the host became due.
    pub(crate) async fn sights(&self, state: &HostState) -> Result<Sights, EngineError> {
        let FencingPolicy { sight, after_s, .. } = &state.policy.fencing;
        let Some(SightPolicy { quiet_s, .. }) = *sight else {
            return Ok(Sights::default());
        };
        let due = state.host.failure_since;
        let due = due.map(|since| since + TimeDelta::seconds(i64::from(*after_s)));
        let mut counted = self.0.counted.lock().await;
        let now = self.0.clock.now();
        counted.retain(|_, known| {
            let age = known.counted_at.map(|at| now - at);
            age.is_some_and(|age| (TimeDelta::zero()..SERVES).contains(&age))
        });
        if let Some(known) = counted.get(&quiet_s).filter(|known| known.are_good(due, now)) {
            return Ok(known.clone());
        }
        // By the moment before, so that the count is not older than it says.
        let by_source = ringfence_db::count_sources(&mut self.0.db.reader(), quiet_s, now).await?;
        let sights = Sights {
            counted_at: Some(now),
            by_source,
        };
        counted.insert(quiet_s, sights.clone());
        Ok(sights)
    }
}
