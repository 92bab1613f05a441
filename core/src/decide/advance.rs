//! What has become due: expired attempts, proofs, stages, the end.

use serde_json::json;

use uuid::Uuid;

use crate::guard::{Guard, on};
use crate::{
    Awaits, EventKind, FailureState, FencingKind, FrozenMethod, InFlight, OldBoot, Operation, OperationId,
    OperationKind, OperationStatus, SegmentPolicy, Stage, StepKind, Task, TaskStatus, Timestamp,
};

use super::draft::{after_ms, after_s};
use super::progress::PowerBack;
use super::{Draft, EVACUATION_HELD_S, auto_fence, evacuation, power_last, progress, proof, rejoin, retry};

/// How the stages of an operation stand.
enum Stages {
    /// One more is over.
    Moved,
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

pub(super) fn advance(draft: &mut Draft) {
    forget_stopped(draft);
    run(draft);
    if evacuation::by_itself(draft) {
        run(draft);
    }
    rejoin_when_back(draft);
    auto_fence::watch(draft);
    progress::watch(draft);
}

/// A host that was seen UP while its fence had still something to do is taken back when that is over.
fn rejoin_when_back(draft: &mut Draft) {
    if !rejoin::is_due(draft) {
        return;
    }
    // FENCED is committed, with its proofs, before the way back begins.
    if draft
        .state
        .host
        .fence
        .as_ref()
        .is_some_and(|fence| fence.at >= draft.now)
    {
        draft.wake(after_ms(draft.now, 1));
        return;
    }
    // Named by host and generation, so that no id has to come from outside with every tick.
    let host = &draft.state.host;
    let name = format!("rejoin after generation {}", host.generation);
    rejoin::by_itself(draft, OperationId(Uuid::new_v5(&host.id.0, name.as_bytes())));
    run(draft);
}

fn run(draft: &mut Draft) {
    progress::expire(draft);
    let Some(kind) = draft.live().map(Operation::kind) else {
        return;
    };
    match kind {
        OperationKind::Fence => advance_fence(draft),
        OperationKind::Rejoin => advance_rejoin(draft),
        OperationKind::Evacuation => advance_evacuation(draft),
    }
    restart_when_due(draft);
}

/// A worker whose deadline has passed has stopped by itself.
fn forget_stopped(draft: &mut Draft) {
    let now = draft.now;
    let host = &mut draft.state.host;
    let over: Vec<InFlight> = host.in_flight.extract_if(.., |f| f.until <= now).collect();
    for f in over {
        host.is_over(&f, f.until);
    }
    // A late clean-up of the list matters to no decision, but the list must not be kept for a host that nothing happens to.
    if let Some(until) = draft.state.host.in_flight.iter().map(|f| f.until).min() {
        draft.wake(until);
    }
}

fn advance_fence(draft: &mut Draft) {
    // Before a person has looked, not even the host's own watchdog opens one gate more.
    let is_held = draft.live().is_some_and(Operation::is_held_by_brake) && on(Guard::BrakeHolds);
    if is_held && draft.state.host.current_fence().is_none() {
        return;
    }
    loop {
        // A proof can end the wait for an operator, and decides whether power may come back: look before each stage.
        proof::collect(draft);
        let Some(live) = draft.live() else { return };
        let is_fenced = draft.state.host.current_fence().is_some();
        let waits = live.status == OperationStatus::NeedsOperator;
        if waits && !is_fenced && proof::settles_at(draft).is_none() {
            return;
        }
        if waits {
            // It runs again, and what has to be read again is begun now.
            resume(draft);
            continue;
        }
        let is_told = tell_backend(draft);
        match run_next_stage(draft) {
            Stages::Moved => {}
            Stages::Busy => {
                proof::collect(draft);
                tell_backend(draft);
                return;
            }
            Stages::Stuck(why) => return needs_operator(draft, why),
            Stages::Over if draft.state.host.current_fence().is_none() => return wait_or_ask(draft),
            Stages::Over if is_told => return proof::succeed(draft),
            Stages::Over => return,
        }
    }
}

/// A proof has come to an operation that waits for an operator.
fn resume(draft: &mut Draft) {
    if let Some(operation) = draft.state.operation.as_mut() {
        operation.status = OperationStatus::Running;
        operation.restart_at = None;
    }
}

/// Does what waits for FENCED, beside whatever is still under way. `true` if nothing of it is left.
fn tell_backend(draft: &mut Draft) -> bool {
    run_beside(draft, |_, stage| stage.awaits == Some(Awaits::Fenced))
}

/// Runs a stage that is in no order with the others, if it may begin. `true` if there is none, or it is over.
fn run_beside(draft: &mut Draft, is_it: impl Fn(usize, &Stage) -> bool) -> bool {
    let Some(mut operation) = draft.state.operation.take() else {
        return true;
    };
    let mut stages = operation.stages.iter().enumerate();
    let found = stages.find(|(index, stage)| is_it(*index, stage) && !stage.is_over());
    let index = found.map(|(index, _)| index);
    let is_over = index.is_none_or(|index| matches!(run_stage(draft, &mut operation, index), Stages::Moved));
    draft.state.operation = Some(operation);
    is_over
}

/// Nothing is left to do and nothing is proven: the host's own watchdog may still prove it.
fn wait_or_ask(draft: &mut Draft) {
    let Some(operation) = draft.live() else { return };
    if let Some(at) = proof::settles_at(draft) {
        draft.wake(at);
        let at = at.format("%FT%TZ");
        return set_detail(
            draft,
            format!("proven; waiting until {at} for what the storage had accepted by then"),
        );
    }
    let silent = proof::silence(draft);
    if let Some(silent) = silent.as_ref().filter(|silent| silent.lapses_at() > draft.now) {
        draft.wake(silent.lapses_at());
        let due = silent.due.format("%FT%TZ");
        return set_detail(
            draft,
            format!("waiting for a report of silence after {due}, the self-fencing timeout"),
        );
    }
    let failed: Vec<_> = operation
        .tasks()
        .filter(|task| task.status == TaskStatus::Failed)
        .map(|task| {
            format!(
                "{} ({})",
                task.kind(),
                task.detail.as_deref().unwrap_or("no detail")
            )
        })
        .collect();
    let unproven: Vec<_> = operation
        .tasks()
        .filter(|task| task.status == TaskStatus::Confirmed && task.kind().proof_kind().is_some())
        .filter(|task| !proof::does_prove(task))
        .map(|task| task.kind().to_string())
        .collect();
    let has_plan = operation.fence().is_some_and(|fence| fence.plan.is_some());
    let why = if !has_plan {
        "no plan can be carried out: fence the host by hand and confirm it".to_owned()
    } else if operation.tasks().all(|task| task.kind().proof_kind().is_none()) {
        "the plan does nothing by itself: fence the host by hand and confirm it".to_owned()
    } else {
        let mut why = "no sufficient set was completed".to_owned();
        for (what, tasks) in [("failed", failed), ("done, which proves nothing", unproven)] {
            if !tasks.is_empty() {
                why.push_str(&format!("; {what}: {}", tasks.join("; ")));
            }
        }
        why
    };
    needs_operator(draft, why);
}

fn advance_rejoin(draft: &mut Draft) {
    if draft
        .live()
        .is_none_or(|live| live.status != OperationStatus::Running)
    {
        return;
    }
    loop {
        match run_next_stage(draft) {
            Stages::Moved => {}
            Stages::Busy => return,
            Stages::Stuck(why) => return needs_operator(draft, why),
            Stages::Over => return taken_back(draft),
        }
    }
}

/// Everything is over. UNFENCED stands, whatever has become of the workloads that remained.
fn taken_back(draft: &mut Draft) {
    let mut starts = draft.live().into_iter().flat_map(Operation::tasks);
    let failed = starts.find(|task| task.kind() == StepKind::Start && task.status == TaskStatus::Failed);
    let why = failed.map(why_failed);
    drop(starts);
    match why {
        Some(why) => needs_operator(draft, format!("the host was taken back, but {why}")),
        None => draft.end(OperationStatus::Succeeded, "the host was taken back".to_owned()),
    }
}

/// What the fence has left to do is in no order with the rest.
fn advance_evacuation(draft: &mut Draft) {
    progress::settle(draft);
    proof::collect(draft);
    if evacuation::stop_if_back(draft) {
        return;
    }
    if draft
        .live()
        .is_none_or(|live| live.status != OperationStatus::Running)
    {
        return;
    }
    if let Some(why) = evacuation::hold(draft) {
        return needs_operator(draft, why);
    }
    loop {
        let is_alone = run_beside(draft, |index, _| index == evacuation::BESIDE);
        proof::collect(draft);
        match run_next_stage(draft) {
            Stages::Moved => {}
            Stages::Busy => return proof::collect(draft),
            Stages::Stuck(why) => return needs_operator(draft, why),
            Stages::Over if !is_alone && !draft.live().is_some_and(power_last::is_all_that_is_left) => return,
            Stages::Over => {
                if !finish_evacuation(draft) {
                    return;
                }
            }
        }
    }
}

/// Every stage is over. `true` if there is something else to try.
fn finish_evacuation(draft: &mut Draft) -> bool {
    let Some(operation) = draft.state.operation.as_mut() else {
        return false;
    };
    if evacuation::open_spare(operation) {
        return true;
    }
    let (failed, told) = (evacuation::failed(operation), evacuation::told(operation));
    match failed {
        Some(why) => needs_operator(draft, why),
        None if power_last::release(operation) => return true,
        None => {
            let left_off = power_last::tell_left_off(draft);
            draft.end(OperationStatus::Succeeded, told + &left_off);
        }
    }
    false
}

/// Does what is due of the first stage that is not over.
fn run_next_stage(draft: &mut Draft) -> Stages {
    // Taken out so that host and operation can be changed side by side; put back before anyone else looks.
    let Some(mut operation) = draft.state.operation.take() else {
        return Stages::Over;
    };
    let outcome = match next_stage(&operation) {
        Some(index) => run_stage(draft, &mut operation, index),
        None => Stages::Over,
    };
    draft.state.operation = Some(operation);
    outcome
}

/// The first one that is not over and has a place in the order.
fn next_stage(operation: &Operation) -> Option<usize> {
    let is_beside = |index: usize, stage: &Stage| match operation.kind() {
        OperationKind::Fence => stage.awaits == Some(Awaits::Fenced),
        OperationKind::Evacuation => index == evacuation::BESIDE,
        OperationKind::Rejoin => false,
    };
    let mut stages = operation.stages.iter().enumerate();
    let found = stages.find(|(index, stage)| !is_beside(*index, stage) && !stage.is_over());
    found.map(|(index, _)| index)
}

fn run_stage(draft: &mut Draft, operation: &mut Operation, index: usize) -> Stages {
    if let Some(why) = failed_before(operation, index) {
        return Stages::Stuck(why);
    }
    if operation.stages[index].started_at.is_none() {
        match may_begin(draft, operation, index) {
            Wait::Not => return Stages::Busy,
            Wait::GiveUp(why) => return Stages::Stuck(why),
            Wait::Ready => {}
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

/// The task and its reason, for a person.
fn why_failed(task: &Task) -> String {
    format!(
        "{} failed: {}",
        task.kind(),
        task.detail.as_deref().unwrap_or("no detail")
    )
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

fn may_begin(draft: &mut Draft, operation: &mut Operation, index: usize) -> Wait {
    let now = draft.now;
    let is_fence = operation.kind() == OperationKind::Fence;
    let stage = &mut operation.stages[index];
    if is_fence
        && stage.tasks.iter().any(|task| task.kind() == FencingKind::PowerOn)
        && !power_may_come(draft, &operation.policy, stage)
    {
        return Wait::Not;
    }
    let entered_at = *stage.entered_at.get_or_insert(now);
    let begins_at = after_s(entered_at, stage.delay_s);
    if begins_at > now {
        draft.wake(begins_at);
        return Wait::Not;
    }
    match stage.awaits {
        None => Wait::Ready,
        Some(Awaits::SelfFencing) => await_self_fencing(draft, operation),
        Some(Awaits::Fenced) if draft.state.host.current_fence().is_some() => Wait::Ready,
        Some(Awaits::Fenced) if on(Guard::BackendAwaitsFenced) => Wait::Not,
        Some(Awaits::Fenced) => Wait::Ready,
        Some(Awaits::HostBack) => await_host(
            draft,
            operation,
            after_s(entered_at, operation.policy.rejoin_wait_s),
        ),
    }
}

/// A host that starts may start again what is to be started elsewhere: that comes first. If it cannot be told for long whether it can
/// begin, the power stays off until a rejoin.
fn power_may_come(draft: &mut Draft, policy: &SegmentPolicy, stage: &mut Stage) -> bool {
    if !evacuation::is_expected_by(&draft.state, policy) || !on(Guard::PowerWaitsForEvacuation) {
        return true;
    }
    let Some(fenced_at) = draft.state.host.fence.as_ref().map(|fence| fence.at) else {
        return true;
    };
    let until = after_s(fenced_at, EVACUATION_HELD_S);
    if until > draft.now {
        draft.wake(until);
        return false;
    }
    for task in stage
        .tasks
        .iter_mut()
        .filter(|task| task.kind() == FencingKind::PowerOn)
    {
        task.status = TaskStatus::Skipped;
        task.detail = Some(format!(
            "its workloads are to be started elsewhere, and for {EVACUATION_HELD_S} s it was not known whether the host is silent"
        ));
    }
    true
}

fn await_self_fencing(draft: &mut Draft, operation: &Operation) -> Wait {
    let host = &draft.state.host;
    let (Some(timeout_s), Some(fence)) = (operation.policy.self_fencing_timeout_s, &host.fence) else {
        return Wait::Ready;
    };
    let due = after_s(fence.at, timeout_s);
    let is_booted =
        host.sources.has_booted_since(fence.at, draft.state.clock_set_at) || operation.is_boot_confirmed();
    if due <= draft.now || is_booted || !on(Guard::RejoinAwaitsSelfFencing) {
        return Wait::Ready;
    }
    draft.wake(due);
    Wait::Not
}

fn await_host(draft: &mut Draft, operation: &mut Operation, until: Timestamp) -> Wait {
    let taking = draft.state.host.fencing_in_flight(draft.now).cloned();
    let taking = taking.filter(|_| on(Guard::RejoinAwaitsFencing));
    let host = &draft.state.host;
    let old_boot = host
        .old_boot(draft.state.clock_set_at)
        .filter(|_| !operation.is_boot_confirmed());
    let missing = if let Some(f) = taking {
        draft.wake(f.until);
        format!("a {} may still be carried out", f.kind)
    } else if !host.is_seen_back(draft.state.clock_set_at) && on(Guard::RejoinAwaitsHost) {
        match host.failure_state {
            FailureState::Up => {
                "the host was last seen UP before it was fenced or switched off, and not since".to_owned()
            }
            FailureState::Unreachable | FailureState::Unknown => not_up(operation, host.failure_state),
        }
    } else {
        match old_boot {
            None => return Wait::Ready,
            Some(OldBoot::CutOff) => {
                "the host was cut off from storage or network and has shown no boot that began after that".to_owned()
            }
            Some(OldBoot::OutlivedItsStop) => {
                "the host runs a boot from before it was proven to have stopped: what proved that may not tell the truth"
                    .to_owned()
            }
        }
    };
    if until <= draft.now {
        return Wait::GiveUp(missing);
    }
    draft.wake(until);
    operation.detail = format!("waiting: {missing}");
    Wait::Not
}

/// A host that was not given its power cannot be UP: that is what has to be mended.
fn not_up(operation: &Operation, seen: FailureState) -> String {
    let is_off = |task: &&Task| task.kind() == FencingKind::PowerOn && task.status == TaskStatus::Failed;
    let power = operation.tasks().find(is_off).map(why_failed);
    let power = power.map(|why| format!("{why}; ")).unwrap_or_default();
    format!("{power}the host is {seen}, not UP")
}

fn set_detail(draft: &mut Draft, detail: String) {
    if let Some(operation) = draft.state.operation.as_mut() {
        operation.detail = detail;
    }
}

fn needs_operator(draft: &mut Draft, why: String) {
    let now = draft.now;
    let Some(operation) = draft.state.operation.as_mut() else {
        return;
    };
    operation.status = OperationStatus::NeedsOperator;
    operation.updated_at = now;
    if operation.restarts_left > 0 {
        operation.restarts_left -= 1;
        operation.restart_at = Some(after_s(now, operation.policy.restart_delay_s));
    }
    let data = json!({
        "operation_id": operation.id,
        "kind": operation.kind(),
        "generation": operation.generation,
        "detail": why,
        "restart_at": operation.restart_at,
    });
    operation.detail = why;
    draft.event(EventKind::OperationNeedsOperator, data);
}

fn restart_when_due(draft: &mut Draft) {
    let waiting = draft
        .live()
        .filter(|live| live.status == OperationStatus::NeedsOperator);
    let Some(restart_at) = waiting.and_then(|live| live.restart_at) else {
        return;
    };
    if restart_at > draft.now {
        draft.wake(restart_at);
        return;
    }
    retry::restart(draft, "started again by itself, as the segment says");
    run(draft);
}
