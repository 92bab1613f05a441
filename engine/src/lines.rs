//! The queues of tasks that move: a task that waits in one waits for its turn.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ringfence_core::{Claim, HostState, Line};
use tokio::time::Instant;

/// A queue from which no worker has taken anything for so long does not move.
const MOVES_FOR: Duration = Duration::from_secs(30);

/// When each queue has last moved, as far as this process knows.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<HashMap<Line, Instant>>);

impl Lines {
    /// A worker has claimed what it took from its queue. `state` is the host as the claim has left it.
    pub fn moved(&self, state: &HostState, claim: &Claim) {
        let Some(zone) = zone_of(state, claim) else { return };
        let line = Line {
            resource: claim.kind.resource(),
            zone,
        };
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.insert(line, Instant::now());
    }

    /// Those that move; the others are forgotten.
    pub fn moving(&self) -> BTreeSet<Line> {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
