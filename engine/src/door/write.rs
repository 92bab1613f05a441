//! Writes decisions, those of several hosts with the same statements.

use ringfence_core::{AttemptId, Decision, Effect, HostId, Operation, Proof, Timestamp};
use ringfence_db::{
    AuditEntry, Batch, DbError, HostWrite, NewEvent, OutboxRow, Tx, Write, append_audit_lines, append_events,
    append_outbox, insert_operations, release_devices, save_proofs, update_hosts, update_operations,
};
use serde_json::Value;

use super::chain::Chain;
use super::queue::Knock;
use super::turn::{Decided, Turn};
use crate::Context;
use crate::relay::{self, Outgoing};

/// Writes everything that was decided, and commits it.
pub(super) async fn write(mut tx: Tx, knocks: &[Knock], turns: &mut [Turn]) -> Result<(), DbError> {
    let rows = Rows::of(knocks, turns);
    if rows.go_together() || Batch::keeps_order(&tx) {
        let mut batch = Batch::of(&tx);
        rows.write(&mut batch).await?;
        batch.commit(tx).await
    } else {
        rows.write(&mut tx).await?;
        tx.commit().await
    }
}

/// Everything that is written.
pub(super) struct Rows<'a> {
    /// Attempts whose devices are given back.
    released: Vec<AttemptId>,
    hosts: Vec<HostWrite<'a>>,
    operations: Operations<'a>,
    events: Vec<NewEvent>,
    audit: Vec<AuditEntry>,
    outbox: Vec<OutboxRow>,
}

impl<'a> Rows<'a> {
    /// What the decisions come to. Each keeps what it has to publish once it is committed.
    pub fn of(knocks: &[Knock], turns: &'a mut [Turn]) -> Self {
        let released = turns.iter().filter_map(Turn::releases).collect();
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
        let operations = Operations::of(&chains);
        Self {
            released,
            hosts: chains.iter().map(Chain::host).collect(),
            operations,
            events,
            audit,
            outbox,
        }
    }

    /// Whether all of it is of one host, and no statement of it needs another one to come first: an operation that makes way, events of a
    /// host (whose database refuses a gap) or lines about it that are too many for one statement.
    pub fn go_together(&self) -> bool {
        let Operations { changed, new, .. } = &self.operations;
        self.hosts.len() <= 1
            && (changed.is_empty() || new.is_empty())
            && Batch::holds(self.events.len())
            && Batch::holds(self.audit.len())
    }

    /// The order satisfies the foreign keys: operations, proofs, then the hosts that rest on them.
    pub async fn write(&self, to: &mut impl Write) -> Result<(), DbError> {
        release_devices(to, &self.released).await?;
        self.operations.write(to).await?;
        update_hosts(to, &self.hosts).await?;
        append_events(to, &self.events).await?;
        append_outbox(to, &self.outbox).await?;
        append_audit_lines(to, &self.audit).await
    }
}

/// Operations, each of those that have changed with what is known of it, and proofs.
struct Operations<'a> {
    changed: Vec<(&'a Operation, &'a Operation)>,
    new: Vec<&'a Operation>,
    won: Vec<(HostId, &'a Proof)>,
}

impl<'a> Operations<'a> {
    fn of(chains: &[Chain<'a>]) -> Self {
        Self {
            changed: chains.iter().flat_map(Chain::changed_operations).collect(),
            new: chains.iter().flat_map(Chain::new_operations).collect(),
            won: chains.iter().flat_map(Chain::proofs).collect(),
        }
    }

    /// An operation that made way is written before the one that took its place.
    async fn write(&self, to: &mut impl Write) -> Result<(), DbError> {
        update_operations(to, &self.changed).await?;
        insert_operations(to, &self.new).await?;
        save_proofs(to, &self.won).await
    }
}

fn audit_lines(decided: &Decided, by: &Context) -> Vec<AuditEntry> {
    let state = &decided.decision.state;
    let host = &state.host;
    let line = |action: &str, detail: &Value| {
        by.line(
            decided.now,
            action,
            Some(&host.name),
            Some(host.id),
            detail.clone(),
        )
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
        resource: message.task.job.kind().resource().as_str().to_owned(),
        zone: message.task.job.zone().to_owned(),
        payload: serde_json::to_value(&message.task).unwrap_or(Value::Null),
        trace: message.trace.clone(),
        available_at: now + relay::HEAD_START,
        expires_at: message.claim_by,
        tries: 0,
    }
}
