//! Writes decisions, those of several hosts with the same statements.

use ringfence_core::{Decision, Effect, Timestamp};
use ringfence_db::{
    AuditEntry, DbError, OutboxRow, Tx, append_audit_lines, append_events, append_outbox, insert_operations,
    insert_proofs, renew_proof, update_hosts, update_operations,
};
use serde_json::Value;

use super::chain::Chain;
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
        events.append(&mut decided.events);
        audit.extend(audit_lines(decided, &knock.by));
        decided.outgoing = outgoing(&mut decided.decision);
        let now = decided.now;
        outbox.extend(decided.outgoing.iter().map(|message| outbox_row(message, now)));
        written.push(&*decided);
    }
    let chains = Chain::of_all(&written);
    write_operations(tx, &chains).await?;
    let hosts: Vec<_> = chains.iter().map(Chain::host).collect();
    update_hosts(tx, &hosts).await?;
    append_events(tx, &events).await?;
    append_outbox(tx, &outbox).await?;
    append_audit_lines(tx, &audit).await
}

async fn write_operations(tx: &mut Tx, chains: &[Chain<'_>]) -> Result<(), DbError> {
    let changed: Vec<_> = chains.iter().flat_map(Chain::changed_operations).collect();
    update_operations(tx, &changed).await?;
    let new: Vec<_> = chains.iter().flat_map(Chain::new_operations).collect();
    insert_operations(tx, &new).await?;
    let (mut won, mut renewed) = (Vec::new(), Vec::new());
    for (host_id, proof, is_renewed) in chains.iter().flat_map(Chain::proofs) {
        let proofs = if is_renewed { &mut renewed } else { &mut won };
        proofs.push((host_id, proof));
    }
    insert_proofs(tx, &won).await?;
    // Self-fencing alone wins a proof anew, and rarely.
    for (host_id, proof) in renewed {
        renew_proof(tx, host_id, proof).await?;
    }
    Ok(())
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
