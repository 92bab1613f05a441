//! Taking a host back, in the order in which nothing can be written twice (S7).
//!
//! Power, the self-fencing timeout, the host itself, obsolete workloads, the backend's belief that it is down, storage, network; then
//! UNFENCED; then the workloads that remained. A platform that starts workloads by itself is let do so after all else: a host that it
//! reaches over the network has that first, and then its storage.

use serde_json::json;

use crate::guard::{Guard, on};
use crate::{
    Actor, Awaits, Backend, EventKind, FencingKind, FrozenMethod, Host, HostState, Operation, OperationId,
    OperationKind, Refusal, RejoinWork, Reply, Resource, Stage, StepKind, Task, Work, WorkloadStep,
};

use super::{Draft, pause, proof};
use crate::platform::platform_of;

pub(super) fn rejoin(
    draft: &mut Draft,
    operation_id: OperationId,
    reason: String,
    actor: &Actor,
    boot_confirmed: bool,
) -> Result<Reply, Refusal> {
    match draft.live() {
        Some(live) if live.kind() == OperationKind::Rejoin => {
            let id = live.id;
            end_quarantine(draft, &reason, &actor.name);
            if boot_confirmed {
                confirm_boot(draft, &reason, actor);
            }
            pause::wanted(draft, &format!("wanted by {}: {reason}", actor.name));
            return Ok(Reply::Joined(id));
        }
        // Proven, and only adding to its proofs: a rejoin has no use for the rest.
        Some(live) if live.kind() == OperationKind::Fence && draft.state.host.current_fence().is_some() => {
            proof::succeed(draft);
        }
        Some(live) => {
            return Err(Refusal::live(live));
        }
        None => {}
    }
    let host = &draft.state.host;
    if host.fence.is_none() && host.applied.is_empty() {
        return Ok(Reply::AlreadySo);
    }
    end_quarantine(draft, &reason, &actor.name);
    let operation = new_operation(draft, operation_id, reason, &actor.name, boot_confirmed);
    draft.begin(operation);
    // The person who asks for the rejoin may have plugged the host in by hand just now.
    if on(Guard::RejoinMayPlugIn) {
        let now = draft.now;
        draft.state.host.released(now);
    }
    Ok(Reply::Started(operation_id))
}

fn end_quarantine(draft: &mut Draft, reason: &str, by: &str) {
    if draft.state.host.flapping.release() {
        let data = json!({ "by": by, "reason": reason });
        draft.event(EventKind::HostQuarantineEnded, data);
    }
}

/// A person says of a rejoin that is under way that the host was booted anew.
fn confirm_boot(draft: &mut Draft, reason: &str, actor: &Actor) {
    let now = draft.now;
    let Some(operation) = draft.state.operation.as_mut() else {
        return;
    };
    operation.work = Work::Rejoin(RejoinWork { boot_confirmed: true });
    operation.updated_at = now;
    let id = operation.id;
    draft.note(
        "rejoin.boot_confirmed",
        json!({ "operation_id": id, "reason": reason, "by": actor.name }),
    );
}

/// Whether the host is taken back without being asked: the segment says so, it is FENCED, it was seen UP since, and nothing
/// has begun since the fence (a rejoin that a person has cancelled stays cancelled).
pub(super) fn is_due(draft: &Draft) -> bool {
    let host = &draft.state.host;
    let is_wanted = host.current_fence().is_some() && draft.state.policy.auto_rejoin;
    let is_back = host.is_seen_back(draft.state.clock_set_at);
    let is_free = !is_in_quarantine(draft);
    is_back && is_free && draft.live().is_none() && (is_wanted || is_only_isolated(host))
}

/// What keeps a host from being taken back without a person's word.
pub(super) fn refuse_by_itself(draft: &Draft) -> Result<(), Refusal> {
    if let Some(since) = draft
        .state
        .host
        .flapping
        .quarantined_at
        .filter(|_| is_in_quarantine(draft))
    {
        return Err(Refusal::Quarantined { since });
    }
    pause::refuse_by_itself(draft)
}

/// A segment that has no rule any more keeps no host there.
fn is_in_quarantine(draft: &Draft) -> bool {
    let is_there =
        draft.state.host.flapping.quarantined_at.is_some() && draft.state.policy.quarantine.is_some();
    is_there && on(Guard::QuarantineHolds)
}

/// Whether all that a fence has done, which ended before anything was proven, is to keep workloads from starting on the host.
fn is_only_isolated(host: &Host) -> bool {
    let is_isolated = host.backend.starts_by_itself() && host.applied.marked_down_by.is_some();
    is_isolated && host.fence.is_none() && host.applied.fencing.is_empty()
}

/// Who takes a host back without being asked.
const BY: &str = "ringfence";

/// Begins it, if it is due.
pub(super) fn by_itself(draft: &mut Draft, operation_id: OperationId) {
    if !is_due(draft) || !pause::may_begin_by_itself(draft) {
        return;
    }
    // A quarantine that was there ends where its segment has no rule for it any more.
    let reason = "the host is UP again";
    end_quarantine(draft, reason, BY);
    let operation = new_operation(draft, operation_id, reason.to_owned(), BY, false);
    draft.begin(operation);
}

fn new_operation(
    draft: &Draft,
    id: OperationId,
    reason: String,
    requested_by: &str,
    boot_confirmed: bool,
) -> Operation {
    let generation = draft.state.host.generation.next();
    let work = Work::Rejoin(RejoinWork { boot_confirmed });
    Operation {
        stages: stages(&draft.state),
        ..draft.operation(id, work, generation, reason, requested_by)
    }
}

fn stages(state: &HostState) -> Vec<Stage> {
    let mut stages = Vec::new();
    if state
        .host
        .applied
        .fencing
        .iter()
        .any(|s| s.kind == FencingKind::PowerOff)
    {
        stages.push(stage(None, undo(state, FencingKind::PowerOff)));
    }
    if state.host.fence.is_some() && state.policy.self_fencing_timeout_s.is_some() {
        stages.push(stage(Some(Awaits::SelfFencing), Vec::new()));
    }
    stages.push(stage(
        Some(Awaits::HostBack),
        vec![workloads(state, WorkloadStep::CleanUp)],
    ));
    let is_marked = state.host.applied.marked_down_by.is_some();
    let mark_up = is_marked.then(|| workloads(state, WorkloadStep::MarkUp));
    let storage = stage(None, undo(state, FencingKind::StorageFence));
    let network = stage(None, undo(state, FencingKind::NetworkFence));
    let fenced_at = state.host.fence.as_ref().map(|fence| fence.at);
    let start = workloads(state, WorkloadStep::Start { fenced_at });
    // A host that has gone again meanwhile is not taken back.
    let mark_up = mark_up.map(|task| stage(Some(Awaits::HostBack), vec![task]));
    if state.host.backend.starts_by_itself() {
        stages.extend([network, storage]);
        stages.extend(mark_up);
    } else {
        // Such a platform connects nothing on a host that it takes for down. It places nothing there either, until it is told so after
        // UNFENCED.
        stages.extend(mark_up);
        stages.extend([storage, network]);
    }
    stages.push(stage(Some(Awaits::HostBack), vec![start]));
    stages
}

fn stage(awaits: Option<Awaits>, tasks: Vec<Task>) -> Stage {
    Stage {
        delay_s: 0,
        at_once: None,
        awaits,
        entered_at: None,
        started_at: None,
        tasks,
    }
}

/// The tasks that release all applied fencing of one kind: one task, and one more for each time that a method was edited between two
/// fences, since a task knows its methods by their ids.
fn undo(state: &HostState, fencing: FencingKind) -> Vec<Task> {
    let kind = fencing.undone_by().unwrap_or(fencing);
    let mut levels: Vec<Vec<FrozenMethod>> = Vec::new();
    for standing in state.host.applied.fencing.iter().filter(|s| s.kind == fencing) {
        let method = standing.method.clone();
        match levels
            .iter_mut()
            .find(|level| level.iter().all(|m| m.id != method.id))
        {
            Some(level) => level.push(method),
            None => levels.push(vec![method]),
        }
    }
    if levels.is_empty() {
        return vec![Task::fencing(kind, Vec::new()).skipped(format!("no {fencing} stands"))];
    }
    levels
        .into_iter()
        .map(|level| Task::fencing(kind, vec![level]))
        .collect()
}

/// A step is left to the platform itself where Ringfence asks nothing of it.
fn workloads(state: &HostState, step: WorkloadStep) -> Task {
    let task = Task::step(step);
    let backend = state.host.backend;
    if platform_of(state).is_some() {
        return match task.kind() == StepKind::Start && backend.starts_by_itself() {
            true => task.skipped(format!("left to {backend} itself")),
            false => task,
        };
    }
    match state.host.backend {
        Backend::None => task.skipped("the host's backend is none"),
        Backend::Nova | Backend::Kubernetes => task.skipped(format!(
            "left to {} itself: the host names no cloud",
            state.host.backend
        )),
    }
}

/// Whether the next stage is the one that comes after UNFENCED.
pub(super) fn is_after_unfencing(stage: &Stage) -> bool {
    stage.tasks.iter().any(|task| task.kind() == StepKind::Start)
}

/// Everything was observed to be released: the host is UNFENCED.
pub(super) fn become_unfenced(draft: &mut Draft, operation: &Operation) {
    let host = &mut draft.state.host;
    // The host is seen UP, so that what power it has suffices; a feed that could not be switched on shows in the operation.
    host.applied
        .fencing
        .retain(|s| s.kind.resource() != Resource::Power);
    if host.fence.take().is_none() {
        return;
    }
    let data = json!({
        "operation_id": operation.id,
        "generation": operation.generation,
        "reason": operation.reason,
        "requested_by": operation.requested_by,
    });
    draft.event(EventKind::HostUnfenced, data);
}
