//! The clock may be set. If it goes back, what then lies in the future is pulled back, so that nothing waits for a day and nothing
//! that lies ahead is taken for evidence. If it goes forward, what was under way is not taken to be over because of that.

use crate::AttemptStatus;

use super::step::{after_ms, after_s};
use super::{CLAIM_WINDOW_S, DEADLINE_GRACE_MS, LEASE_MS, MAX_BUDGET_MS, Step};

/// No moment of the past lies after now, and no deadline further ahead than it can have been set. Changes nothing while the
/// clock runs forwards.
pub(super) fn adjust(step: &mut Step) {
    let now = step.now;
    let last_deadline = after_ms(now, MAX_BUDGET_MS + DEADLINE_GRACE_MS);
    let host = &mut step.state.host;
    host.failure_since = host.failure_since.map(|at| at.min(now));
    host.fenced_at = host.fenced_at.map(|at| at.min(now));
    host.failure_observed_at = host.failure_observed_at.map(|at| at.min(now));
    if let Some(boot) = &mut host.boot {
        boot.observed_at = boot.observed_at.min(now);
    }
    let last_decided = host.updated_at;
    // Whether it was over when the clock was set, nobody knows.
    let set_at = step.state.clock_set_at.filter(|at| *at > last_decided);
    for f in &mut host.in_flight {
        if let Some(at) = set_at.filter(|_| f.until > last_decided) {
            f.until = f.until.max(after_ms(at, MAX_BUDGET_MS + DEADLINE_GRACE_MS));
        }
        f.until = f.until.min(last_deadline);
    }
    let Some(operation) = step.state.operation.as_mut().filter(|o| o.status.is_live()) else {
        return;
    };
    for proof in &mut operation.proofs {
        proof.observed_at = proof.observed_at.min(now);
    }
    let last_restart = after_s(now, operation.restart_delay_s);
    operation.restart_at = operation.restart_at.map(|at| at.min(last_restart));
    if let Some(evacuation) = &mut operation.evacuation {
        evacuation.held_since = evacuation.held_since.map(|at| at.min(now));
    }
    for stage in &mut operation.stages {
        stage.entered_at = stage.entered_at.map(|at| at.min(now));
    }
    for task in operation.tasks_mut() {
        task.level_started_at = task.level_started_at.map(|at| at.min(now));
        for attempt in &mut task.attempts {
            attempt.started_at = attempt.started_at.min(now);
            match &mut attempt.state {
                AttemptStatus::Dispatched { claim_by } => {
                    *claim_by = (*claim_by).min(after_s(now, CLAIM_WINDOW_S));
                }
                AttemptStatus::Claimed {
                    lease_until,
                    deadline,
                } => {
                    *deadline = (*deadline).min(last_deadline);
                    *lease_until = (*lease_until).min(after_ms(now, LEASE_MS)).min(*deadline);
                }
                AttemptStatus::Ended { ended_at, .. } | AttemptStatus::Cancelled { ended_at } => {
                    *ended_at = (*ended_at).min(now);
                }
            }
        }
    }
}
