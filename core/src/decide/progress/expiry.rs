//! Attempts whose time has run out.

use chrono::TimeDelta;

use crate::decide::Draft;
use crate::guard::{Guard, on};
use crate::{Attempt, AttemptStatus, Outcome, Task, Timestamp};

/// Ends attempts whose claim, lease or deadline is overdue: their results are not known.
pub(in crate::decide) fn expire(draft: &mut Draft) {
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
pub(in crate::decide) fn watch(draft: &mut Draft) {
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
pub(in crate::decide) fn excuse(task: &mut Task, due: Timestamp, now: Timestamp) {
    let late = (now - due).max(TimeDelta::zero());
    task.begun_at = task.begun_at.map(|at| (at + late).min(now));
}
