//! Attempts that wait in line: workers take tasks from their queue, only not this one yet.
//!
//! In a storm there are more tasks than workers. An attempt that was given up for that would come again at the end of the line, in
//! front of it a message that nobody is let act on: the longer the line, the less gets done.

use std::collections::BTreeSet;

use crate::{Attempt, AttemptStatus, Line, Task, TaskStatus, Timestamp};

use super::step::after_s;
use super::{CLAIM_WINDOW_S, IN_LINE_S, Step, progress};

/// Lets the unclaimed attempts whose queues are `moving` wait for their turn. After [`IN_LINE_S`] one is sent again all the same, for
/// its message may have been lost; none of that time is its method's.
pub(super) fn wait(step: &mut Step, moving: &BTreeSet<Line>) {
    let now = step.now;
    let Some(operation) = step.state.operation.as_mut().filter(|o| o.status.is_live()) else {
        return;
    };
    let mut waits = false;
    for task in operation
        .tasks_mut()
        .filter(|task| task.status == TaskStatus::Running)
    {
        let overdue: Vec<usize> = (0..task.attempts.len())
            .filter(|at| is_in_line(task, &task.attempts[*at], moving, now))
            .collect();
        for at in overdue {
            waits = true;
            let sent_at = task.attempts[at].started_at;
            if now < after_s(sent_at, IN_LINE_S) {
                let claim_by = after_s(now, CLAIM_WINDOW_S);
                task.attempts[at].state = AttemptStatus::Dispatched { claim_by };
            } else {
                progress::excuse(task, sent_at, now);
            }
        }
    }
    if waits {
        operation.updated_at = now;
    }
}

fn is_in_line(task: &Task, attempt: &Attempt, moving: &BTreeSet<Line>, now: Timestamp) -> bool {
    let AttemptStatus::Dispatched { claim_by } = attempt.state else {
        return false;
    };
    let methods = task.levels.get(attempt.level).into_iter().flatten();
    let mut own = methods.filter(|method| method.id == attempt.method_id);
    claim_by <= now
        && own.any(|method| {
            moving.contains(&Line {
                resource: task.kind.resource(),
                zone: method.zone.clone(),
            })
        })
}
