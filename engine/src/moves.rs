//! Gives moves their turns, where a segment bounds those of all its hosts, or of all hosts of their platform.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::TimeDelta;
use ringfence_core::{
    BEGUN_WITHIN_S, Evacuating, EvacuationPolicy, Input, MoveQueue, Operation, SegmentId, Turn, Turns,
    error_chain,
};
use tokio_util::sync::CancellationToken;

use crate::pause::pause;
use crate::{Context, Engine, EngineError};

/// Between two looks for moves that wait.
const EVERY: Duration = Duration::from_secs(1);
/// The work of one engine at a time: what two count beside each other would be too many.
const WORK: &str = "moves";
/// For so long an engine takes it.
const HELD_FOR: TimeDelta = TimeDelta::seconds(10);
/// What it begins to commit by then is committed while it has it.
const COMMITS_WITHIN: TimeDelta = TimeDelta::seconds(5);

/// Gives turns until it is told to stop.
pub(crate) async fn run(engine: Engine, stop: CancellationToken) {
    while pause(&stop, EVERY).await {
        if let Err(error) = engine.give_turns().await {
            tracing::warn!(error = %error_chain(&error), "moves that wait for their turn could not be begun; they are tried again");
        }
    }
}

impl Engine {
    /// Begins the moves whose turn it is.
    pub(crate) async fn give_turns(&self) -> Result<(), EngineError> {
        if !self.do_moves_wait().await? || !self.take_work(WORK, HELD_FOR).await? {
            return Ok(());
        }
        let now = self.0.clock.now();
        let until = now + COMMITS_WITHIN;
        // Read once more: another engine may have begun some before it let go of the work.
        let evacuating = self.evacuating().await?;
        let policies = self.policies_of(&evacuating).await?;
        let mut turns = Turns::new(evacuating, &policies, now);
        while let Some(turn) = turns.next_turn() {
            if self.0.clock.now() > until {
                return Ok(());
            }
            let queue = self.give(turn).await;
            turns.took(turn, queue);
        }
        Ok(())
    }

    async fn do_moves_wait(&self) -> Result<bool, EngineError> {
        let mut waiting = self.evacuating().await?;
        waiting.retain(|one| !one.queue.waiting.is_empty());
        let policies = self.policies_of(&waiting).await?;
        Ok(policies.values().any(EvacuationPolicy::has_turns))
    }

    async fn evacuating(&self) -> Result<Vec<Evacuating>, EngineError> {
        let since = self.0.clock.now() - TimeDelta::seconds(BEGUN_WITHIN_S);
        Ok(ringfence_db::evacuations(&mut self.0.db.reader(), since).await?)
    }

    async fn policies_of(
        &self,
        evacuating: &[Evacuating],
    ) -> Result<BTreeMap<SegmentId, EvacuationPolicy>, EngineError> {
        let ids: BTreeSet<SegmentId> = evacuating.iter().map(|one| one.segment_id).collect();
        let mut reader = self.0.db.reader();
        let mut policies = BTreeMap::new();
        for id in ids {
            let segment = ringfence_db::segment(&mut reader, &id.to_string()).await?;
            policies.extend(segment.map(|segment| (id, segment.policy.evacuation)));
        }
        Ok(policies)
    }

    /// The moves of the host after its turn; `None` if that is not known. An error of one host keeps no other from its turn.
    async fn give(&self, turn: Turn) -> Option<MoveQueue> {
        let Turn { host_id, at_most } = turn;
        let by = Context::own("ringfence");
        match self.apply(host_id, Input::BeginMoves { at_most }, &by).await {
            Ok(applied) => applied.state.operation.as_ref().and_then(Operation::move_queue),
            Err(EngineError::NotFound { .. }) => None,
            Err(error) => {
                tracing::warn!(%host_id, error = %error_chain(&error), "moves of a host could not be begun; they are tried again");
                None
            }
        }
    }
}
