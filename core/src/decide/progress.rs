//! How far a task is, method by method and level by level.

use chrono::TimeDelta;

use crate::guard::{Guard, on};
use crate::undoing::clearly_after;
use crate::{
    Attempt, AttemptStatus, Dispatch, EventKind, Executor, Executors, FencingKind, FencingTask, FrozenMethod,
    Host, Job, Operation, OperationKind, Outcome, ProofKind, StepKind, Task, TaskKind, TaskStatus, TaskWork,
    Timestamp, WorkloadStep,
};

use super::draft::{after_ms, after_s, before_s};
use super::{CLAIM_WINDOW_S, Draft, evacuation, proof};

/// Seconds between two looks at a move that another worker may have begun.
const LOOK_AGAIN_S: u32 = 5;
/// Seconds for which a platform that cannot be asked is asked again.
const AWAY_S: u32 = 3_600;
/// The pause between two questions to a platform that cannot be asked doubles so often.
const MAX_DOUBLINGS: u32 = 5;

/// Where one way of those in use stands.
enum ExecutorState {
    Confirmed,
    Open,
    Failed,
    /// Its next attempt is due then.
    Due(Timestamp),
}

/// Ends attempts whose claim, lease or deadline is overdue: their results are not known.
pub(super) fn expire(draft: &mut Draft) {
    let now = draft.now;
    let Some(operation) = draft.state.operation.as_mut().filter(|o| o.status.is_live()) else {
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
pub(super) fn watch(draft: &mut Draft) {
    let open = |attempt: &Attempt| overdue_at(attempt).map(|(at, _)| at);
    if let Some(at) = draft
        .live()
        .and_then(|live| live.attempts().filter_map(open).min())
    {
        draft.wake(at);
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
    task.begun_at = task.begun_at.map(|at| (at + late).min(now));
}

/// Does what is due for the tasks of one stage.
pub(super) fn run_stage(draft: &mut Draft, operation: &mut Operation, index: usize) {
    let at_once = operation.stages[index].at_once;
    let mut stage = std::mem::take(&mut operation.stages[index].tasks);
    let mut free = free_places(&stage, at_once);
    for task in &mut stage {
        if task.status == TaskStatus::Pending && free > 0 && may_begin(draft, task.kind()) {
            task.status = TaskStatus::Running;
            free -= 1;
        }
        if task.status != TaskStatus::Running {
            continue;
        }
        run_task(draft, operation, task);
        if task.status.is_over() {
            withdraw_unclaimed(task, draft.now);
            tell_end(draft, operation, task);
            free += 1;
        }
    }
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

/// How many more of a stage's tasks may begin. Where there is no limit, all have begun with their stage.
fn free_places(stage: &[Task], at_once: Option<u32>) -> usize {
    let limit = at_once.map_or(0, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let running = stage.iter().filter(|task| task.status == TaskStatus::Running);
    limit.saturating_sub(running.count())
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

/// The power that a fence may give back.
pub(super) enum PowerBack {
    /// Not within a fence: the task knows its devices.
    AsPlanned,
    /// The devices that were seen off, and those that may be off: they were commanded, and not read back.
    To {
        seen_off: Vec<FrozenMethod>,
        may_be_off: Vec<FrozenMethod>,
    },
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
            Some(seen_off) => PowerBack::To {
                seen_off: seen_off.to_vec(),
                may_be_off: may_be_off(host, seen_off),
            },
            None => PowerBack::No("power.off was not confirmed"),
        },
    }
}

/// Devices of the host's power that a fence has commanded, beside those that were seen off. A fence that went on to another level has left
/// them as they are.
pub(super) fn may_be_off(host: &Host, seen_off: &[FrozenMethod]) -> Vec<FrozenMethod> {
    let power = host
        .applied
        .fencing
        .iter()
        .filter(|one| one.kind == FencingKind::PowerOff);
    let methods = power.map(|one| &one.method);
    methods
        .filter(|method| !seen_off.contains(method))
        .cloned()
        .collect()
}

/// A task for each of these devices.
pub(super) fn switch_on_each(methods: Vec<FrozenMethod>) -> impl Iterator<Item = Task> {
    let tasks = methods.into_iter();
    tasks.map(|method| Task::fencing(FencingKind::PowerOn, vec![vec![method]]))
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
        if let Some(until) = evacuation::another_at_it(&draft.state.host, operation.id, task, draft.now) {
            draft.wake(until);
            if look(draft, operation, task, executors) {
                continue;
            }
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

fn state_of(task: &Task, executor: &Executor, begun_at: Timestamp, draft: &Draft) -> ExecutorState {
    let now = draft.now;
    let tries = || task.round().iter().filter(|attempt| executor.is_of(attempt));
    let Some(last) = tries().next_back() else {
        return ExecutorState::Due(begun_at.max(now));
    };
    let (outcome, ended_at) = match last.state {
        AttemptStatus::Dispatched { .. } | AttemptStatus::Claimed { .. } => return ExecutorState::Open,
        AttemptStatus::Cancelled { .. } => return ExecutorState::Due(now),
        AttemptStatus::Ended { outcome, ended_at } => (outcome, ended_at),
    };
    let times = executor.times();
    match outcome {
        Outcome::Confirmed if !must_be_read_again(task, last, draft) => ExecutorState::Confirmed,
        Outcome::Refused => ExecutorState::Failed,
        Outcome::Unknown if last.claimed_at.is_none() => {
            // The device was never asked: try until the method's time is up.
            if now < after_s(begun_at, times.timeout_s) {
                ExecutorState::Due(now)
            } else {
                ExecutorState::Failed
            }
        }
        Outcome::Confirmed | Outcome::Unknown => {
            let acted = tries().filter(|attempt| attempt.is_try()).count();
            let last_start = after_ms(begun_at, u64::from(times.timeout_s) * 700);
            let due = match Away::of(task) {
                Some(away) if away.since < before_s(now, AWAY_S) && on(Guard::LevelEnds) => {
                    return ExecutorState::Failed;
                }
                Some(away) => return ExecutorState::Due(after_ms(ended_at, away.pause_ms(times.pause_ms))),
                None => after_ms(ended_at, u64::from(times.pause_ms)),
            };
            let due = contradicted_until(task, draft).map_or(due, |until| due.max(until));
            let is_in_time = due < last_start || !on(Guard::LevelEnds);
            let may = u32::try_from(acted).is_ok_and(|acted| acted <= times.retries) && is_in_time;
            if may {
                ExecutorState::Due(due)
            } else {
                ExecutorState::Failed
            }
        }
    }
}

/// A platform that could not be asked the last few times. That costs no try.
struct Away {
    since: Timestamp,
    times: u32,
}

impl Away {
    fn of(task: &Task) -> Option<Self> {
        let claimed = task
            .round()
            .iter()
            .rev()
            .filter(|attempt| attempt.claimed_at.is_some());
        let away = claimed.take_while(|attempt| attempt.was_away);
        let started = away.map(|attempt| attempt.started_at);
        started.fold(None, |known: Option<Self>, started_at| {
            Some(Self {
                since: started_at,
                times: known.map_or(1, |known| known.times + 1),
            })
        })
    }

    /// It doubles.
    fn pause_ms(&self, first_ms: u32) -> u64 {
        let doublings = (self.times - 1).min(MAX_DOUBLINGS);
        u64::from(first_ms) << doublings
    }
}

/// Until when a reading would be contradicted by the sign of life that the host has given already: it is not made before.
fn contradicted_until(task: &Task, draft: &Draft) -> Option<Timestamp> {
    let says_stopped = task.kind().proof_kind().is_some_and(ProofKind::says_stopped);
    let is_counted = says_stopped && draft.state.host.current_fence().is_none();
    draft
        .state
        .host
        .sources
        .alive_by()
        .filter(|_| is_counted)
        .map(clearly_after)
}

/// The host was seen UP since, and what was read still has to count.
fn must_be_read_again(task: &Task, attempt: &Attempt, draft: &Draft) -> bool {
    draft.state.host.current_fence().is_none() && !proof::counts(task.kind(), attempt, &draft.state.host)
}

fn dispatch(draft: &mut Draft, operation: &mut Operation, task: &mut Task, executor: Executor) {
    let by = executor.name();
    let Some(job) = job(&draft.state.host, operation, task, executor) else {
        return;
    };
    operation.last_attempt = operation.last_attempt.saturating_add(1);
    operation.updated_at = draft.now;
    let claim_by = after_s(draft.now, CLAIM_WINDOW_S);
    let number = operation.last_attempt;
    task.attempts.push(Attempt {
        number,
        by,
        started_at: draft.now,
        worker: None,
        claim_id: None,
        claimed_at: None,
        state: AttemptStatus::Dispatched { claim_by },
        was_away: false,
        observation: None,
        detail: None,
    });
    let host = &draft.state.host;
    let dispatch = Dispatch {
        host_id: host.id,
        host: host.name.clone(),
        attempt: crate::AttemptId {
            operation_id: operation.id,
            number,
        },
        generation: operation.generation,
        job,
        claim_by,
    };
    draft.dispatch(dispatch);
}

fn job(host: &Host, operation: &Operation, task: &Task, executor: Executor) -> Option<Job> {
    match (&task.work, executor) {
        (TaskWork::Fencing(fencing), Executor::Method { method, .. }) => Some(Job::Fencing {
            kind: fencing.kind,
            method,
        }),
        (TaskWork::Step(own), Executor::Platform { at, only_looks, .. }) => {
            let mut step = own.step.clone();
            if let WorkloadStep::Move(moving) = &mut step {
                moving.cut_off_by = evacuation::cut_off_by(host, operation);
                moving.given_up = own.moved.as_ref().and_then(|moved| moved.given_up.clone());
                moving.only_look = only_looks;
            }
            Some(Job::Step { step, at })
        }
        (TaskWork::Fencing(_), Executor::Platform { .. }) | (TaskWork::Step(_), Executor::Method { .. }) => {
            None
        }
    }
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
