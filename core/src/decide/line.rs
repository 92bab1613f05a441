//! Attempts that wait in line: workers take tasks from their queue, only not this one yet.
//!
//! In a storm there are more tasks than workers. An attempt that was given up for that would come again at the end of the line, in
//! front of it a message that nobody is let act on: the longer the line, the less gets done.

use chrono::TimeDelta;

use crate::{Attempt, AttemptStatus, Line, Queues, Task, TaskStatus, Timestamp};

use crate::guard::{Guard, on};

use super::step::after_s;
use super::{CLAIM_WINDOW_S, IN_LINE_S, Step, progress};

/// How often an attempt in a line that moves is sent, about an hour in all.
const SENT_AT_MOST: usize = 12;

/// Lets the unclaimed attempts wait whose queues move, or which nobody can claim while the broker is away. None of that time is their
/// methods'.
pub(super) fn wait(step: &mut Step, queues: &Queues) {
    let now = step.now;
    let Some(operation) = step.state.operation.as_mut().filter(|o| o.status.is_live()) else {
        return;
    };
    let mut waits = false;
    for task in operation
        .tasks_mut()
        .filter(|task| task.status == TaskStatus::Running)
    {
        for at in 0..task.attempts.len() {
            let Some(since) = waits_since(&task.attempts[at], now) else {
                continue;
            };
            match queues {
                Queues::Moving(lines) => {
                    let moves = line_of(task, &task.attempts[at]).is_some_and(|line| lines.contains(&line));
                    if !moves {
                        continue;
                    }
                    wait_in_line(task, at, now);
                }
                Queues::Away => {
                    progress::excuse(task, since, now);
                    put_off(&mut task.attempts[at], now);
                }
            }
            waits = true;
        }
    }
    if waits {
        operation.updated_at = now;
    }
}

/// Since when an attempt that should have been claimed by now waits: it was sent then, or put off the last time.
fn waits_since(attempt: &Attempt, now: Timestamp) -> Option<Timestamp> {
    let AttemptStatus::Dispatched { claim_by } = attempt.state else {
        return None;
    };
    (claim_by <= now).then(|| claim_by - TimeDelta::seconds(i64::from(CLAIM_WINDOW_S)))
}

/// After [`IN_LINE_S`] it is sent again all the same, for its message may have been lost; after [`SENT_AT_MOST`] times that way nothing
/// more is to be expected of the line.
fn wait_in_line(task: &mut Task, at: usize, now: Timestamp) {
    let sent_at = task.attempts[at].started_at;
    if now < after_s(sent_at, IN_LINE_S) {
        put_off(&mut task.attempts[at], now);
    } else if times_sent(task, at) < SENT_AT_MOST || !on(Guard::LineEnds) {
        progress::excuse(task, sent_at, now);
    }
}

/// How often the message of an attempt has been sent in this round without a claim.
fn times_sent(task: &Task, at: usize) -> usize {
    let method = task.attempts[at].method_id;
    let unclaimed = |attempt: &&Attempt| attempt.method_id == method && attempt.claimed_at.is_none();
    task.round().iter().filter(unclaimed).count()
}

fn put_off(attempt: &mut Attempt, now: Timestamp) {
    attempt.state = AttemptStatus::Dispatched {
        claim_by: after_s(now, CLAIM_WINDOW_S),
    };
}

/// The queue that an attempt's message is in; none if its level has no such method any more.
fn line_of(task: &Task, attempt: &Attempt) -> Option<Line> {
    let methods = task.levels.get(attempt.level)?;
    let method = methods.iter().find(|method| method.id == attempt.method_id)?;
    Some(Line {
        resource: task.kind.resource(),
        zone: method.zone.clone(),
    })
}
