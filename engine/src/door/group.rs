//! Carries out together what waits at the same time.
//!
//! A statement and a commit cost as much for sixteen hosts as for one. Whoever comes to the door queues; a few lanes take what waits,
//! as much as there is, and carry it out in one transaction. With nobody else waiting, an input has a lane and a transaction to
//! itself at once: a lone fence is not held up by this.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use futures_util::future::join_all;
use ringfence_core::{HostId, HostState, Input};
use ringfence_db::{DeviceClaim, Locked, Tx};
use tokio::sync::oneshot;

use super::lone_change;
use super::queue::Knock;
use super::turn::{EventsAre, Turn};
use super::write::write;
use super::{Tried, Upon, perhaps_made};
use crate::error::error_chain;
use crate::idempotency::leave_receipt;
use crate::log::Door;
use crate::{Context, Engine, EngineError};

/// Carries out an input, together with others that come at the same time.
pub(super) async fn enter(
    engine: &Engine,
    upon: Upon,
    input: Input,
    by: Context,
    door: Door,
) -> Result<Tried, EngineError> {
    let (answer, answered) = oneshot::channel();
    let Upon { host_id, seen } = upon;
    let knock = Knock {
        host_id,
        input,
        by,
        door,
        seen,
        answer,
    };
    if engine.0.queue.push(knock) {
        tokio::spawn(Lane::of(engine).work());
    }
    answered.await.unwrap_or(Err(EngineError::Interrupted))
}

/// A lane that is open.
struct Lane {
    engine: Engine,
    is_closed: bool,
}

impl Lane {
    fn of(engine: &Engine) -> Self {
        Self {
            engine: engine.clone(),
            is_closed: false,
        }
    }

    /// Carries out what waits, until nothing does.
    async fn work(mut self) {
        let queue = &self.engine.0.queue;
        while let Some(knocks) = queue.next() {
            // A fault in it must not close the door for good. Whoever asked hears that it was interrupted, and its transaction is undone.
            let done = AssertUnwindSafe(carry_out(self.engine.clone(), knocks)).catch_unwind();
            if done.await.is_err() {
                tracing::error!("a change was interrupted by a fault of this program");
            }
            // On SQLite all of it may have been done without waiting for anything: those who were answered come first, and whoever else
            // is on this thread.
            if queue.is_waited_for() {
                tokio::task::yield_now().await;
            }
        }
        self.is_closed = true;
    }
}

impl Drop for Lane {
    /// One that did not come to its end went down with the runtime of whoever knocked first, in the middle of its work or before it.
    fn drop(&mut self) {
        if !self.is_closed {
            drop(self.engine.0.queue.abandon());
        }
    }
}

async fn carry_out(engine: Engine, knocks: Vec<Knock>) {
    if knocks.len() == 1 {
        return one_by_one(&engine, knocks, Outcome::Known).await;
    }
    match together(&engine, &knocks).await {
        Ok(answers) => {
            let mut anew = Vec::new();
            for (knock, answer) in knocks.into_iter().zip(answers) {
                match answer {
                    // Who asked may have gone away.
                    Some(answer) => drop(knock.answer.send(answer)),
                    None => anew.push(knock),
                }
            }
            one_by_one(&engine, anew, Outcome::Known).await;
        }
        // Whose fault it is shows when each goes alone.
        Err(error) => {
            tracing::debug!(inputs = knocks.len(), error = %error_chain(&error), "inputs did not go together");
            one_by_one(&engine, knocks, Outcome::of(&error)).await;
        }
    }
}

/// What is known of an earlier try of the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// It has changed nothing.
    Known,
    /// It may have been committed without a word.
    Unheard,
}

impl Outcome {
    fn of(error: &EngineError) -> Self {
        match error {
            EngineError::Db(error) if error.is_passing() => Self::Unheard,
            _ => Self::Known,
        }
    }
}

async fn one_by_one(engine: &Engine, knocks: Vec<Knock>, before: Outcome) {
    let alone = knocks.into_iter().map(|knock| async move {
        let answer = match together(engine, std::slice::from_ref(&knock)).await {
            Ok(mut answers) => answers.pop().flatten().unwrap_or(Err(EngineError::Interrupted)),
            Err(error) => Err(error),
        };
        let answer = match answer {
            Err(EngineError::Changed { .. }) if before == Outcome::Unheard => Err(perhaps_made(&knock.by)),
            answer => answer,
        };
        let _ = knock.answer.send(answer);
    });
    join_all(alone).await;
}

/// What an input came to; `None` if it has to be decided anew.
pub(super) type Answered = Option<Result<Tried, EngineError>>;

/// All of them in one transaction, with an answer to each; or an error, and nothing was changed.
async fn together(engine: &Engine, knocks: &[Knock]) -> Result<Vec<Answered>, EngineError> {
    if let Some(answers) = lone_change::carry_out(engine, knocks).await? {
        return Ok(answers);
    }
    let ids: HashSet<_> = knocks.iter().map(|knock| knock.host_id).collect();
    let ids: Vec<_> = ids.into_iter().collect();
    let Locked {
        mut tx,
        states,
        read_at,
    } = ringfence_db::begin_with_hosts(&engine.0.db, &ids).await?;
    engine.0.clock.catch_up(read_at);
    let mut turns = decide_all(engine, knocks, states);
    take_devices(engine, &mut tx, knocks, &mut turns).await?;
    leave_receipts(&mut tx, knocks, &mut turns).await?;
    if turns.iter().any(Turn::writes) {
        write(tx, knocks, &mut turns).await?;
    }
    Ok(end_all(engine, knocks, turns, EventsAre::Written).await)
}

/// The answers, once what was decided is committed. Workers, and whoever listens, come first: nobody is waiting for a line in the log.
pub(super) async fn end_all(
    engine: &Engine,
    knocks: &[Knock],
    mut turns: Vec<Turn>,
    events: EventsAre,
) -> Vec<Answered> {
    let is_alone = knocks.len() == 1;
    for (turn, knock) in turns.iter_mut().zip(knocks) {
        engine
            .0
            .relay
            .send(turn.take_outgoing(), &knock.door.span(), is_alone)
            .await;
    }
    match events {
        // Their statement has announced them, to this process as well.
        EventsAre::Numbered => {}
        EventsAre::Written if !turns.iter().any(Turn::has_events) => {}
        EventsAre::Written if is_alone => engine.pass_on_events().await,
        EventsAre::Written => engine.events_written(),
    }
    let ended = turns.into_iter().zip(knocks);
    let end = |(turn, knock): (Turn, &Knock)| {
        let span = knock.door.span();
        span.in_scope(|| turn.end(engine, knock))
    };
    ended.map(end).collect()
}

/// Decides each input upon what those before it have left of its host.
pub(super) fn decide_all(engine: &Engine, knocks: &[Knock], found: Vec<HostState>) -> Vec<Turn> {
    let mut hosts: HashMap<HostId, HostState> =
        found.into_iter().map(|state| (state.host.id, state)).collect();
    let mut waiting: HashMap<HostId, usize> = HashMap::with_capacity(knocks.len());
    for knock in knocks {
        *waiting.entry(knock.host_id).or_default() += 1;
    }
    let mut turns = Vec::with_capacity(knocks.len());
    for knock in knocks {
        // Most are alone with their host, and a host is a large thing to copy.
        let waiting = waiting.entry(knock.host_id).or_default();
        *waiting = waiting.saturating_sub(1);
        let state = match *waiting {
            0 => hosts.remove(&knock.host_id),
            _ => hosts.get(&knock.host_id).cloned(),
        };
        let turn = knock.door.span().in_scope(|| Turn::decide(engine, knock, state));
        if *waiting > 0
            && let Some(state) = turn.leaves()
        {
            hosts.insert(knock.host_id, state);
        }
        turns.push(turn);
    }
    turns
}

/// A turn did not come about: those of the same host after it were decided upon it.
fn undo_after(at: usize, knocks: &[Knock], turns: &mut [Turn]) {
    let host_id = knocks[at].host_id;
    for (turn, knock) in turns.iter_mut().zip(knocks).skip(at + 1) {
        if knock.host_id == host_id {
            *turn = Turn::Anew;
        }
    }
}

/// Leaves receipts for the requests with a key; what another try has done, or does, is not done here.
async fn leave_receipts(tx: &mut Tx, knocks: &[Knock], turns: &mut [Turn]) -> Result<(), EngineError> {
    for (at, knock) in knocks.iter().enumerate() {
        let Some(receipt) = turns[at].receipt(knock) else {
            continue;
        };
        match leave_receipt(tx, &knock.by, receipt).await {
            Err(EngineError::KeySpent) => {
                turns[at].make_way();
                undo_after(at, knocks, turns);
            }
            done => done?,
        }
    }
    Ok(())
}

/// Takes the devices of the claims that would be granted; those whose device is taken are told so.
async fn take_devices(
    engine: &Engine,
    tx: &mut Tx,
    knocks: &[Knock],
    turns: &mut [Turn],
) -> Result<(), EngineError> {
    let mut wanted: HashMap<String, DeviceClaim> = HashMap::new();
    let mut too_late = Vec::new();
    for (at, turn) in turns.iter().enumerate() {
        let Some(claim) = turn.wants() else { continue };
        match wanted.entry(claim.device.clone()) {
            Entry::Vacant(free) => drop(free.insert(claim)),
            // The same attempt asks twice.
            Entry::Occupied(mut own) if own.get().attempt == claim.attempt => drop(own.insert(claim)),
            // A device that two want goes to the first.
            Entry::Occupied(_) => too_late.push(at),
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    let claims = wanted.into_values().collect();
    let taken = ringfence_db::claim_devices(tx, claims, engine.0.clock.now()).await?;
    for (at, knock) in knocks.iter().enumerate() {
        let is_refused = turns[at]
            .wants()
            .is_some_and(|claim| too_late.contains(&at) || !taken.contains(&claim.device));
        if is_refused {
            knock.door.span().in_scope(|| turns[at].refuse_device(knock));
            undo_after(at, knocks, turns);
        }
    }
    Ok(())
}
