//! Starting a FENCED host's workloads elsewhere.
//!
//! The backend is told that the host is down, and asked what is on it. Each workload is then a task of its own, so that workers share
//! them and every one is claimed, tried and observed like any other task. At the end the backend is asked again: what it still has on
//! the host, and that no task is about yet, gets a task too.

mod host_back;
mod left_over;
mod telling;
mod workloads;

use uuid::Uuid;

pub(super) use self::host_back::{hold, stop_if_back};
use self::left_over::left_by_the_fence;
pub(crate) use self::left_over::left_to_do;
pub(super) use self::telling::{failed, news, told};
pub(super) use self::workloads::{
    another_at_it, awaits_more, came_late, cut_off_by, empty, listed, look_again, look_for_more, open_spare,
};
use super::draft::after_ms;
use super::{Draft, TAKE_OVER_MS, pause};
use crate::platform::platform_of;
use crate::{
    Actor, EvacuationWork, FailureState, FencingKind, FrozenTask, Gate, HostState, Operation, OperationId,
    OperationKind, Refusal, Reply, SegmentPolicy, Stage, Task, Work, WorkloadStep, gates,
};

/// The stage of what the fence has left to do: it goes on beside everything else.
pub(super) const BESIDE: usize = 0;

pub(super) fn evacuate(
    draft: &mut Draft,
    operation_id: OperationId,
    reason: String,
    actor: &Actor,
) -> Result<Reply, Refusal> {
    let evacuation = draft
        .live()
        .filter(|live| live.kind() == OperationKind::Evacuation);
    if let Some(id) = evacuation.map(|live| live.id) {
        pause::wanted(draft, &format!("wanted by {}: {reason}", actor.name));
        return Ok(Reply::Joined(id));
    }
    let gate = gate(draft);
    if !gate.allowed {
        return Err(Refusal::GateClosed { reason: gate.reason });
    }
    if let Some(live) = draft.live().filter(|live| live.kind() == OperationKind::Rejoin) {
        return Err(Refusal::live(live));
    }
    let left = left_by_the_fence(draft.live(), &draft.state.host);
    let operation =
        new_operation(draft, operation_id, reason, &actor.name, left).ok_or(Refusal::BackendMissing {
            backend: draft.state.host.backend,
        })?;
    begin(draft, operation);
    Ok(Reply::Started(operation_id))
}

/// Goes on with one that was live when its engine lost the database. Its host is UNKNOWN until a source has seen it: no move begins before
/// that.
pub(super) fn resume(
    draft: &mut Draft,
    operation_id: OperationId,
    reason: String,
    actor: &Actor,
    left: Vec<FrozenTask>,
) -> Result<Reply, Refusal> {
    if let Some(live) = draft.live() {
        return Err(Refusal::live(live));
    }
    if draft.state.host.is_back() {
        let reason = gate(draft).reason;
        return Err(Refusal::GateClosed { reason });
    }
    let left = left.into_iter().map(|task| Task::fencing(task.kind, task.levels));
    let operation = new_operation(draft, operation_id, reason, &actor.name, left.collect()).ok_or(
        Refusal::BackendMissing {
            backend: draft.state.host.backend,
        },
    )?;
    begin(draft, operation);
    Ok(Reply::Started(operation_id))
}

/// An evacuation that the segment wants, if it is due: FENCED is committed, and the fence has had time to end by itself.
pub(super) fn by_itself(draft: &mut Draft) -> bool {
    if !is_wanted(draft) || !pause::may_begin_by_itself(draft) {
        return false;
    }
    let Some(fenced_at) = draft.state.host.fence.as_ref().map(|fence| fence.at) else {
        return false;
    };
    let is_busy = |live: &Operation| {
        let mut tasks = live.tasks();
        tasks.any(|task| !task.status.is_over() && task.kind() != FencingKind::PowerOn)
    };
    let patience_ms = if draft.live().is_some_and(is_busy) {
        TAKE_OVER_MS
    } else {
        1
    };
    let due = after_ms(fenced_at, patience_ms);
    if due > draft.now {
        draft.wake(due);
        return false;
    }
    let host = &draft.state.host;
    let name = format!("evacuation of generation {}", host.generation);
    let id = OperationId(Uuid::new_v5(&host.id.0, name.as_bytes()));
    let left = left_by_the_fence(draft.live(), host);
    let reason = "the host is FENCED".to_owned();
    let Some(operation) = new_operation(draft, id, reason, "ringfence", left) else {
        return false;
    };
    begin(draft, operation);
    true
}

/// Once for each fence: one that a person has cancelled stays cancelled.
fn is_wanted(draft: &Draft) -> bool {
    is_expected(draft) && gate(draft).allowed
}

/// Whether an evacuation that the segment wants has yet to begin: at once, or as soon as it is known that the host is silent. Until it
/// is over the host must not start, since it would start again what is to be started elsewhere.
pub(super) fn is_expected(draft: &Draft) -> bool {
    let is_free = draft
        .live()
        .is_none_or(|live| live.kind() == OperationKind::Fence);
    let policy = draft.live().map_or(&draft.state.policy, |live| &live.policy);
    is_free && is_expected_by(&draft.state, policy)
}

/// Decides by the policy of a fence, which may be held apart from its host.
pub(super) fn is_expected_by(state: &HostState, policy: &SegmentPolicy) -> bool {
    let host = &state.host;
    let is_open = host.good_fence().is_some_and(|fence| !fence.is_evacuation_begun);
    policy.evacuation.automatic
        && is_open
        && host.failure_state != FailureState::Up
        && platform_of(state).is_some()
}

fn gate(draft: &Draft) -> Gate {
    gates(&draft.state, draft.now).evacuate
}

/// Whether one more workload may be started elsewhere at this moment.
pub(super) fn may_move(draft: &Draft) -> bool {
    gate(draft).allowed
}

/// The fence makes way with its proofs; what it was still doing goes on here.
fn begin(draft: &mut Draft, operation: Operation) {
    if draft.live().is_some() {
        super::proof::succeed(draft);
    }
    if let Some(fence) = &mut draft.state.host.fence {
        fence.is_evacuation_begun = true;
        fence.is_emptied = false;
    }
    draft.begin(operation);
}

/// `left`: what is left to do on the host's devices.
fn new_operation(
    draft: &Draft,
    id: OperationId,
    reason: String,
    requested_by: &str,
    left: Vec<Task>,
) -> Option<Operation> {
    platform_of(&draft.state)?;
    let stages = vec![
        stage(left),
        stage(vec![Task::step(mark_down(&draft.state.policy))]),
        stage(vec![Task::step(list_workloads(&draft.state.policy))]),
    ];
    let generation = draft.state.host.generation;
    let work = Work::Evacuation(EvacuationWork::default());
    Some(Operation {
        stages,
        ..draft.operation(id, work, generation, reason, requested_by)
    })
}

/// Tells the platform that the host is down, and which workloads it may let go by itself.
fn mark_down(policy: &SegmentPolicy) -> WorkloadStep {
    WorkloadStep::MarkDown {
        evacuation: Some(Box::new(policy.evacuation.clone())),
    }
}

/// Asks what is on the host, with the metadata that the segment goes by.
pub(crate) fn list_workloads(policy: &SegmentPolicy) -> WorkloadStep {
    let evacuation = &policy.evacuation;
    WorkloadStep::List {
        metadata_keys: vec![evacuation.metadata_key.clone(), evacuation.priority_key.clone()],
    }
}

pub(super) fn stage(tasks: Vec<Task>) -> Stage {
    Stage {
        delay_s: 0,
        at_once: None,
        awaits: None,
        entered_at: None,
        started_at: None,
        tasks,
    }
}
