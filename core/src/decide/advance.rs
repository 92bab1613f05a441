//! What has become due: expired attempts, proofs, stages, the end.

use serde_json::json;

use crate::{
    Awaits, EventKind, FailureState, Operation, OperationKind, OperationStatus, Stage, TaskKind, TaskStatus,
};

use super::step::after_s;
use super::{Step, progress, proof, rejoin, retry};

/// How the stages of an operation stand.
enum Stages {
    /// Something is under way or will be due.
    Busy,
    /// All are over.
    Over,
    /// It cannot go on without a person.
    Stuck(String),
}

/// Whether a stage may begin.
enum Wait {
    Ready,
    Not,
    GiveUp(String),
}

pub(super) fn advance(step: &mut Step) {
    forget_stopped(step);
    progress::expire(step);
    let Some(kind) = step.live().map(|live| live.kind) else {
        return;
    };
    match kind {
        OperationKind::Fence => advance_fence(step),
        OperationKind::Rejoin => advance_rejoin(step),
    }
    restart_when_due(step);
}

/// A worker whose deadline has passed has stopped by itself.
fn forget_stopped(step: &mut Step) {
    let now = step.now;
    step.state.host.in_flight.retain(|f| f.until > now);
    // A late clean-up of the list matters to no decision, but the list must not be kept for a host that nothing happens to.
    if let Some(until) = step.state.host.in_flight.iter().map(|f| f.until).min() {
        step.wake(until);
    }
}

fn advance_fence(step: &mut Step) {
    // A proof can end the wait for an operator, and a stage can win a proof: look again after each.
    proof::collect(step);
    let status = step.live().map(|live| live.status);
    if status == Some(OperationStatus::NeedsOperator) {
        if step.state.host.is_fence_current() {
            proof::succeed(step);
        }
        return;
    }
    loop {
        let before = over_count(step);
        let stages = run_stages(step);
        proof::collect(step);
        if over_count(step) != before {
            continue;
        }
        match stages {
            Stages::Busy => {}
            Stages::Stuck(why) => needs_operator(step, why),
            Stages::Over if step.state.host.is_fence_current() => proof::succeed(step),
            Stages::Over => wait_or_ask(step),
        }
        return;
    }
}

fn over_count(step: &Step) -> usize {
    step.live().map_or(0, |live| {
        live.stages.iter().filter(|stage| stage.is_over()).count()
    })
}

/// Nothing is left to do and nothing is proven: the host's own watchdog may still prove it.
fn wait_or_ask(step: &mut Step) {
    if let Some(due) = proof::self_fencing_due(step) {
        step.wake(due);
        set_detail(
            step,
            format!(
                "waiting for the self-fencing timeout until {}",
                due.format("%FT%TZ")
            ),
        );
        return;
    }
    let Some(operation) = step.live() else { return };
    let failed: Vec<_> = operation
        .tasks()
        .filter(|task| task.status == TaskStatus::Failed)
        .map(|task| {
            format!(
                "{} ({})",
                task.kind,
                task.detail.as_deref().unwrap_or("no detail")
            )
        })
        .collect();
    let why = if operation.stages.is_empty() {
        "the plan does nothing by itself: fence the host by hand and confirm it".to_owned()
    } else if failed.is_empty() {
        "no sufficient set was completed".to_owned()
    } else {
        format!("no sufficient set was completed; failed: {}", failed.join("; "))
    };
    needs_operator(step, why);
}

fn advance_rejoin(step: &mut Step) {
    if step
        .live()
        .is_none_or(|live| live.status != OperationStatus::Running)
    {
        return;
    }
    match run_stages(step) {
        Stages::Busy => {}
        Stages::Stuck(why) => needs_operator(step, why),
        Stages::Over => step.end(OperationStatus::Succeeded, "the host was taken back".to_owned()),
    }
}

/// Runs the first stage that is not over, and those after it as far as they end at once.
fn run_stages(step: &mut Step) -> Stages {
    // Taken out so that host and operation can be changed side by side; put back before anyone else looks.
    let Some(mut operation) = step.state.operation.take() else {
        return Stages::Over;
    };
    let mut outcome = Stages::Over;
    let mut unfence = false;
    for index in 0..operation.stages.len() {
        if operation.stages[index].is_over() {
            continue;
        }
        if operation.kind == OperationKind::Rejoin
            && let Some(why) = failed_before(&operation, index)
        {
            outcome = Stages::Stuck(why);
            break;
        }
        if operation.stages[index].started_at.is_none() {
            match may_begin(step, &mut operation, index) {
                Wait::Not => {
                    outcome = Stages::Busy;
                    break;
                }
                Wait::GiveUp(why) => {
                    outcome = Stages::Stuck(why);
                    break;
                }
                Wait::Ready => begin_stage(step, &mut operation, index),
            }
            unfence |= operation.kind == OperationKind::Rejoin
                && rejoin::is_after_unfencing(&operation.stages[index]);
        }
        progress::run_stage(step, &mut operation, index);
        if !operation.stages[index].is_over() {
            outcome = Stages::Busy;
            break;
        }
    }
    step.state.operation = Some(operation);
    if unfence {
        rejoin::become_unfenced(step);
    }
    outcome
}

/// What of a rejoin failed before this stage. Power alone does not matter: that the host is back is what counts.
fn failed_before(operation: &Operation, index: usize) -> Option<String> {
    operation.stages[..index]
        .iter()
        .flat_map(|stage| &stage.tasks)
        .find_map(|task| {
            let matters = task.kind != TaskKind::PowerOn && task.status == TaskStatus::Failed;
            matters.then(|| {
                format!(
                    "{} failed: {}",
                    task.kind,
                    task.detail.as_deref().unwrap_or("no detail")
                )
            })
        })
}

fn begin_stage(step: &Step, operation: &mut Operation, index: usize) {
    let off = progress::confirmed_off(operation);
    let in_fence = operation.kind == OperationKind::Fence;
    let stage: &mut Stage = &mut operation.stages[index];
    stage.started_at = Some(step.now);
    operation.updated_at = step.now;
    for task in &mut stage.tasks {
        progress::start_task(task, off.as_ref(), in_fence);
    }
}

fn may_begin(step: &mut Step, operation: &mut Operation, index: usize) -> Wait {
    let now = step.now;
    let stage = &mut operation.stages[index];
    let entered_at = *stage.entered_at.get_or_insert(now);
    let begins_at = after_s(entered_at, stage.delay_s);
    if begins_at > now {
        step.wake(begins_at);
        return Wait::Not;
    }
    match stage.awaits {
        None => Wait::Ready,
        Some(Awaits::SelfFencing) => await_self_fencing(step, operation),
        Some(Awaits::HostBack) => await_host(step, operation, after_s(entered_at, operation.rejoin_wait_s)),
    }
}

fn await_self_fencing(step: &mut Step, operation: &Operation) -> Wait {
    let host = &step.state.host;
    let (Some(timeout_s), Some(fenced_at)) = (operation.self_fencing_timeout_s, host.fenced_at) else {
        return Wait::Ready;
    };
    let due = after_s(fenced_at, timeout_s);
    if due <= step.now || host.has_newer_boot() || operation.boot_confirmed {
        return Wait::Ready;
    }
    step.wake(due);
    Wait::Not
}

fn await_host(step: &mut Step, operation: &mut Operation, until: crate::Timestamp) -> Wait {
    let host = &step.state.host;
    let is_up = host.failure_state == FailureState::Up;
    let is_booted = !host.needs_boot || operation.boot_confirmed || host.has_newer_boot();
    let missing = match (is_up, is_booted) {
        (true, true) => return Wait::Ready,
        (false, true | false) => format!("the host is {}, not UP", host.failure_state),
        (true, false) => {
            "the host was fenced by storage or network alone and has shown no boot newer than the fence"
                .to_owned()
        }
    };
    if until <= step.now {
        return Wait::GiveUp(missing);
    }
    step.wake(until);
    operation.detail = format!("waiting: {missing}");
    Wait::Not
}

fn set_detail(step: &mut Step, detail: String) {
    if let Some(operation) = step.state.operation.as_mut() {
        operation.detail = detail;
    }
}

fn needs_operator(step: &mut Step, why: String) {
    let now = step.now;
    let Some(operation) = step.state.operation.as_mut() else {
        return;
    };
    operation.status = OperationStatus::NeedsOperator;
    operation.updated_at = now;
    if operation.restarts_left > 0 {
        operation.restarts_left -= 1;
        operation.restart_at = Some(after_s(now, operation.restart_delay_s));
    }
    let data = json!({
        "operation_id": operation.id,
        "kind": operation.kind,
        "generation": operation.generation,
        "detail": why,
        "restart_at": operation.restart_at,
    });
    operation.detail = why;
    step.event(EventKind::OperationNeedsOperator, data);
}

fn restart_when_due(step: &mut Step) {
    let waiting = step
        .live()
        .filter(|live| live.status == OperationStatus::NeedsOperator);
    let Some(restart_at) = waiting.and_then(|live| live.restart_at) else {
        return;
    };
    if restart_at > step.now {
        step.wake(restart_at);
        return;
    }
    retry::restart(step, "started again by itself, as the segment says");
    advance(step);
}
