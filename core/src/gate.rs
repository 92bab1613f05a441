//! Gates: may workloads be scheduled here, and may this host's workloads be started elsewhere?

use serde::{Deserialize, Serialize};

use crate::guard::{Guard, on};
use crate::{
    Applied, FailureState, FencingState, Generation, Host, HostState, InFlight, OperationKind,
    OperationStatus, Resource, StepKind, Task, TaskStatus, Timestamp,
};

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gate {
    /// Whether it is open.
    pub allowed: bool,
    /// Why, in words.
    pub reason: String,
}

/// Both answers, for one generation of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gates {
    /// May workloads be scheduled here?
    pub schedule: Gate,
    /// May this host's workloads be started elsewhere?
    pub evacuate: Gate,
    /// The generation that the answers hold for.
    pub generation: Generation,
}

/// What the schedule gate is decided from: less than the whole host, so that a scheduler hook, which answers for many hosts, can read them all at once.
#[derive(Clone, Copy, Debug)]
pub struct Placing<'a> {
    /// What the observers last saw.
    pub failure_state: FailureState,
    /// What has been proven.
    pub fencing_state: FencingState,
    /// The host's generation.
    pub generation: Generation,
    /// Its live operation: what it is for, where it stands, and its generation.
    pub operation: Option<(OperationKind, OperationStatus, Generation)>,
    /// What has to be released to it.
    pub applied: &'a Applied,
    /// What may be acting on it.
    pub in_flight: &'a [InFlight],
    /// The condition that holds scheduling, if one does.
    pub held_by_condition: Option<&'a str>,
}

impl<'a> From<&'a HostState> for Placing<'a> {
    fn from(state: &'a HostState) -> Self {
        let host = &state.host;
        let live = state.operation.as_ref();
        Self {
            failure_state: host.failure_state,
            fencing_state: host.fencing_state(),
            generation: host.generation,
            operation: live.map(|operation| (operation.kind(), operation.status, operation.generation)),
            applied: &host.applied,
            in_flight: &host.in_flight,
            held_by_condition: host.conditions.holds_scheduling(),
        }
    }
}

/// The gates of a host, by S3.
#[must_use]
pub fn gates(state: &HostState, now: Timestamp) -> Gates {
    Gates {
        schedule: schedule_gate(&Placing::from(state), now),
        evacuate: gate(evacuate(&state.host)),
        generation: state.host.generation,
    }
}

/// May workloads be scheduled here? Time alone never closes it: a "no" may be out of date, a "yes" only by a change of the host.
#[must_use]
pub fn schedule_gate(host: &Placing<'_>, now: Timestamp) -> Gate {
    gate(schedule(host, now))
}

/// Whether the host's platform has to be kept from starting workloads on the host: it was told so, and the rejoin has not come to taking
/// that back. What others have changed there is put right while this holds.
#[must_use]
pub fn stays_isolated(state: &HostState, now: Timestamp) -> bool {
    let host = &state.host;
    let is_marking_up = |f: &InFlight| f.kind == StepKind::MarkUp && f.until > now;
    let has_begun = |task: &Task| task.kind() == StepKind::MarkUp && task.status != TaskStatus::Pending;
    let operation = state.operation.as_ref();
    let is_released = host.in_flight.iter().any(is_marking_up)
        || operation.is_some_and(|operation| operation.tasks().any(has_begun));
    host.applied.marked_down_by.is_some() && !is_released
}

/// Whether a mark by which the host's platform keeps workloads off is left over from a fence that is over: the host is UNFENCED, has no live
/// operation and is not marked down. The mark on a host that has never been fenced, as far as is known, may be that of a Ringfence whose
/// records are lost, and stays.
#[must_use]
pub fn is_mark_left_over(state: &HostState) -> bool {
    let host = &state.host;
    let is_live = state
        .operation
        .as_ref()
        .is_some_and(|operation| operation.status.is_live());
    let is_held =
        host.fencing_state() == FencingState::Fenced || is_live || host.applied.marked_down_by.is_some();
    host.generation > Generation(0) && !is_held
}

/// Whether the host's platform may be told that the host is not down after all.
#[must_use]
pub fn unforce_gate(state: &HostState, now: Timestamp) -> Gate {
    gate(unforce(state, now))
}

fn gate(verdict: Result<String, String>) -> Gate {
    match verdict {
        Ok(reason) => Gate {
            allowed: true,
            reason,
        },
        Err(reason) => Gate {
            allowed: false,
            reason,
        },
    }
}

fn schedule(host: &Placing<'_>, now: Timestamp) -> Result<String, String> {
    if host.fencing_state == FencingState::Fenced {
        return Err("the host is FENCED".to_owned());
    }
    if host.failure_state != FailureState::Up {
        return Err(format!("the host is {}, not UP", host.failure_state));
    }
    left_alone(host, now)?;
    if let Some(name) = host
        .held_by_condition
        .filter(|_| on(Guard::ConditionHoldsScheduling))
    {
        return Err(format!(
            "the condition {name} of the host holds scheduling, as its segment says"
        ));
    }
    Ok("the host is UP and UNFENCED".to_owned())
}

/// Ringfence's own rejoin takes it back while the host is still FENCED, as the step that it has claimed, after everything that has to come
/// before. Who asks does not matter: at that moment every caller gets one answer.
fn unforce(state: &HostState, now: Timestamp) -> Result<String, String> {
    let host = &state.host;
    let is_own =
        |f: &&InFlight| f.kind == StepKind::MarkUp && f.generation == host.generation && f.until > now;
    if let Some(f) = host.in_flight.iter().find(is_own) {
        return Ok(format!(
            "the rejoin of generation {} has come to it",
            f.generation
        ));
    }
    if host.fence.is_some() {
        return Err("the host is FENCED; rejoin it".to_owned());
    }
    left_alone(&Placing::from(state), now)?;
    Ok("the host is UNFENCED".to_owned())
}

/// No task takes anything from the host, or has taken it without a release.
fn left_alone(host: &Placing<'_>, now: Timestamp) -> Result<(), String> {
    if let Some((kind, status, generation)) = host.operation {
        let started_workloads = kind == OperationKind::Rejoin && host.generation == generation;
        if !(started_workloads && is_taken_back(host)) {
            return Err(format!("a {kind} of the host is {status}"));
        }
    }
    if let Some(f) = host.in_flight.iter().find(|f| f.until > now && f.kind.takes()) {
        return Err(format!("a {} may still be running until {}", f.kind, f.until));
    }
    if is_cut_off(host) {
        return Err(
            "a fence that was stopped has left the host without storage or network, or marked down; rejoin it".to_owned(),
        );
    }
    Ok(())
}

/// Within a rejoin, UNFENCED with nothing left standing means that only its workloads are still being started.
fn is_taken_back(host: &Placing<'_>) -> bool {
    host.fencing_state == FencingState::Unfenced && !is_cut_off(host)
}

/// Whether something other than power has yet to be released. A host that is seen UP has power.
fn is_cut_off(host: &Placing<'_>) -> bool {
    let applied = host.applied;
    let mut kinds = applied.fencing.iter().map(|applied| applied.kind.resource());
    kinds.any(|resource| resource != Resource::Power) || applied.marked_down_by.is_some()
}

/// Rests on proofs that hold, and on nothing else that time or a message could change.
fn evacuate(host: &Host) -> Result<String, String> {
    let Some(fence) = &host.fence else {
        return Err("the host is not FENCED".to_owned());
    };
    if fence.generation != host.generation && on(Guard::GateNeedsCurrentFence) {
        return Err(format!(
            "the host was FENCED at generation {}, and what began at generation {} may have undone it; fence it again",
            fence.generation, host.generation
        ));
    }
    if !fence.holds() && on(Guard::GateNeedsHoldingFence) {
        let why = fence
            .ended()
            .map(|ended| ended.undoing.to_string())
            .unwrap_or_default();
        return Err(format!(
            "what had proven the fence holds no more: {why}; fence the host again"
        ));
    }
    if host.failure_state != FailureState::Unreachable && on(Guard::GateNeedsUnreachable) {
        return Err(format!("the host is {}, not UNREACHABLE", host.failure_state));
    }
    Ok("the host is FENCED and UNREACHABLE".to_owned())
}
