//! A worker says how an attempt ended (S2, S4).

use serde_json::json;

use crate::guard::{Guard, on};
use crate::{
    AppliedFencing, Attempt, AttemptStatus, Claim, Executor, FailureState, Fence, FencingKind, Finding,
    FrozenMethod, Host, InFlight, MoveReport, ObservedState, Operation, Outcome, Reply, StepKind, Task,
    TaskKind, TaskResult, TaskWork, Timestamp,
};

use super::{Draft, MAX_LINGER_S, UNANSWERED_S, after_s, claim, evacuation, progress, proof};

/// Seconds after which a platform that could not be asked knows its hosts again: they report every 10 s by default, and are believed to be
/// down after 60.
const BACK_S: u32 = 60;

/// Counts only if it matches host, generation, task and attempt; any other goes on record and changes nothing (but that its
/// worker is known to have stopped).
pub(super) fn result(draft: &mut Draft, result: TaskResult) -> Reply {
    forget_stopped(draft, &result);
    match accept(draft, &result) {
        Ok(()) => Reply::Done,
        Err(why) => {
            draft.note(
                "result.ignored",
                json!({
                    "attempt": result.claim.attempt,
                    "generation": result.claim.generation,
                    "kind": result.claim.kind,
                    "worker": result.claim.worker,
                    "outcome": result.outcome,
                    "why": why,
                }),
            );
            Reply::Ignored(why)
        }
    }
}

fn accept(draft: &mut Draft, result: &TaskResult) -> Result<(), &'static str> {
    let now = draft.now;
    let claim = &result.claim;
    if claim.host_id != draft.state.host.id {
        return Err("it belongs to another host");
    }
    let Some(operation) = draft.state.operation.as_mut().filter(|o| o.status.is_live()) else {
        return Err("its operation has ended");
    };
    let is_other = operation.id != claim.attempt.operation_id || operation.generation != claim.generation;
    if is_other && on(Guard::ResultOfItsClaim) {
        return Err("it is of another operation or generation");
    }
    let is_just_back = is_just_back(operation, now);
    let silent_since = silent_since(&draft.state.host);
    let Some(task) = operation
        .tasks_mut()
        .find(|t| t.attempts.iter().any(|a| a.number == claim.attempt.number))
    else {
        return Err("there is no such attempt");
    };
    if task.kind() != claim.kind && on(Guard::ResultOfItsClaim) {
        return Err("it belongs to another task");
    }
    let wanted = task.kind().wanted_state();
    let Some(attempt) = task
        .attempts
        .iter_mut()
        .find(|a| a.number == claim.attempt.number)
    else {
        return Err("there is no such attempt");
    };
    let is_claimants =
        attempt.claim_id == Some(claim.claim_id) && attempt.worker.as_deref() == Some(claim.worker.as_str());
    if !is_claimants && on(Guard::ResultOfItsClaim) {
        return Err("another worker has claimed it");
    }
    let AttemptStatus::Claimed { lease_until, .. } = attempt.state else {
        return Err("it has ended");
    };
    let outcome = judge(result, wanted);
    attempt.state = AttemptStatus::Ended {
        outcome,
        ended_at: now,
    };
    attempt.observation.clone_from(&result.observation);
    attempt.was_away = match &result.finding {
        Some(Finding::Away) => outcome == Outcome::Unknown,
        Some(Finding::Move(_)) if was_gate_closed(attempt, silent_since) => outcome != Outcome::Confirmed,
        Some(Finding::Move(report)) => outcome == Outcome::Refused && report.no_room && is_just_back,
        Some(_) | None => false,
    };
    let was_away = attempt.was_away;
    attempt.detail = detail(result, outcome, wanted);
    let contradiction =
        proof::contradiction(claim.kind, attempt, &draft.state.host, draft.state.clock_set_at)
            .filter(|_| outcome == Outcome::Confirmed);
    if let Some(why) = contradiction {
        attempt.detail = Some(why.to_owned());
    }
    let tried = task.attempts.iter().find(|a| a.number == claim.attempt.number);
    let method = tried.and_then(|attempt| task.method_of(attempt)).cloned();
    if let Some(Finding::Move(report)) = &result.finding {
        note_move(task, report);
    }
    let off_until = off_until(task, draft.state.host.fence.as_ref());
    let late_since = if was_away {
        away_since(task, claim.attempt.number)
    } else {
        None
    };
    progress::excuse(task, late_since.unwrap_or(lease_until), now);
    operation.updated_at = now;
    if let Some(Finding::Workloads(found)) = result.finding.as_ref().filter(|_| outcome == Outcome::Confirmed)
    {
        match claim.kind {
            TaskKind::Step(StepKind::List) => evacuation::listed(operation, found.clone()),
            TaskKind::Step(StepKind::Empty) => evacuation::came_late(operation, found),
            TaskKind::Step(_) | TaskKind::Fencing(_) => {}
        }
    }
    if let Some(fence) = &mut draft.state.host.fence {
        fence.off_until = fence.off_until.max(off_until);
    }
    if let Some(method) = method.filter(|_| outcome == Outcome::Confirmed) {
        let proves = method.can_prove && result.observation.as_ref().is_some_and(|seen| seen.proves);
        note_shown(&mut draft.state.host, claim.kind, &method, proves);
    }
    if claim.kind == StepKind::MarkUp && outcome == Outcome::Confirmed {
        draft.state.host.applied.marked_down_by = None;
    }
    if outcome == Outcome::Refused {
        // The first attempt that might have taken it was refused, so there is nothing to release. Applied fencing of earlier attempts
        // stays.
        let host = &mut draft.state.host;
        host.applied.fencing.retain(|s| s.attempt != claim.attempt);
        host.applied
            .marked_down_by
            .take_if(|attempt| *attempt == claim.attempt);
    }
    Ok(())
}

/// Since when the host has been UNREACHABLE without a gap.
fn silent_since(host: &Host) -> Option<Timestamp> {
    let is_silent = host.failure_state == FailureState::Unreachable;
    host.failure_since.filter(|_| is_silent)
}

/// Whether the evacuate gate was closed at a moment of the attempt: a platform that asks Ringfence refuses every request then.
fn was_gate_closed(attempt: &Attempt, silent_since: Option<Timestamp>) -> bool {
    silent_since.is_none_or(|since| attempt.claimed_at.is_some_and(|claimed_at| claimed_at < since))
}

/// Whether the platform could not be asked a moment ago. For that long it may take no host for one that is up, and says that there is no
/// room.
fn is_just_back(operation: &Operation, now: Timestamp) -> bool {
    operation.attempts().any(|attempt| match attempt.state {
        AttemptStatus::Ended {
            outcome: Outcome::Unknown,
            ended_at,
        } => attempt.was_away && now < after_s(ended_at, BACK_S),
        AttemptStatus::Ended { .. }
        | AttemptStatus::Dispatched { .. }
        | AttemptStatus::Claimed { .. }
        | AttemptStatus::Cancelled { .. } => false,
    })
}

/// The device of this method has shown what it was told: it has taken something, or has released it.
fn note_shown(host: &mut Host, kind: TaskKind, method: &FrozenMethod, proves: bool) {
    let is_its = |s: &AppliedFencing| s.method == *method || !on(Guard::ReleasedByItsMethod);
    host.applied
        .fencing
        .retain(|s| s.kind.undone_by().is_none_or(|undoing| kind != undoing) || !is_its(s));
    let mut taken = host.applied.fencing.iter_mut();
    if let Some(standing) = taken.find(|s| kind == s.kind && s.method == *method) {
        standing.is_shown = proves;
    }
}

/// The power of a host was switched on by this task, and nothing of it before: every device was read as off before its command. When the
/// first of these commands was allowed.
fn off_until(task: &Task, fence: Option<&Fence>) -> Option<Timestamp> {
    let first_claim = task
        .attempts
        .iter()
        .filter_map(|attempt| attempt.claimed_at)
        .min();
    let released_at = fence.and_then(Fence::power_released_at);
    if released_at != first_claim && on(Guard::OnWasTheFirst) {
        return None;
    }
    let level = task
        .methods_in_use()
        .filter(|_| task.kind() == FencingKind::PowerOn)?;
    let was_off = |attempt: &&Attempt| {
        let before = attempt.observation.as_ref().and_then(|seen| seen.before);
        attempt.outcome() == Some(Outcome::Confirmed)
            && (before == Some(ObservedState::Off) || !on(Guard::OnWasReadOff))
    };
    let allowed = level
        .iter()
        .map(|method| task.last_with(method).filter(was_off)?.claimed_at);
    allowed.collect::<Option<Vec<_>>>()?.into_iter().min()
}

/// The end of what was tried before an attempt whose platform was away: the time from then on is not the task's.
fn away_since(task: &Task, number: u32) -> Option<Timestamp> {
    let before = task.round().iter().take_while(|attempt| attempt.number != number);
    before.last().and_then(Attempt::ended_at).or(task.begun_at)
}

/// A later try may not know what an earlier one was told.
fn note_move(task: &mut Task, report: &MoveReport) {
    let TaskWork::Step(task) = &mut task.work else {
        return;
    };
    let known = task.moved.take().map(|known| *known).unwrap_or_default();
    task.moved = Some(Box::new(MoveReport {
        to: report.to.clone().or(known.to),
        state_after: report.state_after.or(known.state_after),
        request_id: report.request_id.clone().or(known.request_id),
        no_room: report.no_room,
        unanswered: report.unanswered,
        stuck: report.stuck.clone(),
        given_up: report.given_up.clone().or(known.given_up),
    }));
}

/// Only the result of the very claim says that its worker has stopped. What it has asked for without an answer may still come.
fn forget_stopped(draft: &mut Draft, result: &TaskResult) {
    let (now, claim) = (draft.now, &result.claim);
    let may_come = may_come_s(draft, result);
    let host = &mut draft.state.host;
    let is_it = |f: &InFlight| {
        claim.host_id == host.id
            && f.attempt == claim.attempt
            && f.generation == claim.generation
            && f.kind == claim.kind
            && (f.claim_id.is_none_or(|id| id == claim.claim_id) || !on(Guard::StoppedByItsClaim))
    };
    let Some(index) = host.in_flight.iter().position(is_it) else {
        return;
    };
    if may_come > 0 {
        let until = after_s(now, may_come);
        let known = &mut host.in_flight[index];
        if claim.kind == StepKind::Move {
            // It is told of when it has begun: that may be late in its time.
            known.until = until;
            known.lasts_ms = known.lasts_ms.map(|ms| ms.max(u64::from(may_come) * 1_000));
        } else {
            known.until = until.min(known.until);
        }
        return;
    }
    let stopped = host.in_flight.remove(index);
    host.is_over(&stopped, now);
}

/// Seconds for which what was asked for may still come true although the worker has stopped.
fn may_come_s(draft: &Draft, result: &TaskResult) -> u32 {
    let claim = &result.claim;
    if claim.kind == StepKind::Move {
        let is_open = matches!(&result.finding, Some(Finding::Move(report)) if report.unanswered);
        return if is_open { UNANSWERED_S } else { 0 };
    }
    if !claim.kind.takes() && !claim.kind.releases() {
        return 0;
    }
    let found = draft.live().and_then(|live| live.find(claim.attempt));
    let executors = draft.live().map(Operation::executors);
    let executor = executors
        .and_then(|executors| found.and_then(|(task, attempt)| executors.executor_of(task, attempt)));
    match result.outcome {
        Outcome::Refused => 0,
        // Read back: it has come true, unless what came true was an earlier command to the device, and this one comes yet.
        Outcome::Confirmed
            if is_read_back(result) && !comes_after_another(draft, claim, executor.as_ref()) =>
        {
            0
        }
        Outcome::Confirmed | Outcome::Unknown if !on(Guard::UnansweredMayCome) => 0,
        // Of an operation that is over the method is not at hand: the longest that its claim allows for holds.
        Outcome::Confirmed | Outcome::Unknown => {
            executor.map_or(MAX_LINGER_S, |executor| claim::lingers_s(claim.kind, &executor))
        }
    }
}

fn is_read_back(result: &TaskResult) -> bool {
    let wanted = result.claim.kind.wanted_state();
    result
        .observation
        .as_ref()
        .is_some_and(|seen| seen.state == wanted)
}

/// Whether what was read back may be the doing of an earlier command of the kind to this device: one that may still come true, or one by
/// which it was so before. A hand may undo the earlier one, in no order with what the device has yet to do.
fn comes_after_another(draft: &Draft, claim: &Claim, executor: Option<&Executor>) -> bool {
    let method = executor.and_then(Executor::method);
    let host = &draft.state.host;
    let is_of_kind = |f: &&InFlight| f.kind == claim.kind && f.until > draft.now;
    let in_flight = || host.in_flight.iter().filter(is_of_kind);
    let Some(own) = in_flight().find(|f| f.attempt == claim.attempt) else {
        return false;
    };
    let is_under_way = in_flight().any(|f| f.method == own.method && f.attempt != own.attempt);
    let is_its =
        |s: &AppliedFencing| method.map_or(Some(s.method.id) == own.method, |method| s.method == *method);
    let stood_before = |s: &AppliedFencing| claim.kind == s.kind && is_its(s) && s.attempt != own.attempt;
    (is_under_way || host.applied.fencing.iter().any(stood_before)) && on(Guard::SecondCommandLingers)
}

/// A success counts only with the wanted state read back, exactly.
fn judge(result: &TaskResult, wanted: ObservedState) -> Outcome {
    match result.outcome {
        Outcome::Confirmed
            if result.observation.as_ref().is_some_and(|o| o.state == wanted)
                || !on(Guard::WantedStateReadBack) =>
        {
            Outcome::Confirmed
        }
        Outcome::Confirmed | Outcome::Unknown => Outcome::Unknown,
        Outcome::Refused => Outcome::Refused,
    }
}

fn detail(result: &TaskResult, outcome: Outcome, wanted: ObservedState) -> Option<String> {
    if result.outcome == Outcome::Confirmed && outcome != Outcome::Confirmed {
        let shown = result
            .observation
            .as_ref()
            .map_or("nothing", |o| o.state.as_str());
        return Some(format!(
            "reported as confirmed, but {shown} was read back and {} was wanted",
            wanted.as_str()
        ));
    }
    (!result.detail.is_empty()).then(|| result.detail.clone())
}
