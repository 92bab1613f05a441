//! Writes decisions, those of several hosts with the same statements.

use ringfence_core::{Decision, Effect, Event, HostId, HostState, Operation, Proof, ProofKind, Timestamp};
use ringfence_db::{
    AuditEntry, DbError, EventHost, HostWrite, NewEvent, OutboxRow, Tx, append_audit_lines, append_events,
    append_outbox, insert_operations, insert_proofs, renew_proof, update_hosts, update_operations,
};
use serde_json::Value;
use uuid::Uuid;

use super::group::Knock;
use super::turn::{Decided, Turn};
use crate::Context;
use crate::relay::{self, Outgoing};

/// Writes everything that was decided. The order satisfies the foreign keys: operations, proofs, then the hosts that rest on
/// them; and an operation that made way is written before the one that took its place.
pub(super) async fn write(tx: &mut Tx, knocks: &[Knock], turns: &mut [Turn]) -> Result<(), DbError> {
    let (mut events, mut audit, mut outbox) = (Vec::new(), Vec::new(), Vec::new());
    let mut written = Vec::new();
    for (turn, knock) in turns.iter_mut().zip(knocks) {
        let Some(decided) = turn.change() else { continue };
        events.extend(number_events(decided));
        count_revision(decided);
        audit.extend(audit_lines(decided, &knock.by));
        decided.outgoing = outgoing(&mut decided.decision);
        let now = decided.now;
        outbox.extend(decided.outgoing.iter().map(|message| outbox_row(message, now)));
        written.push(&*decided);
    }
    write_operations(tx, &written).await?;
    let hosts: Vec<_> = written.iter().map(|decided| host_write(decided)).collect();
    update_hosts(tx, &hosts).await?;
    append_events(tx, &events).await?;
    append_outbox(tx, &outbox).await?;
    append_audit_lines(tx, &audit).await
}

async fn write_operations(tx: &mut Tx, written: &[&Decided]) -> Result<(), DbError> {
    let (mut changed, mut new, mut won, mut renewed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for decided in written {
        let Decision {
            superseded, state, ..
        } = &decided.decision;
        for operation in superseded.iter().chain(&state.operation) {
            let known = decided.before.operation.as_ref();
            let known = known.filter(|known| known.id == operation.id);
            match known {
                Some(known) if known == operation => {}
                Some(_) => changed.push(operation),
                None => new.push(operation),
            }
            for proof in &operation.proofs {
                match earlier(known, proof) {
                    Some(earlier) if earlier == proof => {}
                    Some(_) => renewed.push((operation.host_id, proof)),
                    None => won.push((operation.host_id, proof)),
                }
            }
        }
    }
    update_operations(tx, &changed).await?;
    insert_operations(tx, &new).await?;
    insert_proofs(tx, &won).await?;
    write_renewed(tx, renewed).await
}

/// Self-fencing alone wins a proof anew, and rarely.
async fn write_renewed(tx: &mut Tx, renewed: Vec<(HostId, &Proof)>) -> Result<(), DbError> {
    for (host_id, proof) in renewed {
        renew_proof(tx, host_id, proof).await?;
    }
    Ok(())
}

fn earlier<'a>(known: Option<&'a Operation>, proof: &Proof) -> Option<&'a Proof> {
    known.and_then(|known| known.proofs.iter().find(|earlier| earlier.kind == proof.kind))
}

fn host_write(decided: &Decided) -> HostWrite<'_> {
    let state = &decided.decision.state;
    HostWrite {
        host: &state.host,
        fenced_proof: fenced_proof(state),
        wake_at: decided.decision.wake_at,
    }
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

/// The events of a decision, each with its number among those of the host.
fn number_events(decided: &mut Decided) -> Vec<NewEvent> {
    let now = decided.now;
    let Decision { state, effects, .. } = &mut decided.decision;
    let mut number = |event: &Event| {
        state.host.event_sequence += 1;
        NewEvent {
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
        }
    };
    let events = effects.iter().filter_map(|effect| match effect {
        Effect::Event(event) => Some(event),
        Effect::Dispatch(_) | Effect::Note(_) => None,
    });
    events.map(&mut number).collect()
}

fn count_revision(decided: &mut Decided) {
    let state = &mut decided.decision.state;
    if state.host != decided.before.host {
        state.host.revision += 1;
        state.host.updated_at = decided.now;
    }
}

fn audit_lines(decided: &Decided, by: &Context) -> Vec<AuditEntry> {
    let state = &decided.decision.state;
    let line = |action: &str, detail: &Value| AuditEntry {
        at: decided.now,
        actor: by.actor.clone(),
        origin: by.origin.clone(),
        request_id: by.request_id.clone(),
        action: action.to_owned(),
        target: Some(state.host.name.clone()),
        host_id: Some(state.host.id),
        detail: detail.clone(),
    };
    let effects = decided.decision.effects.iter();
    effects
        .filter_map(|effect| match effect {
            Effect::Event(event) => Some(line(event.kind.as_str(), &event.data)),
            Effect::Note(note) => Some(line(note.action, &note.detail)),
            Effect::Dispatch(_) => None,
        })
        .collect()
}

fn outgoing(decision: &mut Decision) -> Vec<Outgoing> {
    let effects = std::mem::take(&mut decision.effects);
    effects
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Dispatch(dispatch) => Some(Outgoing::new(*dispatch)),
            Effect::Event(_) | Effect::Note(_) => None,
        })
        .collect()
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
