//! Attempts that wait in queue: workers take tasks from their queue, only not this one yet.
//!
//! In a storm there are more tasks than workers. An attempt that was given up for that would come again at the end of the queue, in
//! front of it a message that no worker may act on: the longer the queue, the less gets done.

use std::collections::BTreeSet;

use chrono::TimeDelta;

use crate::{Attempt, AttemptStatus, Executors, Queues, Task, TaskQueue, TaskStatus, Timestamp};

use crate::guard::{Guard, on};

use super::draft::after_s;
use super::{CLAIM_WINDOW_S, Draft, WAITS_IN_QUEUE_S, progress};

/// How often an attempt in a queue that moves is sent, about an hour in all.
const SENT_AT_MOST: usize = 12;

/// Lets unclaimed attempts wait while their queue moves, or while the broker is away, and has lost ones sent again. No method is charged
/// for that time.
pub(super) fn wait(draft: &mut Draft, queues: &Queues) {
    let now = draft.now;
    let Some(operation) = draft.state.operation.as_mut().filter(|o| o.status.is_live()) else {
        return;
    };
    let mut waits = false;
    let (running, executors) = operation.tasks_and_executors();
    for task in running.filter(|task| task.status == TaskStatus::Running) {
        for at in 0..task.attempts.len() {
            if let Some(unclaimed) = Unclaimed::of(&task.attempts[at]) {
                waits |= wait_with(task, at, (&unclaimed, executors), queues, now);
            }
        }
    }
    if waits {
        operation.updated_at = now;
    }
}

/// An attempt that no worker has claimed.
struct Unclaimed {
    /// When it was sent, or last put off.
    since: Timestamp,
    /// Until when it should have been claimed.
    claim_by: Timestamp,
}

impl Unclaimed {
    fn of(attempt: &Attempt) -> Option<Self> {
        let AttemptStatus::Dispatched { claim_by } = attempt.state else {
            return None;
        };
        Some(Self {
            since: claim_by - TimeDelta::seconds(i64::from(CLAIM_WINDOW_S)),
            claim_by,
        })
    }
}

/// Whether anything was done about it.
fn wait_with(
    task: &mut Task,
    at: usize,
    (unclaimed, executors): (&Unclaimed, Executors<'_>),
    queues: &Queues,
    now: Timestamp,
) -> bool {
    let is_late = unclaimed.claim_by <= now;
    match queues {
        Queues::There { began_at, .. }
            if began_at.is_some_and(|at_start| task.attempts[at].started_at < at_start) =>
        {
            send_again(task, at, now);
            true
        }
        Queues::There { moving, empty, .. } => {
            let queue = executors.queue_of(task, &task.attempts[at]).filter(|_| is_late);
            let is_in =
                |queues: &BTreeSet<TaskQueue>| queue.as_ref().is_some_and(|queue| queues.contains(queue));
            // Its message was lost, or a worker has it and waits for the device: a second one does no harm.
            if is_in(empty) && times_sent(task, at) == 1 {
                send_again(task, at, now);
                return true;
            }
            if is_in(moving) {
                wait_in_line(task, at, now);
            }
            is_in(moving)
        }
        Queues::Away if is_late => {
            progress::excuse(task, unclaimed.since, now);
            put_off(&mut task.attempts[at], now);
            true
        }
        Queues::Away => false,
    }
}

/// After [`WAITS_IN_QUEUE_S`] it is sent again although its queue moves, for its message may have been lost; after [`SENT_AT_MOST`] times that way nothing
/// more is to be expected of the queue.
fn wait_in_line(task: &mut Task, at: usize, now: Timestamp) {
    if now < after_s(task.attempts[at].started_at, WAITS_IN_QUEUE_S) {
        put_off(&mut task.attempts[at], now);
    } else {
        send_again(task, at, now);
    }
}

/// Has it sent again at once, unless it was sent [`SENT_AT_MOST`] times already: an attempt that was not claimed in time makes way for
/// another one.
fn send_again(task: &mut Task, at: usize, now: Timestamp) {
    if times_sent(task, at) < SENT_AT_MOST || !on(Guard::LineEnds) {
        progress::excuse(task, task.attempts[at].started_at, now);
    }
    task.attempts[at].state = AttemptStatus::Dispatched { claim_by: now };
}

/// How often the message of an attempt has been sent in this round without a claim.
fn times_sent(task: &Task, at: usize) -> usize {
    let method = task.attempts[at].by.method_id();
    let unclaimed = |attempt: &&Attempt| attempt.by.method_id() == method && attempt.claimed_at.is_none();
    task.round().iter().filter(unclaimed).count()
}

fn put_off(attempt: &mut Attempt, now: Timestamp) {
    attempt.state = AttemptStatus::Dispatched {
        claim_by: after_s(now, CLAIM_WINDOW_S),
    };
}
