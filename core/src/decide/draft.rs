//! One decision in the making.

use chrono::TimeDelta;
use serde_json::{Value, json};

use crate::platform::platform_of;
use crate::{
    AttemptStatus, Decision, Dispatch, Effect, Ended, EngineTime, Event, EventKind, FailureState, Generation,
    HostProblem, HostState, Note, Operation, OperationId, OperationKind, OperationStatus, Outcome, Reply,
    TaskStatus, Timestamp, Undoing, Work,
};

/// The state as far as it has been worked out, and what goes with it.
pub(super) struct Draft {
    pub state: HostState,
    pub now: Timestamp,
    /// Moves whose turn it is among those of all hosts.
    pub turns: u32,
    /// After which moment the kdump message was heard that has just come.
    pub heard_after: Option<EngineTime>,
    superseded: Option<Operation>,
    effects: Vec<Effect>,
    wake_at: Option<Timestamp>,
}

/// `seconds` after `at`. Durations are bounded by validation, so that this cannot leave the range of a timestamp.
pub(crate) fn after_s(at: Timestamp, seconds: u32) -> Timestamp {
    at + TimeDelta::seconds(i64::from(seconds))
}

/// `seconds` before `at`.
pub(super) fn before_s(at: Timestamp, seconds: u32) -> Timestamp {
    at - TimeDelta::seconds(i64::from(seconds))
}

/// `milliseconds` after `at`.
pub(super) fn after_ms(at: Timestamp, milliseconds: u64) -> Timestamp {
    at + TimeDelta::milliseconds(i64::try_from(milliseconds).unwrap_or(i64::from(u32::MAX)))
}

/// Milliseconds from `from` to `to`; 0 if `to` has passed.
pub(super) fn ms_until(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from((to - from).num_milliseconds()).unwrap_or(0)
}

impl Draft {
    pub fn new(state: &HostState, now: Timestamp) -> Self {
        Self {
            state: state.clone(),
            now,
            turns: 0,
            heard_after: None,
            superseded: None,
            effects: Vec::new(),
            wake_at: None,
        }
    }

    pub fn into_decision(self, answer: Reply) -> Decision {
        Decision {
            state: self.state,
            superseded: self.superseded,
            effects: self.effects,
            wake_at: self.wake_at,
            answer,
        }
    }

    /// Asks to be ticked at `at`.
    pub fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |known| known.min(at)));
    }

    pub fn event(&mut self, kind: EventKind, data: Value) {
        self.effects.push(Effect::Event(Event { kind, data }));
    }

    /// The problems that its events tell.
    pub fn problems(&self) -> impl Iterator<Item = (HostProblem, Option<&str>)> {
        let events = self.effects.iter().filter_map(|effect| match effect {
            Effect::Event(event) => Some(event),
            Effect::Dispatch(_) | Effect::Note(_) => None,
        });
        events.filter_map(Event::problem)
    }

    pub fn note(&mut self, action: &'static str, detail: Value) {
        self.effects.push(Effect::Note(Note { action, detail }));
    }

    pub fn dispatch(&mut self, dispatch: Dispatch) {
        self.effects.push(Effect::Dispatch(Box::new(dispatch)));
    }

    /// The operation that holds the host, if it is live.
    pub fn live(&self) -> Option<&Operation> {
        self.state
            .operation
            .as_ref()
            .filter(|operation| operation.status.is_live())
    }

    /// A new operation of the host under what its segment says, in which there is nothing to do yet.
    pub fn operation(
        &self,
        id: OperationId,
        work: Work,
        generation: Generation,
        reason: String,
        requested_by: &str,
    ) -> Operation {
        let policy = Box::new(self.state.policy.clone());
        Operation {
            id,
            host_id: self.state.host.id,
            work,
            status: OperationStatus::Running,
            detail: String::new(),
            generation,
            reason,
            requested_by: requested_by.to_owned(),
            platform: platform_of(&self.state).map(Box::new),
            stages: Vec::new(),
            proofs: Vec::new(),
            paused: None,
            despite: self
                .state
                .suspensions(self.now)
                .map(|(_, one)| one.since)
                .collect(),
            round: 0,
            restarts_left: policy.restarts,
            policy,
            restart_at: None,
            last_attempt: 0,
            revision: 0,
            created_at: self.now,
            updated_at: self.now,
            finished_at: None,
        }
    }

    /// Ends every proof that this undoes, those that FENCED rests on and those of a fence that is under way.
    /// `true` if there was one.
    pub fn undo(&mut self, undoing: &Undoing) -> bool {
        let ended = Ended {
            undoing: undoing.clone(),
            at: self.now,
        };
        let was_good = self.state.host.good_fence().is_some();
        let fence = self
            .state
            .host
            .fence
            .iter_mut()
            .flat_map(|fence| &mut fence.proofs);
        let operation = self.state.operation.as_mut().filter(|live| live.status.is_live());
        let live = operation.into_iter().flat_map(|live| &mut live.proofs);
        let mut any = Vec::new();
        for proof in fence.chain(live).filter(|proof| proof.ended.is_none()) {
            if undoing.ends(proof) {
                proof.ended = Some(ended.clone());
                any.push(proof.kind);
            }
        }
        if any.is_empty() {
            return false;
        }
        any.sort();
        any.dedup();
        let host = &self.state.host;
        let closes = was_good && host.good_fence().is_none();
        let detail = json!({
            "generation": host.generation,
            "proofs": any,
            "is_gate_closed": closes,
            "why": undoing.to_string(),
        });
        self.note("fence.proof_ended", detail);
        true
    }

    /// Puts a new operation in the place of the one that held the host.
    pub fn begin(&mut self, operation: Operation) {
        self.event(
            EventKind::OperationStarted,
            json!({
                "operation_id": operation.id,
                "kind": operation.kind(),
                "generation": operation.generation,
                "reason": operation.reason,
                "requested_by": operation.requested_by,
            }),
        );
        let host = &mut self.state.host;
        host.generation = operation.generation;
        self.answer_silence();
        self.superseded = self.state.operation.replace(operation);
    }

    /// No automatic fence begins for a silence of the host that lasts already.
    pub fn answer_silence(&mut self) {
        let host = &mut self.state.host;
        host.is_silence_answered |= host.failure_state == FailureState::Unreachable;
    }

    /// Ends the operation as succeeded or cancelled, and with it whatever of it is still open.
    pub fn end(&mut self, status: OperationStatus, detail: String) {
        let now = self.now;
        let Some(operation) = self.state.operation.as_mut() else {
            return;
        };
        for task in operation.tasks_mut() {
            if !task.status.is_over() {
                task.status = TaskStatus::Cancelled;
                task.detail = Some(detail.clone());
            }
            for attempt in &mut task.attempts {
                match attempt.state {
                    AttemptStatus::Dispatched { .. } => {
                        attempt.state = AttemptStatus::Cancelled { ended_at: now }
                    }
                    AttemptStatus::Claimed { .. } => {
                        attempt.state = AttemptStatus::Ended {
                            outcome: Outcome::Unknown,
                            ended_at: now,
                        };
                        attempt.detail = Some("the operation ended while a worker was at it".to_owned());
                    }
                    AttemptStatus::Ended { .. } | AttemptStatus::Cancelled { .. } => {}
                }
            }
        }
        operation.status = status;
        operation.detail.clone_from(&detail);
        operation.restart_at = None;
        operation.finished_at = Some(now);
        operation.updated_at = now;
        let has_emptied =
            operation.kind() == OperationKind::Evacuation && status == OperationStatus::Succeeded;
        if let Some(fence) = self.state.host.fence.as_mut().filter(|_| has_emptied) {
            fence.is_emptied = true;
        }
        let kind = match status {
            OperationStatus::Cancelled => EventKind::OperationCancelled,
            OperationStatus::Succeeded => EventKind::OperationSucceeded,
            OperationStatus::Running | OperationStatus::Held | OperationStatus::NeedsOperator => return,
        };
        let data = json!({
            "operation_id": operation.id,
            "kind": operation.kind(),
            "generation": operation.generation,
            "detail": detail,
        });
        self.event(kind, data);
    }
}
