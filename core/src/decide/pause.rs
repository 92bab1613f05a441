//! A suspended host: what was asked for before stands still between two steps, and goes on where it stood.

use serde_json::json;

use crate::guard::{Guard, on};
use crate::{
    Actor, AttemptStatus, EventKind, Held, Operation, OperationStatus, Refusal, Reply, Ruling, Suspension,
    TaskStatus, Timestamp,
};

use super::{Draft, progress};

/// Suspends the host, or gives its suspension another end: what was asked for until now stands still.
pub(super) fn suspend(draft: &mut Draft, until: Option<Timestamp>, reason: String, actor: &Actor) -> Reply {
    let suspension = Suspension {
        since: draft.now,
        until,
        by: actor.name.clone(),
        reason,
    };
    let known = draft.state.host.suspension.clone();
    let is_known = known.is_some_and(|known| {
        let since = suspension.since;
        Suspension { since, ..known } == suspension
    });
    if is_known {
        return Reply::AlreadySo;
    }
    draft.event(EventKind::HostSuspended, json!(suspension));
    draft.state.host.suspension = Some(suspension);
    Reply::Done
}

/// Ends the suspension of the host.
pub(super) fn resume(draft: &mut Draft, reason: &str, actor: &Actor) -> Reply {
    if draft.state.host.suspension.take().is_none() {
        return Reply::AlreadySo;
    }
    let data = json!({ "by": actor.name, "reason": reason });
    draft.event(EventKind::HostResumed, data);
    Reply::Done
}

/// A person wants the live operation: no suspension that is in force holds it any more. `true` if one did, and it goes on where it stood.
pub(super) fn wanted(draft: &mut Draft, why: &str) -> bool {
    let is_paused = draft.live().is_some_and(|live| live.paused.is_some());
    if is_paused {
        holds_no_more(draft);
        go_on(draft, why);
    }
    is_paused
}

/// A person has asked for the live operation during the suspensions that are in force.
pub(super) fn holds_no_more(draft: &mut Draft) {
    let despite = draft
        .state
        .suspensions(draft.now)
        .map(|(_, one)| one.since)
        .collect();
    if let Some(operation) = draft.state.operation.as_mut() {
        operation.despite = despite;
    }
}

/// The live operation was asked for before its engine lost the database, and goes on standing still for what it stood still for.
pub(super) fn began_anew(draft: &mut Draft, despite: Vec<Timestamp>) {
    if let Some(operation) = draft
        .state
        .operation
        .as_mut()
        .filter(|_| on(Guard::RecordKeepsDespite))
    {
        operation.despite = despite;
    }
}

/// Brings the live operation up to the suspensions of the host. `true` if it stands still.
pub(super) fn look(draft: &mut Draft) -> bool {
    forget_ended(draft);
    let Some(live) = draft.live() else { return false };
    let (status, is_paused, by) = (live.status, live.paused.is_some(), stopping(draft, live));
    match by {
        Some(by) if is_paused => look_on(draft, by),
        Some(by) if status == OperationStatus::Running => pause(draft, by),
        // It waits for an operator, and does not start again by itself.
        Some(_) => {}
        None if is_paused => {
            go_on(draft, "no suspension holds it any more");
            return false;
        }
        None => return false,
    }
    wake_at_ends(draft);
    status != OperationStatus::Held || is_paused
}

/// Whether something may begin by itself on the host; if not, it is looked at again at the end of a suspension.
pub(super) fn may_begin_by_itself(draft: &mut Draft) -> bool {
    wake_at_ends(draft);
    draft.state.suspensions(draft.now).next().is_none() || !on(Guard::SuspendedBeginsNothing)
}

/// What keeps an operation from beginning without a person's word.
pub(super) fn refuse_by_itself(draft: &Draft) -> Result<(), Refusal> {
    let suspension = draft.state.suspensions(draft.now).next();
    match suspension.filter(|_| on(Guard::SuspendedBeginsNothing)) {
        Some((scope, suspension)) => Err(Refusal::Suspended {
            why: suspension.ruling(scope).reason,
        }),
        None => Ok(()),
    }
}

fn wake_at_ends(draft: &mut Draft) {
    let ends: Vec<Timestamp> = draft
        .state
        .suspensions(draft.now)
        .filter_map(|(_, by)| by.until)
        .collect();
    ends.into_iter().for_each(|at| draft.wake(at));
}

fn forget_ended(draft: &mut Draft) {
    let now = draft.now;
    let Some(known) = &draft.state.host.suspension else {
        return;
    };
    if known.is_in_force(now) {
        // So that its end is told.
        if let Some(until) = known.until {
            draft.wake(until);
        }
        return;
    }
    draft.state.host.suspension = None;
    draft.event(
        EventKind::HostResumed,
        json!({ "by": "ringfence", "reason": "the suspension has reached its end" }),
    );
}

/// Whether a suspension holds the operation.
pub(super) fn stands_still(draft: &Draft, live: &Operation) -> bool {
    stopping(draft, live).is_some()
}

/// What holds the operation: a suspension that began after it was asked for last.
fn stopping(draft: &Draft, live: &Operation) -> Option<Ruling> {
    let mut all = draft.state.suspensions(draft.now);
    let found = all.find(|(_, suspension)| !live.despite.contains(&suspension.since));
    found
        .filter(|_| on(Guard::SuspendedStandsStill))
        .map(|(scope, suspension)| suspension.ruling(scope))
}

/// What no worker has claimed is withdrawn. What a worker is at ends by itself.
fn pause(draft: &mut Draft, by: Ruling) {
    let now = draft.now;
    let Some(operation) = draft.state.operation.as_mut() else {
        return;
    };
    for attempt in operation.tasks_mut().flat_map(|task| &mut task.attempts) {
        if matches!(attempt.state, AttemptStatus::Dispatched { .. }) {
            attempt.state = AttemptStatus::Cancelled { ended_at: now };
        }
    }
    operation.status = OperationStatus::Held;
    operation.detail = by.told();
    operation.updated_at = now;
    operation.paused = Some(Held {
        since: now,
        looked_at: now,
        by: vec![by.clone()],
    });
    let data = json!({
        "operation_id": operation.id,
        "kind": operation.kind(),
        "generation": operation.generation,
        "detail": operation.detail,
        "held_by": [by],
    });
    draft.event(EventKind::OperationHeld, data);
}

fn look_on(draft: &mut Draft, by: Ruling) {
    let now = draft.now;
    let Some(operation) = draft.state.operation.as_mut() else {
        return;
    };
    if let Some(paused) = operation
        .paused
        .as_mut()
        .filter(|paused| paused.by != [by.clone()])
    {
        operation.detail = by.told();
        operation.updated_at = now;
        paused.looked_at = now;
        paused.by = vec![by];
    }
}

fn go_on(draft: &mut Draft, why: &str) {
    let now = draft.now;
    let Some(operation) = draft.state.operation.as_mut() else {
        return;
    };
    resume_where_it_stood(operation, now);
    why.clone_into(&mut operation.detail);
    let data = json!({
        "operation_id": operation.id,
        "kind": operation.kind(),
        "generation": operation.generation,
        "detail": operation.detail,
    });
    draft.event(EventKind::OperationReleased, data);
}

/// The time for which it stood still is not the time of its methods, and what it waited for, it waits for anew.
fn resume_where_it_stood(operation: &mut Operation, now: Timestamp) {
    let Some(paused) = operation.paused.take() else {
        return;
    };
    operation.status = OperationStatus::Running;
    operation.updated_at = now;
    for stage in operation
        .stages
        .iter_mut()
        .filter(|stage| stage.started_at.is_none())
    {
        stage.entered_at = None;
    }
    for task in operation
        .tasks_mut()
        .filter(|task| task.status == TaskStatus::Running)
    {
        progress::excuse(task, paused.since, now);
    }
    if let Some(evacuation) = operation.evacuation_mut() {
        evacuation.held_since = None;
    }
}
