//! What one request comes to: what is decided for it, and what is told of it once that is committed.

use std::collections::HashMap;

use ringfence_core::{
    AttemptId, Decision, Effect, Event, HostState, Input, Operation, OperationId, Permit, Reply, Timestamp,
    decide,
};
use ringfence_db::{DeviceLease, EventHost, NewEvent, NewReceipt, NotHad};

use super::queue::Request;
use super::{Applied, Tried};
use crate::configure::check_revision;
use crate::device_lease::{Device, claim_in};
use crate::ids::new_id;
use crate::log::Told;
use crate::metrics::Moved;
use crate::relay::Outgoing;
use crate::{Engine, EngineError, Receipt};

/// What a request came to.
pub(super) enum Outcome {
    /// An answer; nothing is to be written.
    Answered(Result<Tried, EngineError>),
    /// A decision.
    Decided(Box<Decided>),
}

/// A decision, and what goes with it.
pub(super) struct Decided {
    pub before: HostState,
    pub decision: Decision,
    pub now: Timestamp,
    told: Told,
    moved: Moved,
    lease: Option<DeviceLease>,
    released: Option<AttemptId>,
    /// Whether anything of the host is to be written; a claim that only renews itself writes nothing but its lease.
    changes: bool,
    /// What it tells, numbered.
    pub events: Vec<NewEvent>,
    /// What has to be published after the commit.
    pub outgoing: Vec<Outgoing>,
}

impl Outcome {
    /// Decides a request for its host, as earlier requests have left it. `leases` are the devices that earlier requests lease: a device
    /// that two want goes to the first.
    pub fn decide(
        engine: &Engine,
        request: &Request,
        before: Option<HostState>,
        leases: &mut HashMap<String, AttemptId>,
    ) -> Self {
        let Some(mut before) = before else {
            return Self::Answered(Err(EngineError::not_found("host", request.host_id)));
        };
        let now = engine.time_for(before.host.updated_at);
        before.clock_set_at = engine.0.clock.set_at();
        let device = claim_in(&request.input).and_then(|claim| Device::of(&before, claim));
        let released = if let Input::Result(result) = &request.input {
            Some(result.claim.attempt)
        } else {
            None
        };
        let mut decision = match decide(&before, request.input.clone(), now) {
            Ok(decision) => decision,
            Err(refusal) => {
                request.log.refused(&before, &refusal);
                return Self::Answered(Err(refusal.into()));
            }
        };
        // After everything else that can be wrong with a request (RFC 9110, 13.2.1).
        let revision = revision_of_changed(&before, &request.input);
        if let Err(changed) = check_revision(request.by.if_revision, revision) {
            return Self::Answered(Err(changed));
        }
        let lease = device.and_then(|device| device.leased(&decision.answer, now));
        if let Some(lease) = &lease
            && *leases.entry(lease.device.clone()).or_insert(lease.attempt) != lease.attempt
        {
            request.log.device_busy(&before);
            return Self::Answered(Ok(Tried::DeviceBusy));
        }
        let changed = decision.state != before || !decision.effects.is_empty();
        let is_tick = matches!(request.input, Input::Tick { .. });
        let moved = Moved::of(&before, &decision, released, now);
        let events = number_events(&mut decision, now);
        count_revisions(&before, &mut decision, now);
        Self::Decided(Box::new(Decided {
            lease,
            told: Told::of(&decision),
            moved,
            changes: changed || is_tick || released.is_some(),
            before,
            decision,
            now,
            released,
            events,
            outgoing: Vec::new(),
        }))
    }

    fn decided(&self) -> Option<&Decided> {
        match self {
            Self::Answered(_) => None,
            Self::Decided(decided) => Some(decided),
        }
    }

    /// The host as this request leaves it, and as the next one would read it: with an operation that is live, or none.
    pub fn leaves(&self) -> Option<HostState> {
        let HostState {
            host,
            operation,
            policy,
            shared,
            clock_set_at,
        } = &self.decided()?.decision.state;
        Some(HostState {
            host: host.clone(),
            operation: operation.clone().filter(|operation| operation.status.is_live()),
            policy: policy.clone(),
            shared: shared.clone(),
            clock_set_at: *clock_set_at,
        })
    }

    /// The device that has to be leased for it.
    pub fn lease(&self) -> Option<&DeviceLease> {
        self.decided()?.lease.as_ref()
    }

    /// The attempt whose leases end.
    pub fn released(&self) -> Option<AttemptId> {
        self.decided()?.released
    }

    /// What is changed for a request with a key: the operation that it is about, began or joined, else the host. `None` where nothing is.
    pub fn receipt<'r>(&self, request: &'r Request) -> Option<NewReceipt<'r>> {
        let decided = self.decided().filter(|decided| decided.changes)?;
        let receipt = match (&request.input, &decided.decision.answer) {
            (Input::Cancel { operation_id, .. } | Input::Retry { operation_id, .. }, _)
            | (_, Reply::Started(operation_id) | Reply::Joined(operation_id)) => {
                Receipt::Operation(*operation_id)
            }
            _ => Receipt::Host(decided.before.host.id),
        };
        request.by.key.as_ref().map(|held| held.receipt(&receipt))
    }

    /// The answer to a request that was not given its device, its permit or its key: nothing of the decision holds. `None` if that was not so.
    pub fn refused(&self, request: &Request, not_had: &NotHad) -> Option<Result<Tried, EngineError>> {
        if self.begins_one_of(&not_had.operations) {
            return Some(Err(EngineError::NotPermitted));
        }
        if self
            .lease()
            .is_some_and(|lease| not_had.devices.contains(&lease.device))
        {
            request.log.device_busy(&self.decided()?.before);
            return Some(Ok(Tried::DeviceBusy));
        }
        let receipt = self.receipt(request)?;
        not_had
            .holders
            .contains(&receipt.holder)
            .then_some(Err(EngineError::KeySpent))
    }

    /// Whether it is this decision that takes the permits of one of these operations.
    fn begins_one_of(&self, operations: &[OperationId]) -> bool {
        let Some(decided) = self.decided() else {
            return false;
        };
        let had = decided
            .before
            .operation
            .as_ref()
            .map_or(&[] as &[Permit], Operation::permits);
        let begun = decided.decision.state.operation.as_ref();
        begun.is_some_and(|live| operations.contains(&live.id) && live.permits() != had)
    }

    /// Whether the transaction has anything to commit for it.
    pub fn writes(&self) -> bool {
        self.decided()
            .is_some_and(|decided| decided.changes || decided.lease.is_some())
    }

    /// The decision, if anything of the host has to be written.
    pub fn change(&mut self) -> Option<&mut Decided> {
        match self {
            Self::Decided(decided) if decided.changes => Some(decided),
            Self::Decided(_) | Self::Answered(_) => None,
        }
    }

    /// Takes the messages that it has to publish.
    pub fn take_outgoing(&mut self) -> Vec<Outgoing> {
        self.change()
            .map_or_else(Vec::new, |decided| std::mem::take(&mut decided.outgoing))
    }

    /// Whether it has written events.
    pub fn has_events(&self) -> bool {
        self.decided()
            .is_some_and(|decided| decided.changes && decided.told.has_events())
    }

    /// It is committed, or there was nothing to commit: counts, and says so.
    pub fn end(self, engine: &Engine, request: &Request) -> Result<Tried, EngineError> {
        match self {
            Self::Answered(answer) => answer,
            Self::Decided(decided) => Ok(decided.end(engine, request)),
        }
    }
}

impl Decided {
    fn end(self, engine: &Engine, request: &Request) -> Tried {
        let Self {
            decision,
            now,
            told,
            moved,
            changes,
            ..
        } = self;
        let (state, answer) = (decision.state, decision.answer);
        if changes {
            request.log.committed(&state, &answer, &told, &request.by);
            engine.0.metrics.count_moved(&moved);
            // What is due already and was left undone is not looked at again at once, over and over.
            let next_look = now + engine.0.config.tick_every;
            if let Some(at) = decision.wake_at.filter(|at| *at > now && *at < next_look) {
                engine.0.waker.set(at);
            }
        } else {
            request.log.unchanged(&state, &answer);
        }
        Tried::Applied(Box::new(Applied { state, answer }))
    }
}

/// The events of a decision, each with its number among those of the host.
fn number_events(decision: &mut Decision, now: Timestamp) -> Vec<NewEvent> {
    let Decision { state, effects, .. } = decision;
    let mut number = |event: &Event| {
        state.host.event_sequence += 1;
        NewEvent {
            id: new_id(),
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

fn count_revisions(before: &HostState, decision: &mut Decision, now: Timestamp) {
    let host = &mut decision.state.host;
    // One that was written before the clock was set back is looked at again and again until it is of the present.
    if *host != before.host || host.updated_at > now {
        host.revision += 1;
        host.updated_at = now;
    }
    let operations = decision
        .superseded
        .iter_mut()
        .chain(&mut decision.state.operation);
    for operation in operations {
        let known = before.operation.as_ref().filter(|known| known.id == operation.id);
        if known != Some(operation) {
            operation.revision += 1;
        }
    }
}

/// The revision of what an input is about: the operation that it names, else the host.
fn revision_of_changed(before: &HostState, input: &Input) -> u64 {
    match (input, &before.operation) {
        (Input::Cancel { .. } | Input::Retry { .. }, Some(operation)) => operation.revision,
        _ => before.host.revision,
    }
}
