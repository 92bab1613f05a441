//! The clock may be set. If it goes back, what then lies in the future is pulled back, so that nothing waits for a day and nothing
//! that lies ahead is taken for evidence. If it goes forward, what was under way is not taken to be over because of that.

use crate::guard::{Guard, on};
use crate::{AttemptStatus, Ended, Host, InFlight, Operation, Proof, Timestamp, Work};

use super::draft::{after_ms, after_s};
use super::{CLAIM_WINDOW_S, DEADLINE_GRACE_MS, Draft, LEASE_MS, MAX_BUDGET_MS, MAX_LINGER_S};
use crate::undoing::{CLOCKS_APART, latest_wait};

/// No moment of the past lies after now, and no deadline further ahead than it can have been set. Changes nothing while the
/// clock runs forwards.
pub(super) fn adjust(draft: &mut Draft) {
    let now = draft.now;
    let set_at = draft.state.clock_set_at;
    adjust_host(&mut draft.state.host, set_at, now);
    if let Some(operation) = draft.state.operation.as_mut().filter(|o| o.status.is_live()) {
        adjust_operation(operation, set_at, now);
    }
}

/// The last moment at which anything can still come of an attempt that is claimed now.
fn last_effect(now: Timestamp) -> Timestamp {
    after_s(after_ms(now, MAX_BUDGET_MS + DEADLINE_GRACE_MS), MAX_LINGER_S)
}

/// Does this for an attempt that was claimed before: it gets no more time than it had in the beginning.
fn last_effect_of(f: &InFlight, now: Timestamp) -> Timestamp {
    f.lasts_ms
        .map_or_else(|| last_effect(now), |lasts_ms| after_ms(now, lasts_ms))
}

fn adjust_host(host: &mut Host, set_at: Option<Timestamp>, now: Timestamp) {
    host.failure_since = host.failure_since.map(|at| at.min(now));
    host.failure_observed_at = host.failure_observed_at.map(|at| at.min(now));
    host.sources.adjust(now);
    host.conditions.adjust(now);
    host.flapping.adjust(now);
    host.alarms.adjust(now);
    host.kdump.iter_mut().for_each(|kdump| kdump.adjust(now));
    host.braked_at = host.braked_at.map(|at| at.min(now));
    host.released_at = host.released_at.map(|at| at.min(now + CLOCKS_APART));
    host.last_off_at = host.last_off_at.map(|at| at.min(now + CLOCKS_APART));
    if let Some(fence) = &mut host.fence {
        fence.at = fence.at.min(now);
        fence
            .proofs
            .iter_mut()
            .for_each(|proof| adjust_proof(proof, set_at, now));
    }
    for standing in &mut host.applied.fencing {
        standing.by = standing.by.min(now + CLOCKS_APART);
    }
    let last_decided = host.updated_at;
    // Whether the attempt was over when the clock was set is not known.
    let set_at = set_at.filter(|at| *at > last_decided && on(Guard::ClockSetKeepsInFlight));
    for f in &mut host.in_flight {
        if let Some(at) = set_at.filter(|_| f.until > last_decided) {
            f.until = f.until.max(last_effect_of(f, at));
        }
        if on(Guard::ClockSetBackEndsInFlight) {
            // Another engine's clock may have written it down.
            f.until = f.until.min(last_effect_of(f, now) + CLOCKS_APART);
        }
    }
}

fn adjust_proof(proof: &mut Proof, set_at: Option<Timestamp>, now: Timestamp) {
    proof.observed_at = proof.observed_at.min(now);
    proof.read_at = adjust_reading(proof.read_at, set_at, now);
    proof.claimed_at = proof.claimed_at.map(|at| at.min(now));
    if let Some(Ended { at, .. }) = &mut proof.ended {
        *at = (*at).min(now);
    }
}

/// What lies clearly ahead is of the time before the clock was set: the older it counts, the less it proves.
fn adjust_reading(at: Timestamp, set_at: Option<Timestamp>, now: Timestamp) -> Timestamp {
    let set_at = set_at.filter(|set_at| *set_at <= now && at > now + CLOCKS_APART);
    at.min(set_at.unwrap_or(now))
}

fn adjust_operation(operation: &mut Operation, set_at: Option<Timestamp>, now: Timestamp) {
    let last_deadline = after_ms(now, MAX_BUDGET_MS + DEADLINE_GRACE_MS);
    operation
        .proofs
        .iter_mut()
        .for_each(|proof| adjust_proof(proof, set_at, now));
    let last_restart = after_s(now, operation.policy.restart_delay_s);
    operation.restart_at = operation.restart_at.map(|at| at.min(last_restart));
    if let Work::Fence(fence) = &mut operation.work {
        fence.adjust(now);
    }
    if let Some(evacuation) = operation.evacuation_mut() {
        evacuation.held_since = evacuation.held_since.map(|at| at.min(now));
    }
    for stage in &mut operation.stages {
        stage.entered_at = stage.entered_at.map(|at| at.min(now));
    }
    for task in operation.tasks_mut() {
        // One that is begun again waits until its reading can count.
        task.begun_at = task.begun_at.map(|at| at.min(latest_wait(now)));
        for attempt in &mut task.attempts {
            attempt.started_at = attempt.started_at.min(now);
            attempt.claimed_at = attempt.claimed_at.map(|at| adjust_reading(at, set_at, now));
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
