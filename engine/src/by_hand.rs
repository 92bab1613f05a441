//! An engine whose loops do not run, and that its caller moves step by step: for simulations, with a clock that is moved by hand.
//!
//! What the loops find in the database and on the bus, the caller has looked at here, in one order: two simulations of one story come to one end.

use ringfence_bus::{ClaimReply, ClaimRequest, TaskMessage};
use ringfence_core::{HostState, Input, Queues, TaskResult, Timestamp, error_chain};

use crate::intake::decide_claim;
use crate::{Context, Engine, EngineError};

/// Hosts, or messages, that one look takes.
const AT_ONCE: u32 = 1_000;

impl Engine {
    /// When time alone changes a host next, of those hosts that have to wait until after this moment; `None`: of all hosts.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn next_due(&self, after: Option<Timestamp>) -> Result<Option<Timestamp>, EngineError> {
        Ok(ringfence_db::next_due(&mut self.0.db.reader(), after).await?)
    }

    /// Looks at the hosts whose time has come, one after the other in the order of their ids, and gives them as they are then. Others that have to be asked before
    /// a fence are waited for.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub async fn look_at_due(&self) -> Result<Vec<HostState>, EngineError> {
        let mut due = ringfence_db::due_hosts(&mut self.0.db.reader(), self.0.clock.now(), AT_ONCE).await?;
        due.sort_unstable();
        let by = Context::own("ringfence");
        let mut seen = Vec::with_capacity(due.len());
        for host_id in due {
            let input = Input::Tick {
                queues: Queues::unknown(),
            };
            let applied = self.apply(host_id, input, &by).await?;
            self.fence_now_if_due(&applied.state).await;
            seen.push(self.state_of(&host_id.to_string()).await?);
        }
        self.give_turns().await?;
        Ok(seen)
    }

    /// Fences a host whose time has come with what was reported of it a moment ago.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn look_after_report(&self, host: &str) -> Result<(), EngineError> {
        let state = self.state_of(host).await?;
        self.fence_now_if_due(&state).await;
        Ok(())
    }

    /// A host as it is.
    ///
    /// # Errors
    /// There is none of this id or name, or the database cannot be read.
    pub async fn look_at(&self, host: &str) -> Result<HostState, EngineError> {
        self.state_of(host).await
    }

    /// Takes the tasks that were sent since this was asked last.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub async fn take_sent(&self) -> Result<Vec<TaskMessage>, EngineError> {
        let now = self.0.clock.now();
        let until = now + crate::relay::HEAD_START;
        let mut rows = ringfence_db::take_outbox(&self.0.db, until, until, AT_ONCE).await?;
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let ids = rows.iter().map(|row| row.id).collect();
        ringfence_db::delete_outbox(&mut self.0.db.reader(), ids).await?;
        rows.sort_by_key(|row| row.id);
        let tasks = rows.into_iter().map(|row| serde_json::from_value(row.payload));
        Ok(tasks
            .filter_map(|task| {
                let unreadable =
                    |error| tracing::warn!(error = %error_chain(&error), "a task cannot be read");
                task.map_err(unreadable).ok()
            })
            .collect())
    }

    /// Answers a claim or a sign of life of a worker.
    ///
    /// # Errors
    /// It could not be decided.
    pub async fn answer_claim(&self, request: ClaimRequest) -> Result<ClaimReply, EngineError> {
        decide_claim(self, request).await
    }

    /// Takes the result of a worker; one that the rules refuse changes nothing.
    ///
    /// # Errors
    /// It could not be decided.
    pub async fn take_result(&self, result: TaskResult) -> Result<(), EngineError> {
        let by = Context::own(&result.claim.worker);
        match self.apply(result.claim.host_id, Input::Result(result), &by).await {
            Ok(_) | Err(EngineError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
