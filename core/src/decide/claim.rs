//! A worker asks before it acts (S5), and shows that it is alive while it does.

use crate::guard::{Guard, on};
use crate::{
    AppliedFencing, Attempt, AttemptStatus, Claim, EventKind, Executor, Executors, Fence, FencingKind,
    FrozenMethod, Host, InFlight, Operation, OperationStatus, Refusal, Reply, StepKind, Task, TaskKind,
    TaskStatus, Timestamp, Undoing,
};

use super::draft::{after_ms, after_s, ms_until};
use super::{
    CLAIM_WINDOW_S, DEADLINE_GRACE_MS, DEVICE_WAIT_S, Draft, LEASE_MS, MAX_BUDGET_MS, MAX_LINGER_S,
    evacuation, kdump, pause,
};

fn lets_go(claim: &Claim) -> bool {
    matches!(claim.kind, TaskKind::Step(step) if step.lets_go())
}

/// An attempt says which workloads may be let go, by what was proven when it was sent.
fn require_what_was_proven(draft: &Draft, claim: &Claim, attempt: &Attempt) -> Result<(), Refusal> {
    let host = &draft.state.host;
    let ended = host.good_fence().and_then(Fence::ended);
    let is_less = ended.is_some_and(|ended| ended.at >= attempt.started_at);
    if lets_go(claim) && host.backend.starts_by_itself() && is_less && on(Guard::StepKnowsWhatIsProven) {
        return Err(refuse(claim, "less is proven of the host than when it was sent"));
    }
    Ok(())
}

pub(super) fn claim(draft: &mut Draft, claim: &Claim) -> Result<Reply, Refusal> {
    let (task, attempt) = find(draft, claim)?;
    match attempt.state {
        // A late claim is still in time: the attempt was not given up yet, and its message may be the only one.
        AttemptStatus::Dispatched { .. } => {}
        AttemptStatus::Claimed { deadline, .. } => return granted_before(draft, claim, attempt, deadline),
        AttemptStatus::Ended { .. } | AttemptStatus::Cancelled { .. } if on(Guard::EndedIsNotClaimed) => {
            return Err(refuse(claim, "it has ended"));
        }
        AttemptStatus::Ended { .. } | AttemptStatus::Cancelled { .. } => {}
    }
    require_what_was_proven(draft, claim, attempt)?;
    let is_in_use = task.status == TaskStatus::Running && task.uses(attempt);
    if !is_in_use && on(Guard::ClaimOfTaskInUse) {
        return Err(refuse(claim, "its task goes on without it"));
    }
    let opposite = draft.state.host.opposite_in_flight(claim.kind, draft.now);
    if opposite.is_some() && on(Guard::ClaimWaitsForOpposite) {
        return Err(refuse(claim, "the opposite of its task may still be running"));
    }
    if draft
        .live()
        .is_some_and(|live| kdump::holds(draft, live, claim.kind).is_some())
    {
        return Err(refuse(claim, "the host writes a crash dump"));
    }
    if claim.kind == StepKind::Move && !evacuation::may_move(draft) && on(Guard::ClaimOfMoveNeedsGate) {
        return Err(refuse(claim, "the evacuate gate is closed"));
    }
    if claim.kind == FencingKind::PowerOn && evacuation::is_expected(draft) && on(Guard::ClaimOfPowerWaits) {
        return Err(refuse(
            claim,
            "the host's workloads are to be started elsewhere first",
        ));
    }
    grant(draft, claim)
}

/// The device is busy with another command: the attempt may wait longer for its claim.
pub(super) fn device_busy(draft: &mut Draft, claim: &Claim) -> Result<Reply, Refusal> {
    let (_, attempt) = find(draft, claim)?;
    let limit = after_s(attempt.started_at, DEVICE_WAIT_S);
    let longer = after_s(draft.now, CLAIM_WINDOW_S).min(limit);
    match &mut attempt_mut(draft, claim)?.state {
        AttemptStatus::Dispatched { claim_by } => {
            *claim_by = longer.max(*claim_by);
            Ok(Reply::Done)
        }
        AttemptStatus::Claimed { .. } | AttemptStatus::Ended { .. } | AttemptStatus::Cancelled { .. } => {
            Err(refuse(claim, "it waits for no device"))
        }
    }
}

pub(super) fn renew(draft: &mut Draft, claim: &Claim) -> Result<Reply, Refusal> {
    let now = draft.now;
    let (_, attempt) = find(draft, claim)?;
    if attempt.claim_id != Some(claim.claim_id) {
        return Err(refuse(claim, "another worker has claimed it"));
    }
    require_what_was_proven(draft, claim, attempt)?;
    // What was only followed until now must not be asked for anew.
    if lets_go(claim) && draft.state.host.is_back() && on(Guard::RenewalOfStepNeedsFence) {
        return Err(refuse(claim, "the host is back"));
    }
    match &mut attempt_mut(draft, claim)?.state {
        AttemptStatus::Claimed {
            lease_until,
            deadline,
        } if *lease_until > now && *deadline > now => {
            *lease_until = after_ms(now, LEASE_MS).min(*deadline);
            Ok(Reply::Granted {
                budget_ms: ms_until(now, *deadline).saturating_sub(DEADLINE_GRACE_MS),
                lease_ms: LEASE_MS,
            })
        }
        AttemptStatus::Claimed { .. } => Err(refuse(claim, "its lease has run out")),
        AttemptStatus::Dispatched { .. } | AttemptStatus::Ended { .. } | AttemptStatus::Cancelled { .. } => {
            Err(refuse(claim, "it is not being worked on"))
        }
    }
}

/// The attempt that the claim names, if everything that the claim says of it is right.
fn find<'a>(draft: &'a Draft, claim: &Claim) -> Result<(&'a Task, &'a Attempt), Refusal> {
    let operation = live_of(draft, claim)?;
    let (task, attempt) = operation
        .find(claim.attempt)
        .ok_or_else(|| refuse(claim, "there is no such attempt"))?;
    if task.kind() != claim.kind {
        return Err(refuse(claim, "it belongs to another task"));
    }
    Ok((task, attempt))
}

fn live_of<'a>(draft: &'a Draft, claim: &Claim) -> Result<&'a Operation, Refusal> {
    if claim.host_id != draft.state.host.id {
        return Err(refuse(claim, "it belongs to another host"));
    }
    let operation = draft
        .live()
        .filter(|live| live.id == claim.attempt.operation_id)
        .ok_or_else(|| refuse(claim, "its operation has ended"))?;
    if operation.generation != claim.generation {
        return Err(refuse(claim, "it is of another generation"));
    }
    // Workloads are kept off the host while a person is asked for the rest, and nothing is done to a host that is suspended.
    let is_kept_off = claim.kind == StepKind::Isolate && !pause::stands_still(draft, operation);
    let may_go_on = operation.status == OperationStatus::Running || is_kept_off;
    if !may_go_on {
        return Err(refuse(claim, "its operation stands still"));
    }
    Ok(operation)
}

fn attempt_mut<'a>(draft: &'a mut Draft, claim: &Claim) -> Result<&'a mut Attempt, Refusal> {
    draft
        .state
        .operation
        .as_mut()
        .and_then(|operation| {
            operation
                .tasks_mut()
                .flat_map(|task| &mut task.attempts)
                .find(|a| a.number == claim.attempt.number)
        })
        .ok_or_else(|| refuse(claim, "there is no such attempt"))
}

/// A claim that is asked again gets the answer that it got first, which may have been lost.
fn granted_before(
    draft: &Draft,
    claim: &Claim,
    attempt: &Attempt,
    deadline: Timestamp,
) -> Result<Reply, Refusal> {
    let is_its =
        attempt.claim_id == Some(claim.claim_id) && attempt.worker.as_deref() == Some(claim.worker.as_str());
    if !is_its && on(Guard::ClaimOnce) {
        return Err(refuse(claim, "another worker has claimed it"));
    }
    let budget_ms = ms_until(draft.now, deadline).saturating_sub(DEADLINE_GRACE_MS);
    if budget_ms == 0 {
        return Err(refuse(claim, "its deadline has passed"));
    }
    Ok(Reply::Granted {
        budget_ms,
        lease_ms: LEASE_MS,
    })
}

fn grant(draft: &mut Draft, claim: &Claim) -> Result<Reply, Refusal> {
    let now = draft.now;
    let host = &mut draft.state.host;
    let operation = draft.state.operation.as_mut();
    let (operation, index) = operation
        .and_then(|operation| {
            let is_its = |t: &Task| t.attempts.iter().any(|a| a.number == claim.attempt.number);
            let index = operation.tasks().position(is_its)?;
            Some((operation, index))
        })
        .ok_or_else(|| refuse(claim, "there is no such attempt"))?;
    operation.updated_at = now;
    let (mut tasks, executors) = operation.tasks_and_executors();
    let (budget_ms, executor) = tasks
        .nth(index)
        .and_then(|task| take(task, executors, claim, now))
        .ok_or_else(|| refuse(claim, "its method is not in the plan"))?;
    drop(tasks);
    let only_looks = operation
        .find(claim.attempt)
        .is_some_and(|(_, attempt)| attempt.only_looks());
    let lasts_ms = budget_ms + DEADLINE_GRACE_MS + u64::from(lingers_s(claim.kind, &executor)) * 1_000;
    host.in_flight.push(InFlight {
        attempt: claim.attempt,
        generation: claim.generation,
        kind: claim.kind,
        method: executor.method().map(|method| method.id),
        claim_id: Some(claim.claim_id),
        only_looks,
        until: after_ms(now, lasts_ms),
        lasts_ms: Some(lasts_ms),
    });
    if on(Guard::TakenIsNoted) {
        note_taken(host, claim, executor, now);
    }
    if claim.kind.releases() {
        draft.undo(&Undoing::Claimed {
            kind: claim.kind,
            generation: claim.generation,
        });
    }
    if claim.kind == StepKind::Move && !only_looks {
        tell_moving(draft, claim);
    }
    Ok(Reply::Granted {
        budget_ms,
        lease_ms: LEASE_MS,
    })
}

/// Seconds after the worker has stopped in which its device may still carry out what it was told. What only reads leaves nothing behind,
/// and what a backend may still do its driver tells.
pub(super) fn lingers_s(kind: TaskKind, executor: &Executor) -> u32 {
    let leaves_something = kind.takes() || kind.releases();
    if leaves_something && on(Guard::CommandLingers) {
        executor.lingers_s().min(MAX_LINGER_S)
    } else {
        0
    }
}

fn tell_moving(draft: &mut Draft, claim: &Claim) {
    let host = &draft.state.host;
    let found = draft.live().and_then(|live| live.find(claim.attempt));
    let news = found.and_then(|(task, _)| evacuation::news(claim.attempt.operation_id, host, task));
    if let Some(news) = news {
        draft.event(EventKind::WorkloadMoving, news);
    }
}

fn note_taken(host: &mut Host, claim: &Claim, executor: Executor, now: Timestamp) {
    match (claim.kind, executor) {
        (TaskKind::Fencing(kind), Executor::Method { method, .. }) if kind.takes() => {
            note_standing(host, claim, (kind, method), now);
        }
        (TaskKind::Step(StepKind::Isolate | StepKind::MarkDown), Executor::Platform { .. }) => {
            host.applied.marked_down_by.get_or_insert(claim.attempt);
        }
        (TaskKind::Fencing(_) | TaskKind::Step(_), Executor::Method { .. } | Executor::Platform { .. }) => {}
    }
}

/// Compared as a whole: a method that was edited since may have meant another device then.
fn note_standing(
    host: &mut Host,
    claim: &Claim,
    (kind, method): (FencingKind, FrozenMethod),
    now: Timestamp,
) {
    let known = host
        .applied
        .fencing
        .iter_mut()
        .find(|s| s.kind == kind && s.method == method);
    match known {
        Some(standing) => {
            standing.by = standing.by.max(now);
            if on(Guard::ShownSinceClaim) {
                standing.is_shown = false;
            }
            if !on(Guard::StandingKeepsFirst) {
                standing.attempt = claim.attempt;
            }
        }
        None => {
            host.applied.fencing.push(AppliedFencing {
                kind,
                method,
                attempt: claim.attempt,
                by: now,
                is_shown: false,
            });
            // As they are listed everywhere, whichever device was taken first.
            host.applied
                .fencing
                .sort_by(|a, b| (a.kind, &a.method.name).cmp(&(b.kind, &b.method.name)));
        }
    }
}

/// Marks the attempt as claimed; gives its budget and the way in which it is made.
fn take(task: &mut Task, executors: Executors<'_>, claim: &Claim, now: Timestamp) -> Option<(u64, Executor)> {
    let attempt = task.attempts.iter().find(|a| a.number == claim.attempt.number)?;
    let executor = executors.executor_of(task, attempt)?;
    let times = executor.times();
    // Waiting for a worker or a free device is not the time of this method.
    let waited = now - attempt.started_at;
    let began_at = (task.begun_at.unwrap_or(now) + waited).min(now);
    task.begun_at = Some(began_at);
    let longest_ms = (u64::from(times.attempt_timeout_s) * 1_000).clamp(1_000, MAX_BUDGET_MS);
    let budget_ms = ms_until(now, after_s(began_at, times.timeout_s)).clamp(1_000, longest_ms);
    let deadline = after_ms(now, budget_ms + DEADLINE_GRACE_MS);
    let attempt = task
        .attempts
        .iter_mut()
        .find(|a| a.number == claim.attempt.number)?;
    attempt.worker = Some(claim.worker.clone());
    attempt.claim_id = Some(claim.claim_id);
    attempt.claimed_at = Some(now);
    attempt.state = AttemptStatus::Claimed {
        lease_until: after_ms(now, LEASE_MS).min(deadline),
        deadline,
    };
    Some((budget_ms, executor))
}

fn refuse(claim: &Claim, why: &'static str) -> Refusal {
    Refusal::Attempt {
        attempt: claim.attempt,
        why,
    }
}
