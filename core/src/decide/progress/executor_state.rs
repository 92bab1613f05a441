//! Where one executor of a task stands: a method of its level, or the platform.

use crate::decide::draft::{after_ms, after_s, before_s};
use crate::decide::{Draft, proof};
use crate::guard::{Guard, on};
use crate::undoing::{clearly_after, dated_from};
use crate::{Attempt, AttemptStatus, Executor, Outcome, ProofKind, Task, Timestamp};

/// Seconds between two looks at a move that another worker may have begun.
pub(super) const LOOK_AGAIN_S: u32 = 5;

/// Seconds for which a platform that cannot be asked is asked again.
const AWAY_S: u32 = 3_600;

/// The pause between two questions to a platform that cannot be asked doubles so often.
const MAX_DOUBLINGS: u32 = 5;

/// Where one way of those in use stands.
pub(super) enum ExecutorState {
    Confirmed,
    Open,
    Failed,
    /// Its next attempt is due then.
    Due(Timestamp),
}

pub(super) fn state_of(
    task: &Task,
    executor: &Executor,
    begun_at: Timestamp,
    draft: &Draft,
) -> ExecutorState {
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
        Outcome::Refused if !last.was_away => ExecutorState::Failed,
        Outcome::Unknown if last.claimed_at.is_none() => {
            // The device was never asked: try until the method's time is up.
            if now < after_s(begun_at, times.timeout_s) {
                ExecutorState::Due(now)
            } else {
                ExecutorState::Failed
            }
        }
        Outcome::Confirmed | Outcome::Unknown | Outcome::Refused => {
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

/// Until when a reading would be contradicted by the sign of life that the host has given already, or by a clock that was set: it is not made
/// before.
fn contradicted_until(task: &Task, draft: &Draft) -> Option<Timestamp> {
    let says_stopped = task.kind().proof_kind().is_some_and(ProofKind::says_stopped);
    let is_counted = says_stopped && draft.state.host.current_fence().is_none();
    let alive_by = draft.state.host.sources.alive_by();
    let last = alive_by.max(draft.state.clock_set_at.map(dated_from));
    last.filter(|_| is_counted).map(clearly_after)
}

/// The host may have been alive since, and what was read still has to count.
fn must_be_read_again(task: &Task, attempt: &Attempt, draft: &Draft) -> bool {
    let host = &draft.state.host;
    host.current_fence().is_none()
        && proof::contradiction(task.kind(), attempt, host, draft.state.clock_set_at).is_some()
}
