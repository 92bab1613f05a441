//! The workloads of the host, from a listing to the next one.

use super::{mark_down, stage};
use crate::decide::{Draft, MAX_LISTINGS};
use crate::guard::{Guard, on};
use crate::movable::all_movable_at;
use crate::{
    Attempt, FrozenMethod, Host, InFlight, MAX_LISTED, Movable, MoveStep, Operation, OperationId,
    OperationKind, Stage, StepKind, StepTask, Task, TaskStatus, Timestamp, Workload, WorkloadStep,
    proven_movable,
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
        move_task(workload, policy.disruption_budgets, left)
    });
    let tasks = tasks.collect();
    operation.stages.push(Stage {
        at_once: Some(policy.at_once),
        ..stage(tasks)
    });
    operation.stages.push(stage(vec![again(&list)]));
}

/// What the backend has found on the emptied host. A scheduler of the platform that has not seen yet that the host is closed may have bound a
/// workload to it since the last listing: the host is listed again then.
pub(in crate::decide) fn came_late(operation: &mut Operation, found: &[Workload]) {
    if found
        .iter()
        .any(|workload| !is_known(&operation.stages, &workload.id))
    {
        look_again(operation);
    }
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

fn move_task(workload: Workload, disruption_budgets: bool, left: Option<String>) -> Task {
    let task = Task::step(WorkloadStep::Move(Box::new(MoveStep {
        workload,
        cut_off_by: Vec::new(),
        given_up: None,
        only_look: false,
        disruption_budgets,
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

/// Tells the backend, and asks it again, where more may be moved than when it was asked last: what proves more of the host has come
/// meanwhile.
pub(in crate::decide) fn look_for_more(draft: &mut Draft) -> bool {
    let is_all = proven_movable(&draft.state, draft.now) == Some(Movable::All);
    let mark_down = mark_down(&draft.state.policy);
    let Some(operation) = draft.state.operation.as_mut().filter(|_| is_all) else {
        return false;
    };
    if !was_listed_for_less(operation) {
        return false;
    }
    operation.stages.push(stage(vec![Task::step(mark_down)]));
    look_again(operation);
    true
}

/// Whether all would be listed again soon, since a proof has yet to settle.
pub(in crate::decide) fn awaits_more(draft: &mut Draft) -> bool {
    let operation = draft.state.operation.as_ref();
    let is_less = operation.is_some_and(was_listed_for_less);
    let Some(at) = all_movable_at(&draft.state, draft.now).filter(|_| is_less) else {
        return false;
    };
    draft.wake(at);
    true
}

/// Other platforms are told of a host as a whole.
fn was_listed_for_less(operation: &Operation) -> bool {
    let platform = operation.platform.as_ref();
    if !platform.is_some_and(|at| at.backend.starts_by_itself()) {
        return false;
    }
    let listed_for = operation
        .evacuation()
        .and_then(|evacuation| evacuation.listed_for);
    listed_for.is_some_and(|movable| movable != Movable::All)
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
    // One that starts workloads by itself is told to remove this very one, which may be said twice.
    if !is_move || host.backend.starts_by_itself() || !on(Guard::OneAtAMove) {
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
