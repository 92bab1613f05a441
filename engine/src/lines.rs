//! What is known of the queues of tasks: those that move, where a task waits for its turn, and whether the broker is there at all.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ringfence_bus::Bus;
use ringfence_core::{Claim, HostState, Line, Queues};
use tokio::time::Instant;

/// A queue from which no worker has taken anything for so long does not move.
const MOVES_FOR: Duration = Duration::from_secs(30);

/// The broker's state is asked for again after so long.
const KNOWN_FOR: Duration = Duration::from_secs(1);

/// What this process knows of the queues.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// When each has last moved.
    moved: Mutex<HashMap<Line, Instant>>,
    broker: Broker,
}

/// Whether the broker was away, and when it was asked.
#[derive(Debug, Default)]
struct Broker(tokio::sync::Mutex<Option<(bool, Instant)>>);

impl Broker {
    async fn is_away(&self, bus: &dyn Bus) -> bool {
        let mut known = self.0.lock().await;
        if let Some((is_away, asked_at)) = *known
            && asked_at.elapsed() < KNOWN_FOR
        {
            return is_away;
        }
        let is_away = bus.health().await.is_err();
        *known = Some((is_away, Instant::now()));
        is_away
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

    /// Those that move, the others are forgotten; or that the broker is away.
    pub async fn queues(&self, bus: &dyn Bus) -> Queues {
        if self.broker.is_away(bus).await {
            Queues::Away
        } else {
            Queues::Moving(self.moving())
        }
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
