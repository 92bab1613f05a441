//! One way to change a host: lock, decide, write, commit, publish.

use std::time::Duration;

use ringfence_core::{
    Answer, Decision, Effect, HostId, HostState, Input, Operation, ProofKind, Refusal, Timestamp, decide,
};
use ringfence_db::{AuditEntry, DbError, EventHost, NewEvent, OutboxRow, Tx};
use serde_json::{Value, json};
use tokio::time::Instant;
use tracing::Instrument;
use uuid::Uuid;

use crate::error::error_chain;
use crate::log::{Door, Told, input_name};
use crate::metrics::Moved;
use crate::relay::{self, Outgoing};
use crate::taken::{self, Device};
use crate::{Context, Engine, EngineError};

/// How often a change is tried again when the database goes away under it. Every input may be decided twice.
const TRIES: u32 = 5;
/// What the clocks of two engines may differ by: each follows the database's.
const MAX_DIFFERENCE: chrono::TimeDelta = chrono::TimeDelta::seconds(5);
/// The first pause between two tries; it doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// A change that was committed.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The host and its operation as they are now.
    pub state: HostState,
    /// What the one who asked is told.
    pub answer: Answer,
}

/// What one try of a change came to.
pub(crate) enum Tried {
    /// It was decided and committed.
    Applied(Box<Applied>),
    /// A claim would have been granted, but its device carries out another command.
    DeviceBusy,
}

impl Engine {
    /// Decides an input and commits what it changes.
    pub(crate) async fn apply(
        &self,
        host_id: HostId,
        input: Input,
        by: &Context,
    ) -> Result<Applied, EngineError> {
        let mut pause = FIRST_PAUSE;
        for _ in 1..TRIES {
            match self.apply_once(host_id, input.clone(), by).await {
                Err(EngineError::Db(error)) if error.is_passing() => {
                    tracing::warn!(%host_id, error = %error_chain(&error), "the database went away; trying again");
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                done => return done,
            }
        }
        self.apply_once(host_id, input, by).await
    }

    async fn apply_once(&self, host_id: HostId, input: Input, by: &Context) -> Result<Applied, EngineError> {
        let attempt = taken::claim_in(&input).map(|claim| claim.attempt);
        match self.try_apply(host_id, input, by).await? {
            Tried::Applied(applied) => Ok(*applied),
            Tried::DeviceBusy => Err(EngineError::DeviceBusy {
                attempt: attempt.map(|attempt| attempt.to_string()).unwrap_or_default(),
            }),
        }
    }

    /// As [`Engine::apply`], once. What a claim acts on is taken in the same transaction, and kept while its worker shows that
    /// it lives.
    pub(crate) async fn try_apply(
        &self,
        host_id: HostId,
        input: Input,
        by: &Context,
    ) -> Result<Tried, EngineError> {
        let door = Door::new(&input);
        let span = door.span();
        let (name, begun) = (input_name(&input), Instant::now());
        let tried = self
            .decide_and_commit(host_id, input, by, &door)
            .instrument(span)
            .await;
        self.0.metrics.count_decision(name, &tried, begun.elapsed());
        tried
    }

    async fn decide_and_commit(
        &self,
        host_id: HostId,
        input: Input,
        by: &Context,
        door: &Door,
    ) -> Result<Tried, EngineError> {
        let is_tick = matches!(input, Input::Tick);
        let releases = if let Input::Result(result) = &input {
            Some(result.claim.attempt)
        } else {
            None
        };
        let mut tx = self.0.db.begin().await?;
        let before =
            ringfence_db::lock_host(&mut tx, host_id)
                .await?
                .ok_or_else(|| EngineError::NotFound {
                    kind: "host",
                    id: host_id.to_string(),
                })?;
        let now = self.time_for(before.host.updated_at);
        let device = taken::claim_in(&input).and_then(|claim| Device::of(&before, claim));
        let decision = decide(&before, input, now).inspect_err(|refusal| door.refused(&before, refusal))?;
        if let (Some(device), Answer::Granted { budget_ms, lease_ms }) = (device, &decision.answer)
            && !device.take(&mut tx, now, *budget_ms, *lease_ms).await?
        {
            door.device_busy(&before);
            return Ok(Tried::DeviceBusy);
        }
        if let Some(attempt) = releases {
            ringfence_db::release_devices(&mut tx, attempt).await?;
        }
        let changed = decision.state != before || !decision.effects.is_empty();
        if !changed && !is_tick && releases.is_none() {
            door.unchanged(&decision.state, &decision.answer);
            return Ok(Tried::applied(decision.state, decision.answer));
        }
        let answer = decision.answer.clone();
        let told = Told::of(&decision);
        let moved = Moved::of(&before, &decision, releases, now);
        let (state, outgoing) = write(&mut tx, &before, decision, now, by).await?;
        tx.commit().await?;
        door.committed(&state, &answer, &told, by);
        self.0.metrics.count_moved(&moved);
        if !outgoing.is_empty() {
            self.0.relay.send(outgoing);
        }
        if told.has_events() {
            self.0.events_written.notify_one();
        }
        Ok(Tried::applied(state, answer))
    }

    /// Engines' clocks may differ a little; for one host, time does not run backwards because of that. A clock that was moved
    /// back is another matter: the rules deal with it, and must be told.
    fn time_for(&self, last_change: Timestamp) -> Timestamp {
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
        let entry = AuditEntry {
            at: self.0.clock.now(),
            actor: by.actor.clone(),
            origin: by.origin.clone(),
            request_id: by.request_id.clone(),
            action: what.to_owned(),
            target: None,
            host_id: Some(host_id),
            detail: json!({ "why": refusal.to_string() }),
        };
        if let Err(error) = ringfence_db::append_audit(&mut self.0.db.reader(), &entry).await {
            tracing::warn!(%host_id, error = %error_chain(&error), what, "a refusal could not be put on record");
        }
    }
}

impl Tried {
    fn applied(state: HostState, answer: Answer) -> Self {
        Self::Applied(Box::new(Applied { state, answer }))
    }
}

/// Writes a decision. The order satisfies the foreign keys: operations, proofs, then the host that rests on them.
async fn write(
    tx: &mut Tx,
    before: &HostState,
    decision: Decision,
    now: Timestamp,
    by: &Context,
) -> Result<(HostState, Vec<Outgoing>), DbError> {
    let mut state = decision.state;
    if let Some(superseded) = &decision.superseded {
        write_operation(tx, before.operation.as_ref(), superseded).await?;
    }
    if let Some(operation) = &state.operation {
        write_operation(tx, before.operation.as_ref(), operation).await?;
    }
    let events = number_events(&mut state, &decision.effects, now);
    if state.host != before.host {
        state.host.revision += 1;
        state.host.updated_at = now;
    }
    ringfence_db::update_host(tx, &state.host, fenced_proof(&state), decision.wake_at).await?;
    ringfence_db::append_events(tx, &events).await?;
    let (mut outgoing, mut audit) = (Vec::new(), Vec::new());
    for effect in decision.effects {
        match effect {
            Effect::Dispatch(dispatch) => outgoing.push(Outgoing::new(*dispatch)),
            Effect::Note(note) => audit.push(audit_entry(&state, by, note.action, note.detail, now)),
            Effect::Event(event) => {
                audit.push(audit_entry(&state, by, event.kind.as_str(), event.data, now));
            }
        }
    }
    let rows: Vec<_> = outgoing.iter().map(|message| outbox_row(message, now)).collect();
    ringfence_db::append_outbox(tx, &rows).await?;
    ringfence_db::append_audit_lines(tx, &audit).await?;
    Ok((state, outgoing))
}

async fn write_operation(
    tx: &mut Tx,
    before: Option<&Operation>,
    operation: &Operation,
) -> Result<(), DbError> {
    let known = before.filter(|before| before.id == operation.id);
    match known {
        Some(known) if known == operation => {}
        Some(_) => ringfence_db::update_operation(tx, operation).await?,
        None => {
            ringfence_db::insert_operation(tx, operation).await?;
        }
    }
    for proof in &operation.proofs {
        let earlier = known.and_then(|known| known.proofs.iter().find(|p| p.kind == proof.kind));
        match earlier {
            Some(earlier) if earlier == proof => {}
            Some(_) => ringfence_db::renew_proof(tx, operation.host_id, proof).await?,
            None => ringfence_db::insert_proof(tx, operation.host_id, proof).await?,
        }
    }
    Ok(())
}

/// One of the proofs of the present fence, if the operation at hand has won it.
fn fenced_proof(state: &HostState) -> Option<ProofKind> {
    let fenced = state.host.fenced_generation?;
    let operation = state
        .operation
        .as_ref()
        .filter(|operation| operation.generation == fenced)?;
    operation.proofs.first().map(|proof| proof.kind)
}

fn number_events(state: &mut HostState, effects: &[Effect], now: Timestamp) -> Vec<NewEvent> {
    let mut events = Vec::new();
    for effect in effects {
        let Effect::Event(event) = effect else { continue };
        state.host.event_sequence += 1;
        events.push(NewEvent {
            id: Uuid::new_v4(),
            host: Some(EventHost {
                id: state.host.id,
                name: state.host.name.clone(),
                segment_id: state.host.segment_id,
                sequence: state.host.event_sequence,
                generation: state.host.generation,
            }),
            kind: event.kind,
            occurred_at: now,
            data: event.data.clone(),
        });
    }
    events
}

fn outbox_row(message: &Outgoing, now: Timestamp) -> OutboxRow {
    OutboxRow {
        id: message.id,
        resource: message.task.kind.resource().as_str().to_owned(),
        zone: message.task.method.zone.clone(),
        payload: serde_json::to_value(&message.task).unwrap_or(Value::Null),
        trace: message.trace.clone(),
        available_at: now + relay::HEAD_START,
        expires_at: message.claim_by,
        tries: 0,
    }
}

fn audit_entry(state: &HostState, by: &Context, action: &str, detail: Value, now: Timestamp) -> AuditEntry {
    AuditEntry {
        at: now,
        actor: by.actor.clone(),
        origin: by.origin.clone(),
        request_id: by.request_id.clone(),
        action: action.to_owned(),
        target: Some(state.host.name.clone()),
        host_id: Some(state.host.id),
        detail,
    }
}
