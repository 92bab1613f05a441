//! What a source saw, and the verdict over all sources.

use serde_json::json;

use crate::guard::{Guard, on};
use crate::{
    EventKind, FailureState, OperationId, OperationKind, OperationStatus, Refusal, Reply, Report, Undoing,
};

use super::{Draft, rejoin};

pub(super) fn report(
    draft: &mut Draft,
    operation_id: OperationId,
    mut report: Report,
) -> Result<Reply, Refusal> {
    // A watch that is ahead must not shut out its own next report until the time that it shows.
    report.observed_at = report.observed_at.min(draft.now);
    report.last_seen_at = report.last_seen_at.map(|at| at.min(report.observed_at));
    report.silent_since = report.silent_since.map(|at| at.min(report.observed_at));
    if !draft.state.host.sources.takes(&report.source) {
        return Err(Refusal::TooManySources {
            source_name: report.source,
        });
    }
    let is_up = report.state == FailureState::Up;
    let given = report.observed_at;
    let now = draft.now;
    let clock_set_at = draft.state.clock_set_at;
    let taken = draft.state.host.sources.take(&report, clock_set_at, now);
    let alive_at = taken.map_err(|stale| Refusal::StaleObservation {
        given,
        known: stale.known,
    })?;
    if let Some(observed_at) = alive_at {
        let source = report.source;
        let has_ended_a_proof = draft.undo(&Undoing::SignOfLife { source, observed_at });
        draft.state.host.is_silence_answered &= !(is_up || has_ended_a_proof);
    }
    let changed = look(draft);
    // FENCED is committed, with its proofs, before the way back begins.
    let fenced_at = draft.state.host.fence.as_ref().map(|fence| fence.at);
    if fenced_at.is_none_or(|at| at < draft.now) {
        rejoin::by_itself(draft, operation_id);
    }
    Ok(if changed { Reply::Done } else { Reply::AlreadySo })
}

/// A person strikes off a source that reports no more.
pub(super) fn forget(draft: &mut Draft, source: &str, reason: &str, by: &str) -> Result<Reply, Refusal> {
    let host = &mut draft.state.host;
    let was_watching = host.sources.forget(source);
    let had_conditions = host.conditions.forget(source);
    if !was_watching && !had_conditions {
        return Err(Refusal::SourceUnknown {
            source_name: source.to_owned(),
        });
    }
    draft.note(
        "source.forgotten",
        json!({ "source": source, "reason": reason, "by": by }),
    );
    look(draft);
    Ok(Reply::Done)
}

/// Brings the failure state up to the verdict over all sources. `true` if it has changed.
pub(super) fn look(draft: &mut Draft) -> bool {
    let now = draft.now;
    let host = &mut draft.state.host;
    let seen = host.sources.seen(now);
    let (state, until) = (seen.state, seen.until);
    let source = seen.source.map(str::to_owned);
    let observed_at = seen.observed_at;
    let before = host.failure_state;
    let changed = before != state;
    if changed || host.failure_since.is_none() {
        host.failure_since = (observed_at.is_some() || changed).then_some(now);
    }
    host.failure_state = state;
    host.failure_source = source;
    host.failure_observed_at = observed_at;
    if let Some(until) = until {
        draft.wake(until);
    }
    if changed {
        let host = &draft.state.host;
        let data = json!({ "from": before, "to": state, "source": host.failure_source, "observed_at": host.failure_observed_at });
        draft.event(EventKind::HostFailureState, data);
        abort_if_up_before_anything_was_done(draft);
    }
    changed
}

/// A heartbeat that comes before any worker has acted stops the fence; one that comes later does not, since a fence that is half
/// done is worse than one that is whole.
fn abort_if_up_before_anything_was_done(draft: &mut Draft) {
    let is_idle_fence = draft.live().is_some_and(|live| {
        let is_for_silence = live.kind() == OperationKind::Fence && !live.is_for_a_condition();
        is_for_silence && live.proofs.is_empty() && !live.has_acted()
    });
    let is_up = draft.state.host.failure_state == FailureState::Up;
    if is_up && is_idle_fence && on(Guard::UpStopsIdleFence) {
        draft.end(
            OperationStatus::Cancelled,
            "the host was seen UP before anything was done to it".to_owned(),
        );
    }
}
