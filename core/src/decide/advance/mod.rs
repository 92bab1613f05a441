//! What has become due: expired attempts, proofs, stages, the end.

mod evacuation;
mod fence;
mod rejoin;
mod stages;
mod waits;

use serde_json::json;
use uuid::Uuid;

use super::draft::{after_ms, after_s};
use super::{Draft, auto_fence, conditions, pause, progress, retry};
use crate::{EventKind, InFlight, Operation, OperationId, OperationKind, OperationStatus, Work};

pub(super) fn advance(draft: &mut Draft) {
    forget_stopped(draft);
    conditions::look(draft);
    run(draft);
    if super::evacuation::by_itself(draft) {
        run(draft);
    }
    rejoin_when_back(draft);
    auto_fence::watch(draft);
    progress::watch(draft);
}

/// A host that was seen UP while its fence had still something to do is taken back when that is over.
fn rejoin_when_back(draft: &mut Draft) {
    if !super::rejoin::is_due(draft) {
        return;
    }
    // FENCED is committed, with its proofs, before the way back begins.
    if draft
        .state
        .host
        .fence
        .as_ref()
        .is_some_and(|fence| fence.at >= draft.now)
    {
        draft.wake(after_ms(draft.now, 1));
        return;
    }
    // Named by host and generation, so that no id has to come from outside with every tick.
    let host = &draft.state.host;
    let name = format!("rejoin after generation {}", host.generation);
    super::rejoin::by_itself(draft, OperationId(Uuid::new_v5(&host.id.0, name.as_bytes())));
    run(draft);
}

fn run(draft: &mut Draft) {
    progress::expire(draft);
    if pause::look(draft) {
        return;
    }
    let Some(kind) = draft.live().map(Operation::kind) else {
        return;
    };
    match kind {
        OperationKind::Fence => fence::go_on(draft),
        OperationKind::Rejoin => rejoin::go_on(draft),
        OperationKind::Evacuation => evacuation::go_on(draft),
    }
    restart_when_due(draft);
}

/// A worker whose deadline has passed has stopped by itself.
fn forget_stopped(draft: &mut Draft) {
    let now = draft.now;
    let host = &mut draft.state.host;
    let over: Vec<InFlight> = host.in_flight.extract_if(.., |f| f.until <= now).collect();
    for f in over {
        host.is_over(&f, f.until);
    }
    // A late clean-up of the list matters to no decision, but the list must not be kept for a host that nothing happens to.
    if let Some(until) = draft.state.host.in_flight.iter().map(|f| f.until).min() {
        draft.wake(until);
    }
}

fn restart_when_due(draft: &mut Draft) {
    let waiting = draft
        .live()
        .filter(|live| live.status == OperationStatus::NeedsOperator);
    let Some(restart_at) = waiting.and_then(|live| live.restart_at) else {
        return;
    };
    if restart_at > draft.now {
        draft.wake(restart_at);
        return;
    }
    retry::restart(draft, "started again by itself, as the segment says");
    run(draft);
}

fn set_detail(draft: &mut Draft, detail: String) {
    if let Some(operation) = draft.state.operation.as_mut() {
        operation.detail = detail;
    }
}

fn needs_operator(draft: &mut Draft, why: String) {
    let now = draft.now;
    let Some(operation) = draft.state.operation.as_mut() else {
        return;
    };
    operation.status = OperationStatus::NeedsOperator;
    operation.updated_at = now;
    if operation.restarts_left > 0 {
        operation.restarts_left -= 1;
        operation.restart_at = Some(after_s(now, operation.policy.restart_delay_s));
    } else if let Work::Fence(fence) = &mut operation.work {
        // It does nothing before a person has looked, and what that brings about is asked for.
        fence.permits.clear();
    }
    let data = json!({
        "operation_id": operation.id,
        "kind": operation.kind(),
        "generation": operation.generation,
        "detail": why,
        "restart_at": operation.restart_at,
    });
    operation.detail = why;
    draft.event(EventKind::OperationNeedsOperator, data);
}
