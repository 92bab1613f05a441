//! Starting a FENCED host's workloads elsewhere.
//!
//! The backend is told that the host is down, and asked what is on it. Each workload is then a task of its own, so that workers share
//! them and every one is claimed, tried and observed like any other task. At the end the backend is asked again: what it still has on
//! the host, and that no task is about yet, gets a task too.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::guard::{Guard, on};
use crate::{
    Actor, Attempt, EvacuationWork, FailureState, FencingKind, FencingTask, FrozenMethod, Gate, Host,
    HostState, InFlight, MAX_LISTED, MoveReport, MoveStep, Operation, OperationId, OperationKind,
    OperationStatus, Refusal, Reply, SegmentPolicy, Stage, StepKind, StepTask, Task, TaskStatus, TaskWork,
    Timestamp, Work, Workload, WorkloadState, WorkloadStep, gates,
};

use super::draft::{after_ms, after_s};
use super::{Draft, EVACUATION_HELD_S, MAX_LISTINGS, TAKE_OVER_MS, progress};
use crate::platform::can_be_evacuated;

/// The stage of what the fence has left to do: it goes on beside everything else.
pub(super) const BESIDE: usize = 0;

pub(super) fn evacuate(
    draft: &mut Draft,
    operation_id: OperationId,
    reason: String,
    actor: &Actor,
) -> Result<Reply, Refusal> {
    if let Some(live) = draft
        .live()
        .filter(|live| live.kind() == OperationKind::Evacuation)
    {
        return Ok(Reply::Joined(live.id));
    }
    let gate = gate(draft);
    if !gate.allowed {
        return Err(Refusal::GateClosed { reason: gate.reason });
    }
    if let Some(live) = draft.live().filter(|live| live.kind() == OperationKind::Rejoin) {
        return Err(Refusal::OperationLive {
            kind: live.kind(),
            id: live.id,
            status: live.status,
        });
    }
    let operation =
        new_operation(draft, operation_id, reason, &actor.name).ok_or(Refusal::BackendMissing {
            backend: draft.state.host.backend,
        })?;
    begin(draft, operation);
    Ok(Reply::Started(operation_id))
}

/// An evacuation that the segment wants, if it is due: FENCED is committed, and the fence has had time to end by itself.
pub(super) fn by_itself(draft: &mut Draft) -> bool {
    if !is_wanted(draft) {
        return false;
    }
    let Some(fenced_at) = draft.state.host.fence.as_ref().map(|fence| fence.at) else {
        return false;
    };
    let is_busy = |live: &Operation| {
        let mut tasks = live.tasks();
        tasks.any(|task| !task.status.is_over() && task.kind() != FencingKind::PowerOn)
    };
    let patience_ms = if draft.live().is_some_and(is_busy) {
        TAKE_OVER_MS
    } else {
        1
    };
    let due = after_ms(fenced_at, patience_ms);
    if due > draft.now {
        draft.wake(due);
        return false;
    }
    let host = &draft.state.host;
    let name = format!("evacuation of generation {}", host.generation);
    let id = OperationId(Uuid::new_v5(&host.id.0, name.as_bytes()));
    let Some(operation) = new_operation(draft, id, "the host is FENCED".to_owned(), "ringfence") else {
        return false;
    };
    begin(draft, operation);
    true
}

/// Once for each fence: one that a person has cancelled stays cancelled.
fn is_wanted(draft: &Draft) -> bool {
    is_expected(draft) && gate(draft).allowed
}

/// Whether an evacuation that the segment wants has yet to begin: at once, or as soon as it is known that the host is silent. Until it
/// is over the host must not start, since it would start again what is to be started elsewhere.
pub(super) fn is_expected(draft: &Draft) -> bool {
    let is_free = draft
        .live()
        .is_none_or(|live| live.kind() == OperationKind::Fence);
    let policy = draft.live().map_or(&draft.state.policy, |live| &live.policy);
    is_free && is_expected_by(&draft.state, policy)
}

/// Decides by the policy of a fence, which may be held apart from its host.
pub(super) fn is_expected_by(state: &HostState, policy: &SegmentPolicy) -> bool {
    let host = &state.host;
    let is_open = host.good_fence().is_some_and(|fence| !fence.is_evacuation_begun);
    policy.evacuation.automatic
        && is_open
        && host.failure_state != FailureState::Up
        && can_be_evacuated(state)
}

fn gate(draft: &Draft) -> Gate {
    gates(&draft.state, draft.now).evacuate
}

/// Whether one more workload may be started elsewhere at this moment.
pub(super) fn may_move(draft: &Draft) -> bool {
    gate(draft).allowed
}

/// The fence makes way with its proofs; what it was still doing goes on here.
fn begin(draft: &mut Draft, operation: Operation) {
    if draft.live().is_some() {
        super::proof::succeed(draft);
    }
    if let Some(fence) = &mut draft.state.host.fence {
        fence.is_evacuation_begun = true;
    }
    draft.begin(operation);
}

fn new_operation(draft: &Draft, id: OperationId, reason: String, requested_by: &str) -> Option<Operation> {
    if !can_be_evacuated(&draft.state) {
        return None;
    }
    let evacuation = &draft.state.policy.evacuation;
    let metadata_keys = vec![evacuation.metadata_key.clone(), evacuation.priority_key.clone()];
    let stages = vec![
        stage(left_by_the_fence(draft.live(), &draft.state.host)),
        stage(vec![Task::step(WorkloadStep::MarkDown)]),
        stage(vec![Task::step(WorkloadStep::List { metadata_keys })]),
    ];
    let generation = draft.state.host.generation;
    let work = Work::Evacuation(EvacuationWork::default());
    Some(Operation {
        stages,
        ..draft.operation(id, work, generation, reason, requested_by)
    })
}

pub(super) fn stage(tasks: Vec<Task>) -> Stage {
    Stage {
        delay_s: 0,
        at_once: None,
        awaits: None,
        entered_at: None,
        started_at: None,
        tasks,
    }
}

/// What is not over of a fence that is proven, to be done by attempts of its own. Power comes back only to devices that were seen off,
/// and when everything else is over; if that is still being tried, it stays for the rejoin.
fn left_by_the_fence(fence: Option<&Operation>, host: &Host) -> Vec<Task> {
    let Some(fence) = fence.filter(|live| live.kind() == OperationKind::Fence) else {
        return Vec::new();
    };
    let is_open = |task: &&Task| !task.status.is_over();
    // One of its kind that is over comes along without its attempts, which are the fence's: without it the others prove nothing.
    let is_over_beside = |task: &&Task| {
        let mut open = fence.tasks().filter(is_open);
        task.status.is_over() && open.any(|other| other.kind() == task.kind())
    };
    let left = fence.tasks().filter(|task| is_open(task) || is_over_beside(task));
    left.filter_map(|task| Some((task, task.as_fencing()?)))
        .flat_map(|(task, fencing)| taken_over(task, fencing, fence, host))
        .collect()
}

fn taken_over(task: &Task, fencing: &FencingTask, fence: &Operation, host: &Host) -> Vec<Task> {
    match fencing.kind {
        FencingKind::PowerOff | FencingKind::StorageFence | FencingKind::NetworkFence
            if task.status.is_over() =>
        {
            vec![Task {
                attempts: Vec::new(),
                first_attempt: 0,
                ..task.clone()
            }]
        }
        FencingKind::PowerOff | FencingKind::StorageFence | FencingKind::NetworkFence => {
            let work = TaskWork::Fencing(FencingTask {
                contradicted: 0,
                ..fencing.clone()
            });
            vec![Task {
                work,
                ..Task::fencing(fencing.kind, Vec::new())
            }]
        }
        // It had begun, and knows its devices.
        FencingKind::PowerOn if !fencing.levels.is_empty() => {
            vec![Task::fencing(fencing.kind, fencing.levels.clone())]
        }
        FencingKind::PowerOn => {
            let Some(seen_off) = fence.seen_off() else {
                return Vec::new();
            };
            let own = Task::fencing(fencing.kind, vec![seen_off.to_vec()]);
            let others = progress::switch_on_each(progress::may_be_off(host, seen_off));
            std::iter::once(own).chain(others).collect()
        }
        FencingKind::StorageUnfence | FencingKind::NetworkUnfence => Vec::new(),
    }
}

/// The backend has said what is on the host: workloads without a task get one, and a look follows after them.
pub(super) fn listed(operation: &mut Operation, found: Vec<Workload>) {
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
pub(super) fn cut_off_by(host: &Host, operation: &Operation) -> Vec<FrozenMethod> {
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
pub(super) fn open_spare(operation: &mut Operation) -> bool {
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

/// Tried again: the last look has to come after the last move.
pub(super) fn look_again(operation: &mut Operation) {
    if operation.kind() == OperationKind::Evacuation
        && let Some(list) = listing(operation)
    {
        operation.stages.push(stage(vec![again(&list)]));
    }
}

/// Until when another worker may still ask for the move: one that fell silent, or one of an earlier evacuation. A platform may take a
/// second request beside the first, and both would come to nothing.
pub(super) fn another_at_it(
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

/// Whether what was proven of the host has ended, so that nothing more of it may be started elsewhere.
pub(super) fn is_back(draft: &Draft) -> bool {
    let host = &draft.state.host;
    let is_starting = host.good_fence().is_none() && !is_started_by(draft.live());
    host.failure_state == FailureState::Up || is_starting
}

/// Whether the evacuation itself, with nothing left to move, has given the power back.
fn is_started_by(live: Option<&Operation>) -> bool {
    let last = live.and_then(|live| live.stages.last());
    let mut tasks = last.into_iter().flat_map(|stage| &stage.tasks);
    tasks.any(|task| task.kind() == FencingKind::PowerOn)
}

/// Ends the evacuation of a host that is back, once no worker is at it any more. `true` if there is nothing else to do now.
pub(super) fn stop_if_back(draft: &mut Draft) -> bool {
    if !is_back(draft) || !on(Guard::EvacuationEndsAtReturn) {
        return false;
    }
    let now = draft.now;
    let Some(operation) = draft.state.operation.as_mut() else {
        return true;
    };
    let is_at_it = |task: &Task| {
        let mut claimed = task.attempts.iter().filter(|attempt| attempt.is_open());
        task.kind() == StepKind::Move && claimed.any(|attempt| attempt.claimed_at.is_some())
    };
    if operation.tasks().any(is_at_it) {
        let detail = "the host is back; waiting for what is on its executor";
        if operation.detail != detail {
            detail.clone_into(&mut operation.detail);
            operation.updated_at = now;
        }
        return true;
    }
    let detail = format!("the host is back; {}", told(operation));
    draft.end(OperationStatus::Cancelled, detail);
    true
}

/// While no source can tell whether the host is silent, no move begins; but not for ever.
pub(super) fn hold(draft: &mut Draft) -> Option<String> {
    let is_open = may_move(draft);
    let now = draft.now;
    let is_starting = is_started_by(draft.live());
    let evacuation = draft.state.operation.as_mut()?.evacuation_mut()?;
    if is_open || is_starting {
        evacuation.held_since = None;
        return None;
    }
    let since = *evacuation.held_since.get_or_insert(now);
    let until = after_s(since, EVACUATION_HELD_S);
    if until <= now && on(Guard::HoldEnds) {
        evacuation.held_since = None;
        return Some(format!(
            "the gate has been closed for {EVACUATION_HELD_S} s: {}",
            gate(draft).reason
        ));
    }
    draft.wake(until);
    None
}

/// What could not be moved, or the backend that does not answer: why a person is needed.
pub(super) fn failed(operation: &Operation) -> Option<String> {
    let Work::Evacuation(evacuation) = &operation.work else {
        return None;
    };
    if evacuation.listings > MAX_LISTINGS {
        return Some(format!(
            "the host has new workloads each time that it is looked at; {}",
            told(operation)
        ));
    }
    let list = operation.tasks().filter(|task| task.kind() == StepKind::List);
    if let Some(list) = list.last().filter(|task| task.status == TaskStatus::Failed) {
        return Some(describe_list(list));
    }
    if evacuation.is_cut {
        return Some(format!(
            "{}; {MAX_LISTED} workloads stay on the host, and what is beyond them was not seen",
            told(operation)
        ));
    }
    let failed: Vec<String> = operation
        .moves()
        .into_iter()
        .filter(|task| task.status == TaskStatus::Failed)
        .map(describe)
        .collect();
    (!failed.is_empty()).then(|| format!("{}; not moved: {}", told(operation), failed.join("; ")))
}

fn describe_list(task: &Task) -> String {
    format!(
        "the backend does not tell what is left: {}",
        task.detail.as_deref().unwrap_or("no detail")
    )
}

fn describe(task: &Task) -> String {
    let name = task.workload().map_or("", |workload| workload.name.as_str());
    format!("{name} ({})", task.detail.as_deref().unwrap_or("no detail"))
}

/// How far it is, in words.
pub(super) fn told(operation: &Operation) -> String {
    let moves = operation.moves();
    let count = |status: TaskStatus| moves.iter().filter(|task| task.status == status).count();
    let (moved, left) = (count(TaskStatus::Confirmed), count(TaskStatus::Skipped));
    let mut told = format!("{moved} of {} workloads moved", moves.len() - left);
    if left > 0 {
        told.push_str(&format!(", {left} left where they are"));
    }
    let stopped = moves.iter().filter(|task| has_stopped(task)).count();
    if stopped > 0 {
        told.push_str(&format!(", {stopped} that ran do not run where they are now"));
    }
    told
}

/// Whether a workload that ran was moved and does not run.
fn has_stopped(task: &Task) -> bool {
    let ran = task
        .workload()
        .is_some_and(|workload| workload.state == WorkloadState::Running);
    let state_after = task.moved().and_then(|moved| moved.state_after);
    ran && task.status == TaskStatus::Confirmed
        && state_after.is_some_and(|state| state != WorkloadState::Running)
}

/// What is told of a workload that is being moved.
pub(super) fn news(operation_id: OperationId, host: &Host, task: &Task) -> Option<Value> {
    let workload = task.workload()?;
    let MoveReport {
        to,
        state_after,
        request_id,
        ..
    } = task.moved().cloned().unwrap_or_default();
    Some(json!({
        "operation_id": operation_id,
        "generation": host.generation,
        "workload": { "id": workload.id, "name": workload.name, "state": workload.state },
        "from": host.known_as(),
        "to": to,
        "state_after": state_after,
        "request_id": request_id,
        "detail": task.detail,
    }))
}
