//! What the decisions of a batch come to, by table.

use std::collections::{BTreeMap, HashMap};

use ringfence_core::{
    Decision, Effect, Generation, HostId, HostState, Operation, Permit, Proof, ProofKind, Timestamp,
};
use ringfence_db::{AuditEntry, Changes, HostWrite, NewPermit, OutboxRow};
use serde_json::Value;

use super::decision::{Decided, Outcome};
use super::queue::Request;
use crate::relay::{self, Outgoing};
use crate::{Context, Engine};

/// What is to be written. Each decision keeps what it has to publish once it is committed.
pub(super) fn changes<'b>(
    engine: &Engine,
    outcomes: &'b mut [Outcome],
    requests: &'b [Request],
) -> Changes<'b> {
    let mut changes = Changes {
        // An engine that was halted since the host was read has decided by a time that is over.
        not_after: engine.0.clock.latest(),
        ..Changes::default()
    };
    let mut leases = BTreeMap::new();
    for (outcome, request) in outcomes.iter_mut().zip(requests) {
        leases.extend(outcome.lease().map(|lease| (lease.device.clone(), lease.clone())));
        changes.released.extend(outcome.released());
        changes.receipts.extend(outcome.receipt(request));
        let Some(decided) = outcome.change() else { continue };
        changes.events.append(&mut decided.events);
        changes.audit.extend(audit_lines(decided, &request.by));
        decided.outgoing = outgoing(&mut decided.decision);
        let now = decided.now;
        let rows = decided.outgoing.iter().map(|message| outbox_row(message, now));
        changes.outbox.extend(rows);
    }
    changes.leases = leases.into_values().collect();
    let decided = outcomes
        .iter_mut()
        .filter_map(|outcome| outcome.change().map(|decided| &*decided));
    for host in by_host(decided) {
        host.add_to(&mut changes);
    }
    changes
}

/// The decisions on one host, each upon what the one before it left.
struct OfHost<'b> {
    before: &'b HostState,
    last: &'b Decided,
    /// Every operation that was touched, as it is at the end; one that made way stands before the one that took its place.
    operations: Vec<&'b Operation>,
}

/// Those of all hosts, in the order of the first decisions.
fn by_host<'b>(decided: impl Iterator<Item = &'b Decided>) -> Vec<OfHost<'b>> {
    let mut hosts: Vec<OfHost<'_>> = Vec::new();
    let mut at: HashMap<HostId, usize> = HashMap::new();
    for decided in decided {
        let index = *at.entry(decided.before.host.id).or_insert_with(|| {
            hosts.push(OfHost {
                before: &decided.before,
                last: decided,
                operations: Vec::new(),
            });
            hosts.len() - 1
        });
        hosts[index].add(decided);
    }
    hosts
}

impl<'b> OfHost<'b> {
    fn add(&mut self, decided: &'b Decided) {
        let decision = &decided.decision;
        for operation in decision.superseded.iter().chain(&decision.state.operation) {
            match self.operations.iter_mut().find(|known| known.id == operation.id) {
                Some(known) => *known = operation,
                None => self.operations.push(operation),
            }
        }
        self.last = decided;
    }

    fn add_to(&self, changes: &mut Changes<'b>) {
        let host_id = self.before.host.id;
        // The last proof of each kind and generation that was won.
        let mut won: BTreeMap<(Generation, ProofKind), &'b Proof> = BTreeMap::new();
        for operation in self.operations.iter().copied() {
            let known = self.before.operation.as_ref();
            let known = known.filter(|known| known.id == operation.id);
            match known {
                None => changes.new_operations.push(operation),
                Some(known) if known == operation => {}
                Some(known) => changes.changed_operations.push((operation, known)),
            }
            let had = known.map_or(&[] as &[Permit], Operation::permits);
            let has = operation.permits();
            let taken = has.iter().filter(|permit| !had.contains(permit));
            changes.permits.extend(taken.map(|permit| NewPermit {
                operation_id: operation.id,
                permit,
            }));
            if has.is_empty() && !had.is_empty() {
                changes.returned.push(operation.id);
            }
            let known = known.map_or(&[] as &[Proof], |known| &known.proofs);
            let new = operation.proofs.iter().filter(|proof| is_won(known, proof));
            won.extend(new.map(|proof| ((proof.generation, proof.kind), proof)));
        }
        changes
            .proofs
            .extend(won.into_values().map(|proof| (host_id, proof)));
        changes.hosts.push(HostWrite {
            host: &self.last.decision.state.host,
            known: Some(&self.before.host),
            wake_at: self.last.decision.wake_at,
        });
    }
}

/// Whether a proof is none of those that are known. One that has only come to its end is.
fn is_won(known: &[Proof], proof: &Proof) -> bool {
    let whole = |proof: &Proof| Proof {
        ended: None,
        ..proof.clone()
    };
    !known.iter().any(|known| whole(known) == whole(proof))
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
