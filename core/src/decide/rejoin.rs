//! Taking a host back, in the order in which nothing can be written twice (S7).
//!
//! Power, the self-fencing timeout, the host itself, obsolete workloads, storage, network; then UNFENCED; then the workloads
//! that remained.

use serde_json::json;

use crate::{
    Actor, Answer, Awaits, Backend, EventKind, FencingState, FrozenMethod, HostState, Operation, OperationId,
    OperationKind, OperationStatus, Refusal, Resource, Stage, Task, TaskKind,
};

use super::Step;

pub(super) fn rejoin(
    step: &mut Step,
    operation_id: OperationId,
    reason: String,
    actor: &Actor,
    boot_confirmed: bool,
) -> Result<Answer, Refusal> {
    match step.live() {
        Some(live) if live.kind == OperationKind::Rejoin => return Ok(Answer::Joined(live.id)),
        Some(live) => {
            return Err(Refusal::OperationLive {
                kind: live.kind,
                id: live.id,
                status: live.status,
            });
        }
        None => {}
    }
    let host = &step.state.host;
    if host.fencing_state == FencingState::Unfenced && host.standing.is_empty() {
        return Ok(Answer::AlreadySo);
    }
    let operation = Operation {
        id: operation_id,
        host_id: host.id,
        kind: OperationKind::Rejoin,
        status: OperationStatus::Running,
        detail: String::new(),
        generation: host.generation.next(),
        reason,
        requested_by: actor.name.clone(),
        plan: None,
        stages: stages(&step.state),
        sufficient_sets: Vec::new(),
        proofs: Vec::new(),
        self_fencing_timeout_s: step.state.policy.self_fencing_timeout_s,
        round: 0,
        restarts_left: step.state.policy.restarts,
        restart_delay_s: step.state.policy.restart_delay_s,
        restart_at: None,
        rejoin_wait_s: step.state.policy.rejoin_wait_s,
        boot_confirmed,
        last_attempt: 0,
        created_at: step.now,
        updated_at: step.now,
        finished_at: None,
    };
    step.begin(operation);
    Ok(Answer::Started(operation_id))
}

fn stages(state: &HostState) -> Vec<Stage> {
    let mut stages = Vec::new();
    if state.host.standing.iter().any(|s| s.kind == TaskKind::PowerOff) {
        stages.push(stage(None, undo(state, TaskKind::PowerOff)));
    }
    if state.host.fencing_state == FencingState::Fenced && state.policy.self_fencing_timeout_s.is_some() {
        stages.push(Stage {
            tasks: Vec::new(),
            ..stage(Some(Awaits::SelfFencing), undo(state, TaskKind::PowerOff))
        });
    }
    stages.push(stage(
        Some(Awaits::HostBack),
        workloads(state.host.backend, TaskKind::WorkloadsCleanUp),
    ));
    stages.push(stage(None, undo(state, TaskKind::StorageFence)));
    stages.push(stage(None, undo(state, TaskKind::NetworkFence)));
    stages.push(stage(
        None,
        workloads(state.host.backend, TaskKind::WorkloadsStart),
    ));
    stages
}

fn stage(awaits: Option<Awaits>, task: Task) -> Stage {
    Stage {
        delay_s: 0,
        awaits,
        entered_at: None,
        started_at: None,
        tasks: vec![task],
    }
}

/// The task that gives back everything that stands of one kind.
fn undo(state: &HostState, fencing: TaskKind) -> Task {
    let kind = fencing.undone_by().unwrap_or(fencing);
    let methods: Vec<FrozenMethod> = state
        .host
        .standing
        .iter()
        .filter(|s| s.kind == fencing)
        .map(|s| s.method.clone())
        .collect();
    if methods.is_empty() {
        return Task::skipped(kind, format!("no {fencing} stands"));
    }
    Task::pending(kind, vec![methods])
}

/// Workload steps belong to a backend; no driver of this build moves workloads, so that with a backend they are left to it.
fn workloads(backend: Backend, kind: TaskKind) -> Task {
    match backend {
        Backend::None => Task::skipped(kind, "the host's backend is none"),
        Backend::Nova | Backend::Kubernetes => Task::skipped(
            kind,
            format!("left to {backend} itself: no driver for its workloads is configured"),
        ),
    }
}

/// Whether the next stage is the one that comes after UNFENCED.
pub(super) fn is_after_unfencing(stage: &Stage) -> bool {
    stage
        .tasks
        .iter()
        .any(|task| task.kind == TaskKind::WorkloadsStart)
}

/// Everything was observed to be given back: the host is UNFENCED.
pub(super) fn become_unfenced(step: &mut Step) {
    let Some(operation) = &step.state.operation else {
        return;
    };
    let host = &mut step.state.host;
    // The host is seen UP, so that what power it has suffices; a feed that could not be switched on shows in the operation.
    host.standing.retain(|s| s.kind.resource() != Resource::Power);
    if host.fencing_state == FencingState::Unfenced {
        return;
    }
    host.fencing_state = FencingState::Unfenced;
    host.fenced_generation = None;
    host.fenced_at = None;
    host.boot_at_fence = None;
    host.needs_boot = false;
    let data = json!({
        "operation_id": operation.id,
        "generation": operation.generation,
        "reason": operation.reason,
        "requested_by": operation.requested_by,
    });
    step.event(EventKind::HostUnfenced, data);
}
