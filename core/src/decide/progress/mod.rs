//! How far a task is, method by method and level by level.

mod executor_state;
mod expiry;
mod pace;
mod power_back;
mod sending;

use self::executor_state::{ExecutorState, LOOK_AGAIN_S, state_of};
pub(super) use self::expiry::{excuse, expire, watch};
use self::pace::Pace;
pub(super) use self::power_back::{PowerBack, may_be_off, power_back, switch_on_each};
use self::sending::dispatch;
use super::draft::after_s;
use super::{Draft, evacuation, kdump, proof};
use crate::guard::{Guard, on};
use crate::{
    Attempt, AttemptStatus, EventKind, Executor, Executors, FencingKind, FencingTask, Operation, Outcome,
    StepKind, Task, TaskKind, TaskStatus, TaskWork, Timestamp,
};

/// Does what is due for the tasks of one stage.
pub(super) fn run_stage(draft: &mut Draft, operation: &mut Operation, index: usize) {
    let at_once = operation.stages[index].at_once;
    let mut stage = std::mem::take(&mut operation.stages[index].tasks);
    let mut pace = Pace::of(draft, operation, &stage, at_once);
    for task in &mut stage {
        if task.status == TaskStatus::Pending && pace.has_room() && may_begin(draft, task.kind()) {
            task.status = TaskStatus::Running;
            pace.begun();
        }
        if task.status != TaskStatus::Running {
            continue;
        }
        run_task(draft, operation, task);
        if task.status.is_over() {
            withdraw_unclaimed(task, draft.now);
            tell_end(draft, operation, task);
            pace.ended();
        }
    }
    pace.end(draft, &stage);
    operation.stages[index].tasks = stage;
}

/// Takes note of what is confirmed, and begins nothing.
pub(super) fn settle(draft: &mut Draft) {
    let Some(mut operation) = draft.state.operation.take() else {
        return;
    };
    for index in 0..operation.stages.len() {
        let mut tasks = std::mem::take(&mut operation.stages[index].tasks);
        for task in tasks.iter_mut().filter(|task| task.status == TaskStatus::Running) {
            if is_confirmed(task, operation.executors()) {
                task.status = TaskStatus::Confirmed;
                tell_end(draft, &operation, task);
            }
        }
        operation.stages[index].tasks = tasks;
    }
    draft.state.operation = Some(operation);
}

fn is_confirmed(task: &Task, executors: Executors<'_>) -> bool {
    let is_done = |executor: &Executor| {
        let last = task.round().iter().rfind(|attempt| executor.is_of(attempt));
        last.and_then(Attempt::outcome) == Some(Outcome::Confirmed)
    };
    let executors = executors.of(task).unwrap_or_default();
    !executors.is_empty() && executors.iter().all(is_done)
}

/// Nothing is started elsewhere while the gate is closed.
fn may_begin(draft: &Draft, kind: TaskKind) -> bool {
    kind != StepKind::Move || evacuation::may_move(draft) || !on(Guard::MoveNeedsGate)
}

fn tell_end(draft: &mut Draft, operation: &Operation, task: &Task) {
    let kind = match task.status {
        TaskStatus::Confirmed => EventKind::WorkloadMoved,
        TaskStatus::Failed => EventKind::WorkloadNotMoved,
        TaskStatus::Pending | TaskStatus::Running | TaskStatus::Skipped | TaskStatus::Cancelled => return,
    };
    if let Some(news) = evacuation::news(operation.id, &draft.state.host, task) {
        draft.event(kind, news);
    }
}

/// Begins a task whose stage has begun.
pub(super) fn start_task(task: &mut Task, power: &PowerBack) {
    if task.status != TaskStatus::Pending {
        return;
    }
    task.status = TaskStatus::Running;
    match power {
        PowerBack::AsPlanned => {}
        // Of a device of its own, from when the stage was begun before.
        PowerBack::To { may_be_off, .. }
            if task.levels().iter().flatten().any(|m| may_be_off.contains(m)) => {}
        PowerBack::To { seen_off, .. } if task.kind() == FencingKind::PowerOn => {
            if let TaskWork::Fencing(fencing) = &mut task.work {
                fencing.levels = vec![seen_off.clone()];
            }
        }
        PowerBack::No(why) if task.kind() == FencingKind::PowerOn => {
            task.status = TaskStatus::Skipped;
            task.detail = Some((*why).to_owned());
        }
        PowerBack::To { .. } | PowerBack::No(_) => {}
    }
}

fn run_task(draft: &mut Draft, operation: &mut Operation, task: &mut Task) {
    while task.status == TaskStatus::Running {
        let Some(executors) = operation.executors().of(task) else {
            fail(task);
            return;
        };
        // "Every device was seen off" must not be true of none.
        if executors.is_empty() {
            task.next_level();
            continue;
        }
        let opposite = draft.state.host.opposite_in_flight(task.kind(), draft.now);
        if let Some(f) = opposite.filter(|_| on(Guard::DispatchWaitsForOpposite)) {
            draft.wake(f.until);
            return;
        }
        if !may_begin(draft, task.kind()) {
            return;
        }
        if task.kind() == StepKind::MarkDown && draft.state.host.is_back() && on(Guard::MarkDownNeedsFence) {
            task.status = TaskStatus::Skipped;
            task.detail = Some("the host is back".to_owned());
            return;
        }
        if let Some(until) = evacuation::another_at_it(&draft.state.host, operation.id, task, draft.now) {
            draft.wake(until);
            if look(draft, operation, task, executors) {
                continue;
            }
            return;
        }
        let is_held = hold(draft, operation, task);
        if is_held && !is_confirmed(task, operation.executors()) {
            return;
        }
        let begun_at = *task.begun_at.get_or_insert(draft.now);
        let states: Vec<ExecutorState> = executors
            .iter()
            .map(|executor| state_of(task, executor, begun_at, draft))
            .collect();
        let mut done = states.iter().map(|s| matches!(s, ExecutorState::Confirmed));
        if done.clone().all(|is_done| is_done)
            || (!on(Guard::EveryMethodIsDone) && done.any(|is_done| is_done))
        {
            if next_may_prove_more(draft, task) {
                task.next_level();
                continue;
            }
            task.status = TaskStatus::Confirmed;
            return;
        }
        if states.iter().any(|s| matches!(s, ExecutorState::Failed)) {
            withdraw_unclaimed(task, draft.now);
            if !task.next_level() {
                fail(task);
            }
            continue;
        }
        for (executor, state) in executors.into_iter().zip(states) {
            match state {
                ExecutorState::Due(_) if is_held => {}
                ExecutorState::Due(at) if at <= draft.now => {
                    excuse(task, at, draft.now);
                    dispatch(draft, operation, task, executor);
                }
                ExecutorState::Due(at) => draft.wake(at),
                ExecutorState::Confirmed | ExecutorState::Open | ExecutorState::Failed => {}
            }
        }
        return;
    }
}

/// Withdraws what no worker has claimed of a task that a crash dump of the host holds. What a worker is at ends by itself. `true` if it is held.
fn hold(draft: &mut Draft, operation: &Operation, task: &mut Task) -> bool {
    let Some(until) = kdump::holds(draft, operation, task.kind()) else {
        if task.kind() == FencingKind::PowerOff {
            task.detail = None;
        }
        return false;
    };
    draft.wake(until);
    withdraw_unclaimed(task, draft.now);
    task.detail = Some(kdump::told(draft, until));
    let is_open = |attempt: &Attempt| matches!(attempt.state, AttemptStatus::Claimed { .. });
    if !task.round().iter().any(is_open) && task.begun_at.is_some_and(|at| at <= draft.now) {
        // The time for which it is held is not the time of its methods.
        task.begun_at = None;
    }
    true
}

/// While another worker may still be asking the platform, what it has begun is looked at: only where nothing comes of that does the move
/// wait. `true` if the task is over.
fn look(draft: &mut Draft, operation: &mut Operation, task: &mut Task, executors: Vec<Executor>) -> bool {
    let last = task.round().last();
    if last.is_some_and(|last| last.only_looks() && last.outcome() == Some(Outcome::Confirmed)) {
        task.status = TaskStatus::Confirmed;
        return true;
    }
    let looked_at = last.filter(|last| last.only_looks()).and_then(Attempt::ended_at);
    let due = looked_at.map_or(draft.now, |at| after_s(at, LOOK_AGAIN_S));
    if due > draft.now {
        draft.wake(due);
        return false;
    }
    task.begun_at.get_or_insert(draft.now);
    for executor in executors {
        dispatch(draft, operation, task, executor.only_looking());
    }
    false
}

/// It is done and proves nothing, which another level may.
fn next_may_prove_more(draft: &Draft, task: &Task) -> bool {
    let is_wanted = task.kind().proof_kind().is_some() && draft.state.host.current_fence().is_none();
    let has_next = |fencing: &FencingTask| fencing.level + 1 < fencing.levels.len();
    is_wanted && task.as_fencing().is_some_and(has_next) && !proof::does_prove(task)
}

/// Attempts that no worker has claimed when their level or task is over never act.
fn withdraw_unclaimed(task: &mut Task, now: Timestamp) {
    for attempt in &mut task.attempts {
        if matches!(attempt.state, AttemptStatus::Dispatched { .. }) {
            attempt.state = AttemptStatus::Cancelled { ended_at: now };
        }
    }
}

fn fail(task: &mut Task) {
    task.status = TaskStatus::Failed;
    let last = task
        .round()
        .iter()
        .rev()
        .find(|attempt| attempt.outcome().is_some());
    task.detail = Some(match last {
        Some(attempt) => format!("every level failed; last {}", attempt.in_words()),
        None => "every level failed".to_owned(),
    });
}
