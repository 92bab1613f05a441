//! The workloads of the host, from a listing to the next one.

use super::stage;
use crate::decide::MAX_LISTINGS;
use crate::guard::{Guard, on};
use crate::{
    Attempt, FrozenMethod, Host, InFlight, MAX_LISTED, MoveStep, Operation, OperationId, OperationKind,
    Stage, StepKind, StepTask, Task, TaskStatus, Timestamp, Workload, WorkloadStep,
};

/// The backend has said what is on the host: workloads without a task get one, and a look follows after them.
pub(in crate::decide) fn listed(operation: &mut Operation, found: Vec<Workload>) {
    let Some(list) = listing(operation) else {
        return;
    };
    let Some(evacuation) = operation.evacuation_mut() else {
        return;
    };
    evacuation.listings += 1;
    evacuation.is_cut = found.len() >= MAX_LISTED;
    if evacuation.listings > MAX_LISTINGS {
        return;
    }
    let policy = operation.policy.evacuation.clone();
    let mut new: Vec<Workload> = found
        .into_iter()
        .filter(|workload| !is_known(&operation.stages, &workload.id))
        .collect();
    if new.is_empty() {
        return;
    }
    new.sort_by_key(|workload| {
        (
            std::cmp::Reverse(policy.priority(workload)),
            workload.name.clone(),
        )
    });
    let tasks = new.into_iter().map(|workload| {
        let left = policy.leaves(&workload);
        move_task(workload, left)
    });
    let tasks = tasks.collect();
    operation.stages.push(Stage {
        at_once: Some(policy.at_once),
        ..stage(tasks)
    });
    operation.stages.push(stage(vec![again(&list)]));
}

fn is_known(stages: &[Stage], id: &str) -> bool {
    let mut workloads = stages
        .iter()
        .flat_map(|stage| &stage.tasks)
        .filter_map(Task::workload);
    workloads.any(|workload| workload.id == id)
}

/// The methods by which services of the platform itself have cut the host off. With them the platform finds what they have taken from
/// a workload.
pub(in crate::decide) fn cut_off_by(host: &Host, operation: &Operation) -> Vec<FrozenMethod> {
    let Some(platform) = &operation.platform else {
        return Vec::new();
    };
    let standing = host.applied.fencing.iter().map(|standing| &standing.method);
    let taken = standing.chain(operation.tasks().flat_map(Task::levels).flatten());
    let is_its = |method: &&FrozenMethod| method.service_of.as_ref() == Some(&platform.platform);
    let mut cut: Vec<FrozenMethod> = Vec::new();
    for method in taken.filter(is_its) {
        if cut.iter().all(|known| known.driver != method.driver) {
            cut.push(method.clone());
        }
    }
    cut
}

fn move_task(workload: Workload, left: Option<String>) -> Task {
    let task = Task::step(WorkloadStep::Move(Box::new(MoveStep {
        workload,
        cut_off_by: Vec::new(),
        given_up: None,
        only_look: false,
    })));
    match left {
        Some(why) => task.skipped(why),
        None => task,
    }
}

/// The step once more.
fn again(task: &StepTask) -> Task {
    Task::step(task.step.clone())
}

fn listing(operation: &Operation) -> Option<StepTask> {
    let mut steps = operation.tasks().filter_map(Task::as_step);
    steps.find(|task| task.step.kind() == StepKind::List).cloned()
}

/// All stages are over. Opens a spare host if that may help; `false` if there is nothing more to do.
pub(in crate::decide) fn open_spare(operation: &mut Operation) -> bool {
    let is_full = |task: &&Task| {
        let no_room = task.moved().is_some_and(|moved| moved.no_room);
        task.status == TaskStatus::Failed && no_room
    };
    let full = operation.moves().into_iter().filter(is_full);
    let stuck: Vec<Task> = full.filter_map(Task::as_step).map(again).collect();
    let policy = operation.policy.evacuation.clone();
    let (Some(list), Some(evacuation)) = (listing(operation), operation.evacuation_mut()) else {
        return false;
    };
    let at = usize::try_from(evacuation.spares).unwrap_or(usize::MAX);
    let Some(spare) = policy.spare_hosts.get(at).cloned() else {
        return false;
    };
    if stuck.is_empty() {
        return false;
    }
    evacuation.spares += 1;
    let at_once = Some(policy.at_once);
    let open = Task::step(WorkloadStep::AddCapacity { host: spare });
    operation.stages.push(stage(vec![open]));
    operation.stages.push(Stage {
        at_once,
        ..stage(stuck)
    });
    operation.stages.push(stage(vec![again(&list)]));
    true
}

/// All stages are over, and all workloads have gone. Where the platform itself starts them elsewhere, what they leave with the host is to
/// go too; `false` if there is nothing to do.
pub(in crate::decide) fn empty(operation: &mut Operation) -> bool {
    let platform = operation.platform.as_ref();
    let is_asked = platform.is_some_and(|at| at.backend.starts_by_itself());
    let is_look = |task: &&Task| task.kind() == StepKind::List || task.kind() == StepKind::Empty;
    let last = operation.tasks().filter(is_look).last();
    let is_done = last.is_some_and(|task| task.kind() == StepKind::Empty);
    if !is_asked || is_done || super::failed(operation).is_some() {
        return false;
    }
    operation
        .stages
        .push(stage(vec![Task::step(WorkloadStep::Empty)]));
    true
}

/// Tried again: the last look has to come after the last move.
pub(in crate::decide) fn look_again(operation: &mut Operation) {
    if operation.kind() == OperationKind::Evacuation
        && let Some(list) = listing(operation)
    {
        operation.stages.push(stage(vec![again(&list)]));
    }
}

/// Until when another worker may still ask for the move: one that fell silent, or one of an earlier evacuation. A platform may take a
/// second request beside the first, and both would come to nothing.
pub(in crate::decide) fn another_at_it(
    host: &Host,
    operation: OperationId,
    task: &Task,
    now: Timestamp,
) -> Option<Timestamp> {
    let is_move = task.kind() == StepKind::Move && !task.attempts.iter().any(Attempt::is_open);
    if !is_move || !on(Guard::OneAtAMove) {
        return None;
    }
    let is_its = |f: &&InFlight| {
        let of_task = task
            .attempts
            .iter()
            .any(|attempt| attempt.number == f.attempt.number);
        f.kind == StepKind::Move
            && !f.only_looks
            && f.until > now
            && (f.attempt.operation_id != operation || of_task)
    };
    host.in_flight.iter().filter(is_its).map(|f| f.until).max()
}
