//! What is known of the queues of tasks: those that move, where a task waits for its turn, and whether the broker is there at all.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ringfence_core::{Claim, HostState, Line, Queues};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Engine;
use crate::reconcile::pause;

/// A queue from which no worker has taken anything for so long does not move.
const MOVES_FOR: Duration = Duration::from_secs(30);

/// How often the broker is looked after.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// When the broker is back, workers need some time to find out; what waits for them may wait so much longer.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(30);

/// What this process knows of the queues.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// When each has last moved.
    moved: Mutex<HashMap<Line, Instant>>,
    /// When the broker was last seen away.
    away_at: Mutex<Option<Instant>>,
}

/// Looks after the broker until it is told to stop.
pub(crate) async fn watch_broker(engine: Engine, stop: CancellationToken) {
    while pause(&stop, LOOK_EVERY).await {
        if engine.0.bus.health().await.is_err() {
            *engine.0.lines.away_at() = Some(Instant::now());
        }
    }
}

impl Lines {
    /// A worker has claimed what it took from its queue. `state` is the host as the claim has left it.
    pub fn moved(&self, state: &HostState, claim: &Claim) {
        let Some(zone) = zone_of(state, claim) else { return };
        let line = Line {
            resource: claim.kind.resource(),
            zone,
        };
        let mut lines = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        lines.insert(line, Instant::now());
    }

    /// Those that move, the others are forgotten; or that the broker is away, or was a moment ago.
    pub fn queues(&self) -> Queues {
        let away_at = *self.away_at();
        if away_at.is_some_and(|at| at.elapsed() < COMES_BACK_WITHIN) {
            Queues::Away
        } else {
            Queues::Moving(self.moving())
        }
    }

    fn away_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.away_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn moving(&self) -> BTreeSet<Line> {
        let mut lines = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        lines.retain(|_, at| at.elapsed() < MOVES_FOR);
        lines.keys().cloned().collect()
    }
}

fn zone_of(state: &HostState, claim: &Claim) -> Option<String> {
    let (task, attempt) = state.operation.as_ref()?.find(claim.attempt)?;
    let method = task
        .levels
        .get(attempt.level)?
        .iter()
        .find(|method| method.id == attempt.method_id)?;
    Some(method.zone.clone())
}
