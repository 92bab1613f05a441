//! What an observer saw.

use serde_json::json;

use crate::{
    Answer, Boot, EventKind, FailureState, OperationId, OperationKind, OperationStatus, Refusal, Timestamp,
};

use super::{Step, rejoin};

/// A report.
pub(super) struct Report {
    pub state: FailureState,
    pub source: String,
    pub observed_at: Timestamp,
    pub boot: Option<Boot>,
}

pub(super) fn failure_state(
    step: &mut Step,
    operation_id: OperationId,
    mut report: Report,
) -> Result<Answer, Refusal> {
    // A watch that is ahead must not shut out all others until the time that it shows.
    report.observed_at = report.observed_at.min(step.now);
    if let Some(boot) = &mut report.boot {
        boot.observed_at = boot.observed_at.min(step.now);
    }
    let host = &step.state.host;
    if let Some(known) = host
        .failure_observed_at
        .filter(|known| report.observed_at < *known)
    {
        return Err(Refusal::StaleObservation {
            given: report.observed_at,
            known,
        });
    }
    let changed = host.failure_state != report.state;
    record(step, report, changed);
    spend_proof(step);
    if changed {
        abort_if_up_before_anything_was_done(step);
    }
    // FENCED is committed, with its proofs, before the way back begins.
    if step.state.host.fenced_at.is_none_or(|at| at < step.now) {
        rejoin::by_itself(step, operation_id);
    }
    Ok(if changed { Answer::Done } else { Answer::AlreadySo })
}

fn record(step: &mut Step, report: Report, changed: bool) {
    let now = step.now;
    let host = &mut step.state.host;
    let before = host.failure_state;
    host.failure_state = report.state;
    host.is_silence_answered &= report.state != FailureState::Up;
    host.failure_observed_at = Some(report.observed_at);
    if changed || host.failure_since.is_none() {
        host.failure_since = Some(now);
    }
    if let Some(boot) = report.boot {
        host.boot = Some(boot);
    }
    let data = json!({ "from": before, "to": report.state, "source": report.source, "observed_at": report.observed_at });
    host.failure_source = Some(report.source);
    if changed {
        step.event(EventKind::HostFailureState, data);
    }
}

/// A host that had stopped for certain and is seen UP runs again: what proved that it had stopped says nothing of it any more,
/// even if it falls silent once more. Storage and network stay cut off whether it runs or not.
fn spend_proof(step: &mut Step) {
    let host = &mut step.state.host;
    let was_dead = host.is_fence_good() && !host.needs_boot;
    if !was_dead || !host.is_seen_back() {
        return;
    }
    host.proof_spent = true;
    let boot = host.boot.as_ref().and_then(|boot| boot.id.as_ref());
    let is_same_boot = boot.is_some() && boot == host.boot_at_fence.as_ref();
    let why = if is_same_boot {
        "the host was seen UP, in the boot from before the fence: what proved it may not tell the truth"
    } else {
        "the host was seen UP, so that it runs again"
    };
    let detail = json!({ "generation": host.generation, "source": host.failure_source, "same_boot": is_same_boot, "why": why });
    step.note("fence.proof_spent", detail);
}

/// A heartbeat that comes before any worker has acted stops the fence; one that comes later does not, since a fence that is half
/// done is worse than one that is whole.
fn abort_if_up_before_anything_was_done(step: &mut Step) {
    let is_idle_fence = step
        .live()
        .is_some_and(|live| live.kind == OperationKind::Fence && live.proofs.is_empty() && !live.has_acted());
    if step.state.host.failure_state == FailureState::Up && is_idle_fence {
        step.end(
            OperationStatus::Cancelled,
            "the host was seen UP before anything was done to it".to_owned(),
        );
    }
}
