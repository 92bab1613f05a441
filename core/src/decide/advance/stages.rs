//! The stages of an operation, one after the other, and those that are in no order with the others.

use super::waits::{Wait, may_begin, why_failed};
use crate::decide::progress::PowerBack;
use crate::decide::{Draft, evacuation, fence, held, power_last, progress, rejoin};
use crate::guard::{Guard, on};
use crate::{Awaits, FencingKind, FrozenMethod, Operation, OperationKind, Stage, StepKind, Task, TaskStatus};

/// How the stages of an operation stand.
pub(super) enum Stages {
    /// One more is over.
    Moved,
    /// Something is under way or will be due.
    Busy,
    /// All are over.
    Over,
    /// It cannot go on without a person.
    Stuck(String),
}

/// Runs the stages that are in no order with the others, one after the other, as they may begin. `true` if there is none, or all are over.
pub(super) fn run_beside(draft: &mut Draft, is_it: impl Fn(usize, &Stage) -> bool) -> bool {
    let Some(mut operation) = draft.state.operation.take() else {
        return true;
    };
    let mut is_over = true;
    for index in 0..operation.stages.len() {
        let stage = &operation.stages[index];
        if is_it(index, stage) && !stage.is_over() {
            is_over = matches!(run_stage(draft, &mut operation, index, false), Stages::Moved);
        }
        if !is_over {
            break;
        }
    }
    draft.state.operation = Some(operation);
    is_over
}

/// Does what is due of the first stage that is not over.
pub(super) fn run_next_stage(draft: &mut Draft) -> Stages {
    // Taken out so that host and operation can be changed side by side, and put back before this function returns.
    let Some(mut operation) = draft.state.operation.take() else {
        return Stages::Over;
    };
    let outcome = match next_stage(&operation) {
        Some(index) => run_stage(draft, &mut operation, index, true),
        None => Stages::Over,
    };
    draft.state.operation = Some(operation);
    outcome
}

/// The first one that is not over and has a place in the order.
fn next_stage(operation: &Operation) -> Option<usize> {
    let is_beside = |index: usize, stage: &Stage| match operation.kind() {
        OperationKind::Fence => stage.awaits == Some(Awaits::Fenced) || fence::isolates(stage),
        OperationKind::Evacuation => index == evacuation::BESIDE,
        OperationKind::Rejoin => false,
    };
    let mut stages = operation.stages.iter().enumerate();
    let found = stages.find(|(index, stage)| !is_beside(*index, stage) && !stage.is_over());
    found.map(|(index, _)| index)
}

fn run_stage(draft: &mut Draft, operation: &mut Operation, index: usize, is_in_order: bool) -> Stages {
    if let Some(why) = failed_before(operation, index) {
        return Stages::Stuck(why);
    }
    if operation.stages[index].started_at.is_none() {
        match may_begin(draft, operation, index) {
            Wait::Not => return Stages::Busy,
            Wait::GiveUp(why) => return Stages::Stuck(why),
            Wait::Ready => {}
        }
        if is_in_order && held::asks_first(draft, operation) {
            return Stages::Busy;
        }
        if operation.kind() == OperationKind::Rejoin && rejoin::is_after_unfencing(&operation.stages[index]) {
            rejoin::become_unfenced(draft, operation);
        }
        begin_stage(draft, operation, index);
    }
    progress::run_stage(draft, operation, index);
    if operation.stages[index].is_over() {
        Stages::Moved
    } else {
        Stages::Busy
    }
}

/// What failed before this stage and without which it cannot begin.
fn failed_before(operation: &Operation, index: usize) -> Option<String> {
    let matters = |task: &Task| match operation.kind() {
        OperationKind::Fence => false,
        // Power alone does not matter: that the host is back is what counts.
        OperationKind::Rejoin => task.kind() != FencingKind::PowerOn,
        OperationKind::Evacuation => task.kind() == StepKind::MarkDown || task.kind() == StepKind::List,
    };
    let mut before = operation.stages[..index].iter().flat_map(|stage| &stage.tasks);
    let failed = before.find(|task| task.status == TaskStatus::Failed && matters(task))?;
    if !on(Guard::FailedHoldsUpTheRest) {
        return None;
    }
    Some(why_failed(failed))
}

fn begin_stage(draft: &Draft, operation: &mut Operation, index: usize) {
    let power = progress::power_back(operation, &draft.state.host);
    let kind = operation.kind();
    let stage: &mut Stage = &mut operation.stages[index];
    stage.started_at = Some(draft.now);
    operation.updated_at = draft.now;
    if stage.at_once.is_some() {
        // Their turn comes one by one.
        return;
    }
    let is_held = |task: &Task| index == evacuation::BESIDE && power_last::waits(kind, task);
    if let PowerBack::To { may_be_off, .. } = &power
        && stage.tasks.iter().any(|task| task.kind() == FencingKind::PowerOn)
    {
        let is_there = |method: &FrozenMethod| {
            let mut known = stage.tasks.iter().flat_map(Task::levels).flatten();
            known.any(|one| one == method)
        };
        let others: Vec<_> = may_be_off.iter().filter(|one| !is_there(one)).cloned().collect();
        let others = progress::switch_on_each(others);
        let at = stage.tasks.len();
        stage.tasks.extend(others);
        for task in &mut stage.tasks[at..] {
            progress::start_task(task, &PowerBack::AsPlanned);
        }
    }
    for task in stage.tasks.iter_mut().filter(|task| !is_held(task)) {
        progress::start_task(task, &power);
    }
}
