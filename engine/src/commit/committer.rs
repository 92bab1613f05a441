//! Takes requests from the queue and carries them out, those that wait together in one transaction.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::join_all;
use ringfence_core::{HostId, Input, error_chain};
use ringfence_db::{Begun, Ended, Locking};
use tokio::sync::oneshot;

use super::batch::Batch;
use super::queue::Request;
use super::{Tried, Upon, perhaps_made};
use crate::log::ChangeLog;
use crate::{Context, Engine, EngineError};

/// Carries out an input, together with others that wait.
pub(super) async fn commit(
    engine: &Engine,
    upon: Upon,
    input: Input,
    by: Context,
    log: ChangeLog,
) -> Result<Tried, EngineError> {
    let (answer, answered) = oneshot::channel();
    let Upon { host_id, seen } = upon;
    let request = Request {
        host_id,
        input,
        by,
        log,
        seen,
        answer,
    };
    if engine.0.queue.push(request) {
        tokio::spawn(Committer::of(engine).run());
    }
    answered.await.unwrap_or(Err(EngineError::Interrupted))
}

/// Carries out what waits, until nothing does.
struct Committer {
    engine: Engine,
    is_done: bool,
}

impl Committer {
    fn of(engine: &Engine) -> Self {
        Self {
            engine: engine.clone(),
            is_done: false,
        }
    }

    async fn run(mut self) {
        let queue = &self.engine.0.queue;
        while let Some(requests) = queue.next() {
            // A panic must not keep later requests waiting for ever. These hear that they were interrupted, and their transaction is undone.
            let done = AssertUnwindSafe(carry_out(&self.engine, requests)).catch_unwind();
            if done.await.is_err() {
                tracing::error!("a change was interrupted by a fault of this program");
            }
            // On SQLite all of it may have been done without waiting for anything: other tasks of this thread come first.
            if queue.is_waited_for() {
                tokio::task::yield_now().await;
            }
        }
        self.is_done = true;
    }
}

impl Drop for Committer {
    /// One that did not come to its end went down with its runtime, in the middle of its work or before it.
    fn drop(&mut self) {
        if !self.is_done {
            drop(self.engine.0.queue.abandon());
        }
    }
}

/// In one transaction; if that fails, each request alone, so that the fault comes to the request whose fault it is.
async fn carry_out(engine: &Engine, mut requests: Vec<Request>) {
    let error = match transact(engine, &mut requests).await {
        Ok(answers) => return answer(requests, answers),
        Err(error) => error,
    };
    if requests.len() == 1 {
        return answer(requests, vec![Err(error)]);
    }
    tracing::debug!(requests = requests.len(), error = %error_chain(&error), "requests did not go together");
    let may_be_made = matches!(&error, EngineError::Db(error) if error.is_passing());
    let alone = requests
        .into_iter()
        .map(|request| carry_out_alone(engine, request, may_be_made));
    join_all(alone).await;
}

/// With `may_be_made`, an earlier transaction may have been committed without a word: the request may find its own change.
async fn carry_out_alone(engine: &Engine, request: Request, may_be_made: bool) {
    let perhaps = perhaps_made(&request.by);
    let mut requests = vec![request];
    let tried = match transact(engine, &mut requests).await {
        Ok(mut answers) => answers.pop(),
        Err(error) => Some(Err(error)),
    };
    let tried = tried.map(|tried| match tried {
        Err(EngineError::Changed { .. }) if may_be_made => Err(perhaps),
        tried => tried,
    });
    answer(requests, tried.into_iter().collect());
}

fn answer(requests: Vec<Request>, answers: Vec<Result<Tried, EngineError>>) {
    for (request, answer) in requests.into_iter().zip(answers) {
        // The caller may have gone away.
        drop(request.answer.send(answer));
    }
}

/// Carries out requests in one transaction; returns an answer to each. Those that are refused a device, a permit or a key are answered here, and
/// are no longer among them. If it fails, nothing was changed.
async fn transact(
    engine: &Engine,
    requests: &mut Vec<Request>,
) -> Result<Vec<Result<Tried, EngineError>>, EngineError> {
    let is_alone = requests.len() == 1;
    let mut locking = Locking::Optimistic;
    loop {
        let begun = begin(engine, requests, locking).await?;
        engine.0.clock.catch_up(begun.read_at);
        let mut batch = Batch::decide(engine, requests, begun.hosts);
        if engine.0.records.is_some() {
            engine.put_on_record(batch.states(requests)).await?;
        }
        let ended = match batch.changes(engine, requests) {
            None => {
                drop(begun.transaction);
                Ended::NOTHING
            }
            Some(changes) => begun.transaction.commit(&changes).await?,
        };
        match ended {
            Ended::Committed { are_events_announced } => {
                return Ok(batch.end(engine, requests, are_events_announced, is_alone).await);
            }
            Ended::HostsChanged => {
                tracing::debug!("a host was changed since it was read; it is locked now");
                locking = Locking::Pessimistic;
            }
            Ended::Refused(not_had) => batch.answer_refused(requests, &not_had),
        }
    }
}

async fn begin(engine: &Engine, requests: &mut [Request], locking: Locking) -> Result<Begun, EngineError> {
    let db = &engine.0.db;
    if let [Request { seen, .. }] = requests
        && let Some(seen) = seen.take()
    {
        return Ok(db.begin_upon(*seen).await?);
    }
    let hosts: BTreeSet<HostId> = requests.iter().map(|request| request.host_id).collect();
    let hosts: Vec<HostId> = hosts.into_iter().collect();
    Ok(db.begin_with_hosts(&hosts, locking).await?)
}
