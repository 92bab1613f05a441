//! An automatic fence: the segment wants a host fenced that has fallen silent.

use serde_json::json;

use crate::guard::{Guard, on};
use crate::{
    Cause, Condition, EventKind, FenceWork, FrozenPlan, Neighbourhood, Operation, OperationId,
    OperationStatus, Opinions, Reply, Safeguard, SufficientSet, Work, fence_due,
};

use super::conditions::unanswered;
use super::draft::after_ms;
use super::{AUTO_FENCE_AGAIN_MS, Draft, fence, held};

/// Who asks for it.
const BY: &str = "ringfence";

/// How the host would be fenced.
pub(super) struct Resolved {
    /// Or why no plan can be carried out.
    pub plan: Result<FrozenPlan, String>,
    /// What counts where none can.
    pub sufficient_sets: Vec<SufficientSet>,
}

/// Begins it, if it is due. If too much has failed at once, it begins by asking a person; if safeguards hold it, by waiting for them.
pub(super) fn auto_fence(
    draft: &mut Draft,
    id: OperationId,
    resolved: Resolved,
    around: &Neighbourhood,
    opinions: &Opinions,
) -> Reply {
    if fence_due(&draft.state).is_none_or(|due| due > draft.now) {
        return Reply::AlreadySo;
    }
    let cause = Cause::of_automatic(&draft.state.host);
    let holding = held::holding(draft, cause, around, opinions);
    // A person has said already that the host is to be left alone, or what is out of service may be what sees it: the storm brake asks when that is over.
    let is_left_alone = holding.iter().any(|ruling| {
        matches!(
            ruling.safeguard,
            Safeguard::Suspension | Safeguard::Condition | Safeguard::Sight
        )
    });
    let brake = brake(draft, around).filter(|_| !is_left_alone);
    let is_free = brake.is_none() && holding.is_empty();
    let mut operation = new_operation(draft, id, resolved, cause);
    if is_free && let Work::Fence(fence) = &mut operation.work {
        fence.permits = held::permits(draft, around, opinions);
        fence.allowed_until = held::allowed_until(draft, around, opinions);
    }
    fence::supersede(draft);
    draft.begin(operation);
    if let Some(why) = brake {
        ask(draft, &why);
    } else if !is_free {
        held::hold(draft, holding);
    }
    Reply::Started(id)
}

/// Why a person is asked first, where too much has failed at once.
pub(super) fn brake(draft: &Draft, around: &Neighbourhood) -> Option<String> {
    let why = draft.state.policy.fencing.brake(around);
    why.filter(|_| on(Guard::StormBrake))
}

/// Without a plan, the host's own watchdog or a person can prove it still.
fn new_operation(draft: &Draft, id: OperationId, resolved: Resolved, cause: Cause) -> Operation {
    let mut operation = match resolved.plan {
        Ok(plan) => fence::new_operation(draft, id, plan, reason(draft), BY),
        Err(fault) => without_plan(draft, id, &fault, resolved.sufficient_sets),
    };
    if let Work::Fence(fence) = &mut operation.work {
        fence.cause = cause;
    }
    operation
}

fn without_plan(
    draft: &Draft,
    id: OperationId,
    fault: &str,
    sufficient_sets: Vec<SufficientSet>,
) -> Operation {
    let work = Work::Fence(FenceWork::new(None, sufficient_sets));
    let generation = draft.state.host.generation.next();
    let reason = format!("{}; {fault}", reason(draft));
    Operation {
        stages: fence::after_fenced(&draft.state).into_iter().collect(),
        ..draft.operation(id, work, generation, reason, BY)
    }
}

fn reason(draft: &Draft) -> String {
    let host = &draft.state.host;
    if let (Cause::Condition, Some((source, name, condition))) = (Cause::of_automatic(host), unanswered(host))
    {
        let Condition {
            status,
            since,
            reason,
            ..
        } = condition;
        let since = since.format("%FT%TZ");
        return format!(
            "the condition {name} of the host has been {status} since {since} (reported by {source}): {reason}"
        );
    }
    let source = host.failure_source.as_deref().unwrap_or("an observer");
    let since = host.failure_since.unwrap_or(draft.now).format("%FT%TZ");
    format!("the host has been UNREACHABLE since {since} (seen by {source})")
}

/// Nothing of it begins until a person says so: the segment's restarts are for what was tried.
pub(super) fn ask(draft: &mut Draft, brake: &str) {
    let Some(operation) = draft.state.operation.as_mut() else {
        return;
    };
    if let Work::Fence(fence) = &mut operation.work {
        fence.is_held_by_brake = true;
    }
    draft.state.host.braked_at = Some(draft.now);
    operation.status = OperationStatus::NeedsOperator;
    operation.updated_at = draft.now;
    operation.detail =
        format!("{brake}; look why, then retry this operation to fence the host, or cancel it");
    let data = json!({
        "operation_id": operation.id,
        "kind": operation.kind(),
        "generation": operation.generation,
        "detail": operation.detail,
        "is_held_by_brake": true,
    });
    draft.event(EventKind::OperationNeedsOperator, data);
}

/// Asks to be ticked when it is due, and again until a plan is found.
pub(super) fn watch(draft: &mut Draft) {
    if let Some(due) = fence_due(&draft.state) {
        let again = after_ms(draft.now, AUTO_FENCE_AGAIN_MS);
        draft.wake(if due > draft.now { due } else { again });
    }
}
