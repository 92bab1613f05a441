//! A worker says how an attempt ended (S2, S4).

use serde_json::json;

use crate::{
    Answer, AttemptStatus, Claim, Finding, FrozenMethod, InFlight, MoveReport, ObservedState, Outcome,
    Standing, Task, TaskKind, TaskResult,
};

use super::{Step, UNANSWERED_S, after_s, evacuation, progress};

/// Counts only if it matches host, generation, task and attempt; any other goes on record and changes nothing (but that its
/// worker is known to have stopped).
pub(super) fn result(step: &mut Step, result: TaskResult) -> Answer {
    forget_stopped(step, &result);
    match accept(step, &result) {
        Ok(()) => Answer::Done,
        Err(why) => {
            step.note(
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
            Answer::Ignored(why)
        }
    }
}

fn accept(step: &mut Step, result: &TaskResult) -> Result<(), &'static str> {
    let now = step.now;
    let claim = &result.claim;
    if claim.host_id != step.state.host.id {
        return Err("it belongs to another host");
    }
    let Some(operation) = step.state.operation.as_mut().filter(|o| o.status.is_live()) else {
        return Err("its operation has ended");
    };
    if operation.id != claim.attempt.operation_id || operation.generation != claim.generation {
        return Err("it is of another operation or generation");
    }
    let Some(task) = operation
        .tasks_mut()
        .find(|t| t.attempts.iter().any(|a| a.number == claim.attempt.number))
    else {
        return Err("there is no such attempt");
    };
    if task.kind != claim.kind {
        return Err("it belongs to another task");
    }
    let wanted = task.kind.wanted_state();
    let Some(attempt) = task
        .attempts
        .iter_mut()
        .find(|a| a.number == claim.attempt.number)
    else {
        return Err("there is no such attempt");
    };
    if attempt.claim_id != Some(claim.claim_id) || attempt.worker.as_deref() != Some(claim.worker.as_str()) {
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
    attempt.detail = detail(result, outcome, wanted);
    let method = method_of(task, claim.attempt.number);
    if let Some(Finding::Move(report)) = &result.finding {
        note_move(task, report);
    }
    progress::excuse(task, lease_until, now);
    operation.updated_at = now;
    if let Some(Finding::Workloads(found)) = result.finding.as_ref().filter(|_| is_listing(claim, outcome)) {
        evacuation::listed(operation, &step.state.host, found.clone());
    }
    if let Some(method) = method.filter(|_| outcome == Outcome::Confirmed) {
        let is_given_back = |s: &Standing| s.kind.undone_by() == Some(claim.kind) && s.method == method;
        step.state.host.standing.retain(|s| !is_given_back(s));
    }
    if outcome == Outcome::Refused {
        // The first that might have taken it was told no: there is nothing to give back. Whatever was tried before it stays.
        step.state
            .host
            .standing
            .retain(|s| s.attempt != Some(claim.attempt));
    }
    Ok(())
}

fn is_listing(claim: &Claim, outcome: Outcome) -> bool {
    claim.kind == TaskKind::WorkloadsList && outcome == Outcome::Confirmed
}

/// A later try may not know what an earlier one was told.
fn note_move(task: &mut Task, report: &MoveReport) {
    let known = task.moved.take().map(|known| *known).unwrap_or_default();
    task.moved = Some(Box::new(MoveReport {
        to: report.to.clone().or(known.to),
        request_id: report.request_id.clone().or(known.request_id),
        no_room: report.no_room,
        unanswered: report.unanswered,
        stuck: report.stuck.clone(),
        given_up: report.given_up.max(known.given_up),
    }));
}

/// Only the result of the very claim says that its worker has stopped. What it has asked for without an answer may still come.
fn forget_stopped(step: &mut Step, result: &TaskResult) {
    let (now, claim) = (step.now, &result.claim);
    let host = &mut step.state.host;
    let is_it = |f: &InFlight| {
        claim.host_id == host.id
            && f.attempt == claim.attempt
            && f.generation == claim.generation
            && f.kind == claim.kind
            && f.claim_id.is_none_or(|id| id == claim.claim_id)
    };
    let Some(index) = host.in_flight.iter().position(is_it) else {
        return;
    };
    let is_open = matches!(&result.finding, Some(Finding::Move(report)) if report.unanswered);
    if is_open && claim.kind == TaskKind::WorkloadsMove {
        host.in_flight[index].until = after_s(now, UNANSWERED_S);
        return;
    }
    let stopped = host.in_flight.remove(index);
    if stopped.kind.is_undoing() {
        host.given_back(now);
    }
}

fn method_of(task: &Task, number: u32) -> Option<FrozenMethod> {
    let attempt = task.attempts.iter().find(|a| a.number == number)?;
    let level = task.levels.get(attempt.level)?;
    level.iter().find(|m| m.id == attempt.method_id).cloned()
}

/// A success counts only with the wanted state read back, exactly.
fn judge(result: &TaskResult, wanted: ObservedState) -> Outcome {
    match result.outcome {
        Outcome::Confirmed if result.observation.as_ref().is_some_and(|o| o.state == wanted) => {
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
