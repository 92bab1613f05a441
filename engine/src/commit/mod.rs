//! One way to change a host: read, decide, commit, publish.
//!
//! A change is asked for by a request, which is one input for one host. Requests that wait together share a transaction (group
//! commit): each is decided for its own host upon what the one before it has left. See docs/adr/0053-one-write-path.md.

mod applied;
mod batch;
mod changes;
mod committer;
mod decision;
mod queue;

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use ringfence_core::{HostId, Input, Refusal, Timestamp, error_chain};
use ringfence_db::SeenHost;
use serde_json::json;
use tokio::time::Instant;
use tracing::Instrument;

use crate::clock::MAX_DIFFERENCE;
use crate::device_lease::claim_in;
use crate::log::{ChangeLog, input_name};
use crate::{Context, Engine, EngineError};

pub use applied::Applied;
pub(crate) use applied::Tried;
pub(crate) use queue::RequestQueue;

/// How a change is tried again when the database goes away under it. Every input may be decided twice.
const AGAIN: ExponentialBuilder = ExponentialBuilder::new()
    .with_min_delay(Duration::from_millis(50))
    .with_max_times(4);

/// The host that an input is for, and what the caller has read of it a moment ago: that saves another look.
pub(crate) struct Upon {
    host_id: HostId,
    seen: Option<Box<SeenHost>>,
}

impl From<HostId> for Upon {
    fn from(host_id: HostId) -> Self {
        Self { host_id, seen: None }
    }
}

impl From<SeenHost> for Upon {
    fn from(seen: SeenHost) -> Self {
        Self {
            host_id: seen.state.host.id,
            seen: Some(Box::new(seen)),
        }
    }
}

impl Engine {
    /// Decides an input and commits what it changes.
    pub(crate) async fn apply(
        &self,
        upon: impl Into<Upon>,
        input: Input,
        by: &Context,
    ) -> Result<Applied, EngineError> {
        let upon = upon.into();
        let host_id = upon.host_id;
        let (mut seen, mut is_again) = (Some(upon), false);
        let done = (|| {
            let upon = seen.take().unwrap_or_else(|| host_id.into());
            self.apply_once(upon, input.clone(), by)
        })
        .retry(AGAIN)
        .when(EngineError::is_passing)
        .notify(|error, _| {
            tracing::warn!(%host_id, error = %error_chain(error), "the database or the keeper of the records went away; the change is tried again");
            is_again = true;
        })
        .await;
        match done {
            Err(EngineError::Changed { .. }) if is_again => Err(perhaps_made(by)),
            done => done,
        }
    }

    async fn apply_once(&self, upon: Upon, input: Input, by: &Context) -> Result<Applied, EngineError> {
        let attempt = claim_in(&input).map(|claim| claim.attempt);
        match self.try_apply(upon, input, by).await? {
            Tried::Applied(applied) => Ok(*applied),
            Tried::DeviceBusy => Err(EngineError::DeviceBusy {
                attempt: attempt.map(|attempt| attempt.to_string()).unwrap_or_default(),
            }),
        }
    }

    /// As [`Engine::apply`], once. The device of a claim is leased in this transaction, for as long as its worker shows that
    /// it lives. If the caller goes away half-way, the change is made even so.
    pub(crate) async fn try_apply(
        &self,
        upon: impl Into<Upon>,
        input: Input,
        by: &Context,
    ) -> Result<Tried, EngineError> {
        let log = ChangeLog::new(&input);
        let span = log.span();
        let (name, begun) = (input_name(&input), Instant::now());
        let tried = committer::commit(self, upon.into(), input, by.clone(), log)
            .instrument(span)
            .await;
        self.0.metrics.count_decision(name, &tried, begun.elapsed());
        tried
    }

    /// Engines' clocks may differ a little; for one host, time does not run backwards because of that. A clock that was moved
    /// back is another matter: the rules deal with it, and must be told.
    pub(crate) fn time_for(&self, last_change: Timestamp) -> Timestamp {
        let now = self.0.clock.now();
        let ahead = last_change - now;
        if ahead > chrono::TimeDelta::zero() && ahead <= MAX_DIFFERENCE {
            last_change
        } else {
            now
        }
    }

    /// Puts a refused claim or the like on record, outside of any host's transaction.
    pub(crate) async fn audit_refusal(
        &self,
        host_id: HostId,
        by: &Context,
        what: &'static str,
        refusal: &Refusal,
    ) {
        let detail = json!({ "why": refusal.to_string() });
        let entry = by.line(self.0.clock.now(), what, None, Some(host_id), detail);
        if let Err(error) = ringfence_db::append_audit(&mut self.0.db.reader(), &entry).await {
            tracing::warn!(%host_id, error = %error_chain(&error), what, "a refusal could not be put on record");
        }
    }
}

/// Something is not as the caller has read it, and an earlier try may have been committed without a word: it may be that change itself.
/// With a key, what was changed for it is looked up.
fn perhaps_made(by: &Context) -> EngineError {
    if by.key.is_some() {
        EngineError::KeySpent
    } else {
        EngineError::Interrupted
    }
}
