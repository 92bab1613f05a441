//! How far a task is, method by method and level by level.

use chrono::TimeDelta;

use crate::guard::{Guard, on};
use crate::undoing::clearly_after;
use crate::{
    Attempt, AttemptStatus, Dispatch, EventKind, FrozenMethod, Host, Operation, OperationKind, Outcome,
    ProofKind, Task, TaskKind, TaskStatus, Timestamp,
};

use super::step::{after_ms, after_s};
use super::{CLAIM_WINDOW_S, Step, evacuation, proof};

/// The parameter that names a move which is not to be waited for.
const GIVEN_UP: &str = "given_up";

/// Where one method of the level in use stands.
enum Method {
    Confirmed,
    Open,
    Failed,
    /// Its next attempt is due then.
    Due(Timestamp),
}

/// Ends attempts whose claim, lease or deadline is overdue: nobody knows what became of them.
pub(super) fn expire(step: &mut Step) {
    let now = step.now;
    let Some(operation) = step.state.operation.as_mut().filter(|o| o.status.is_live()) else {
        return;
    };
    let mut lost = false;
    for task in operation.tasks_mut() {
        if let Some(due) = expire_attempts(task, now) {
            excuse(task, due, now);
            lost = true;
        }
    }
    if lost {
        operation.updated_at = now;
    }
}

/// When the first open attempt will be overdue.
pub(super) fn watch(step: &mut Step) {
    let open = |attempt: &Attempt| overdue_at(attempt).map(|(at, _)| at);
    if let Some(at) = step
        .live()
        .and_then(|live| live.attempts().filter_map(open).min())
    {
        step.wake(at);
    }
}

/// When an open attempt is over, and why.
fn overdue_at(attempt: &Attempt) -> Option<(Timestamp, &'static str)> {
    match attempt.state {
        AttemptStatus::Dispatched { claim_by } => Some((claim_by, "no worker claimed it in time")),
        AttemptStatus::Claimed {
            lease_until,
            deadline,
        } => Some((
            lease_until.min(deadline),
            "its worker fell silent; the lease ran out",
        )),
        AttemptStatus::Ended { .. } | AttemptStatus::Cancelled { .. } => None,
    }
}

/// Gives the latest moment at which one of those that are over was due.
fn expire_attempts(task: &mut Task, now: Timestamp) -> Option<Timestamp> {
    let mut latest = None;
    for attempt in &mut task.attempts {
        let is_over = |due: Timestamp| due <= now && on(Guard::AttemptsEnd);
        let Some((due, why)) = overdue_at(attempt).filter(|(due, _)| is_over(*due)) else {
            continue;
        };
        attempt.state = AttemptStatus::Ended {
            outcome: Outcome::Unknown,
            ended_at: now,
        };
        attempt.detail = Some(why.to_owned());
        latest = latest.max(Some(due));
    }
    latest
}

/// What was due at `due` is seen only now, because no engine was there to see it: that time is not the methods'.
pub(super) fn excuse(task: &mut Task, due: Timestamp, now: Timestamp) {
    let late = (now - due).max(TimeDelta::zero());
    task.level_started_at = task.level_started_at.map(|at| (at + late).min(now));
}

/// Does what is due for the tasks of one stage.
pub(super) fn run_stage(step: &mut Step, operation: &mut Operation, index: usize) {
    let at_once = operation.stages[index].at_once;
    let mut stage = std::mem::take(&mut operation.stages[index].tasks);
    let mut free = free_places(&stage, at_once);
    for task in &mut stage {
        if task.status == TaskStatus::Pending && free > 0 && may_begin(step, task.kind) {
            task.status = TaskStatus::Running;
            free -= 1;
        }
        if task.status != TaskStatus::Running {
            continue;
        }
        run_task(step, operation, task);
        if task.status.is_over() {
            withdraw_unclaimed(task, step.now);
            tell_end(step, operation, task);
            free += 1;
        }
    }
    operation.stages[index].tasks = stage;
}

/// Takes note of what is confirmed, and begins nothing.
pub(super) fn settle(step: &mut Step) {
    let Some(mut operation) = step.state.operation.take() else {
        return;
    };
    for index in 0..operation.stages.len() {
        let mut tasks = std::mem::take(&mut operation.stages[index].tasks);
        for task in tasks.iter_mut().filter(|task| task.status == TaskStatus::Running) {
            if is_confirmed(task) {
                task.status = TaskStatus::Confirmed;
                tell_end(step, &operation, task);
            }
        }
        operation.stages[index].tasks = tasks;
    }
    step.state.operation = Some(operation);
}

fn is_confirmed(task: &Task) -> bool {
    let level = task.levels.get(task.level);
    let is_done = |method: &FrozenMethod| {
        let mut tries = task
            .round()
            .iter()
            .filter(|a| a.level == task.level && a.method_id == method.id);
        tries.next_back().and_then(Attempt::outcome) == Some(Outcome::Confirmed)
    };
    level.is_some_and(|methods| !methods.is_empty() && methods.iter().all(is_done))
}

/// How many more of a stage's tasks may begin. Where there is no limit, all have begun with their stage.
fn free_places(stage: &[Task], at_once: Option<u32>) -> usize {
    let limit = at_once.map_or(0, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let running = stage.iter().filter(|task| task.status == TaskStatus::Running);
    limit.saturating_sub(running.count())
}

/// Nothing is started elsewhere while the gate is closed.
fn may_begin(step: &Step, kind: TaskKind) -> bool {
    kind != TaskKind::WorkloadsMove || evacuation::may_move(step) || !on(Guard::MoveNeedsGate)
}

fn tell_end(step: &mut Step, operation: &Operation, task: &Task) {
    let kind = match task.status {
        TaskStatus::Confirmed => EventKind::WorkloadMoved,
        TaskStatus::Failed => EventKind::WorkloadNotMoved,
        TaskStatus::Pending | TaskStatus::Running | TaskStatus::Skipped | TaskStatus::Cancelled => return,
    };
    if let Some(news) = evacuation::news(operation.id, &step.state.host, task) {
        step.event(kind, news);
    }
}

/// The power that a fence may give back.
pub(super) enum PowerBack {
    /// Not within a fence: the task knows its devices.
    AsPlanned,
    /// The devices that were seen off.
    To(Vec<FrozenMethod>),
    /// None, and why.
    No(&'static str),
}

/// What a fence may switch on again: what it has seen off, once that (or something else) has made the host FENCED. Before
/// that the observation would be undone while it still has to count.
pub(super) fn power_back(operation: &Operation, host: &Host) -> PowerBack {
    match operation.kind() {
        OperationKind::Rejoin | OperationKind::Evacuation => PowerBack::AsPlanned,
        OperationKind::Fence if host.current_fence().is_none() && on(Guard::PowerBackAfterFenced) => {
            PowerBack::No("the host was not FENCED by then")
        }
        OperationKind::Fence => match operation.seen_off() {
            Some(methods) => PowerBack::To(methods.to_vec()),
            None => PowerBack::No("power.off was not confirmed"),
        },
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
        PowerBack::To(methods) if task.kind == TaskKind::PowerOn => task.levels = vec![methods.clone()],
        PowerBack::No(why) if task.kind == TaskKind::PowerOn => {
            task.status = TaskStatus::Skipped;
            task.detail = Some((*why).to_owned());
        }
        PowerBack::To(_) | PowerBack::No(_) => {}
    }
}

fn run_task(step: &mut Step, operation: &mut Operation, task: &mut Task) {
    while task.status == TaskStatus::Running {
        let Some(methods) = task.levels.get(task.level).cloned() else {
            fail(task);
            return;
        };
        // "Every device was seen off" must not be true of none.
        if methods.is_empty() {
            task.level += 1;
            continue;
        }
        let opposite = step.state.host.opposite_in_flight(task.kind, step.now);
        if let Some(f) = opposite.filter(|_| on(Guard::DispatchWaitsForOpposite)) {
            step.wake(f.until);
            return;
        }
        if !may_begin(step, task.kind) {
            return;
        }
        if let Some(until) = evacuation::another_at_it(&step.state.host, operation.id, task, step.now) {
            step.wake(until);
            return;
        }
        let level_started_at = *task.level_started_at.get_or_insert(step.now);
        let standings: Vec<Method> = methods
            .iter()
            .map(|method| standing(task, method, level_started_at, step))
            .collect();
        let mut done = standings.iter().map(|s| matches!(s, Method::Confirmed));
        if done.clone().all(|is_done| is_done)
            || (!on(Guard::EveryMethodIsDone) && done.any(|is_done| is_done))
        {
            if next_may_prove_more(step, task) {
                task.level += 1;
                task.level_started_at = None;
                continue;
            }
            task.status = TaskStatus::Confirmed;
            return;
        }
        if standings.iter().any(|s| matches!(s, Method::Failed)) {
            withdraw_unclaimed(task, step.now);
            task.level += 1;
            task.level_started_at = None;
            continue;
        }
        for (method, standing) in methods.iter().zip(standings) {
            match standing {
                Method::Due(at) if at <= step.now => {
                    excuse(task, at, step.now);
                    dispatch(step, operation, task, method);
                }
                Method::Due(at) => step.wake(at),
                Method::Confirmed | Method::Open | Method::Failed => {}
            }
        }
        return;
    }
}

/// It is done and proves nothing, which another level may.
fn next_may_prove_more(step: &Step, task: &Task) -> bool {
    let is_wanted = task.kind.proof_kind().is_some() && step.state.host.current_fence().is_none();
    is_wanted && task.level + 1 < task.levels.len() && !proof::does_prove(task)
}

fn standing(task: &Task, method: &FrozenMethod, level_started_at: Timestamp, step: &Step) -> Method {
    let now = step.now;
    let tries = || {
        task.round()
            .iter()
            .filter(|a| a.level == task.level && a.method_id == method.id)
    };
    let Some(last) = tries().next_back() else {
        return Method::Due(level_started_at.max(now));
    };
    let (outcome, ended_at) = match last.state {
        AttemptStatus::Dispatched { .. } | AttemptStatus::Claimed { .. } => return Method::Open,
        AttemptStatus::Cancelled { .. } => return Method::Due(now),
        AttemptStatus::Ended { outcome, ended_at } => (outcome, ended_at),
    };
    let times = &method.times;
    match outcome {
        Outcome::Confirmed if !must_be_read_again(task, last, step) => Method::Confirmed,
        Outcome::Refused => Method::Failed,
        Outcome::Unknown if last.claimed_at.is_none() => {
            // The device was never asked: try until the method's time is up.
            if now < after_s(level_started_at, times.timeout_s) {
                Method::Due(now)
            } else {
                Method::Failed
            }
        }
        Outcome::Confirmed | Outcome::Unknown => {
            let acted = tries().filter(|a| a.claimed_at.is_some()).count();
            let last_start = after_ms(level_started_at, u64::from(times.timeout_s) * 700);
            let due = after_ms(ended_at, u64::from(times.pause_ms));
            let due = contradicted_until(task, step).map_or(due, |until| due.max(until));
            let is_in_time = due < last_start || !on(Guard::LevelEnds);
            let may = u32::try_from(acted).is_ok_and(|acted| acted <= times.retries) && is_in_time;
            if may { Method::Due(due) } else { Method::Failed }
        }
    }
}

/// Until when a reading would be contradicted by the sign of life that the host has given already: it is not made before.
fn contradicted_until(task: &Task, step: &Step) -> Option<Timestamp> {
    let says_stopped = task.kind.proof_kind().is_some_and(ProofKind::says_stopped);
    let is_counted = says_stopped && step.state.host.current_fence().is_none();
    step.state
        .host
        .sources
        .alive_by()
        .filter(|_| is_counted)
        .map(clearly_after)
}

/// The host was seen UP since, and what was read still has to count.
fn must_be_read_again(task: &Task, attempt: &Attempt, step: &Step) -> bool {
    step.state.host.current_fence().is_none() && !proof::counts(task.kind, attempt, &step.state.host)
}

fn dispatch(step: &mut Step, operation: &mut Operation, task: &mut Task, method: &FrozenMethod) {
    operation.last_attempt = operation.last_attempt.saturating_add(1);
    operation.updated_at = step.now;
    let claim_by = after_s(step.now, CLAIM_WINDOW_S);
    let number = operation.last_attempt;
    task.attempts.push(Attempt {
        number,
        level: task.level,
        method_id: method.id,
        method: method.name.clone(),
        driver: method.driver,
        started_at: step.now,
        worker: None,
        claim_id: None,
        claimed_at: None,
        state: AttemptStatus::Dispatched { claim_by },
        observation: None,
        detail: None,
    });
    let mut method = method.clone();
    let given_up = task.moved.as_ref().and_then(|moved| moved.given_up);
    let given_up = given_up.map(|record| (GIVEN_UP.to_owned(), record.to_string()));
    method.parameters.extend(given_up);
    let host: &Host = &step.state.host;
    let dispatch = Dispatch {
        host_id: host.id,
        host: host.name.clone(),
        attempt: crate::AttemptId {
            operation_id: operation.id,
            number,
        },
        generation: operation.generation,
        kind: task.kind,
        workload: task.workload.clone(),
        method,
        claim_by,
    };
    step.dispatch(dispatch);
}

/// Attempts that nobody has claimed when their level or task is over never act.
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
