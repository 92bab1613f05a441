//! A fence that nobody asked for: the segment wants a host fenced that has fallen silent.

use serde_json::json;

use crate::guard::{Guard, on};
use crate::{
    Answer, EventKind, FenceWork, FrozenPlan, Neighbourhood, Operation, OperationId, OperationStatus,
    SufficientSet, Work, fence_due,
};

use super::step::after_ms;
use super::{AUTO_FENCE_AGAIN_MS, Step, fence};

/// Who asks for it.
const BY: &str = "ringfence";

/// How the host would be fenced.
pub(super) struct Way {
    /// Or why no plan can be carried out.
    pub plan: Result<FrozenPlan, String>,
    /// What counts where none can.
    pub sufficient_sets: Vec<SufficientSet>,
}

/// Begins it, if it is due. If too much has failed at once, it begins by asking a person.
pub(super) fn auto_fence(step: &mut Step, id: OperationId, way: Way, around: Neighbourhood) -> Answer {
    if fence_due(&step.state).is_none_or(|due| due > step.now) {
        return Answer::AlreadySo;
    }
    let brake = step
        .state
        .policy
        .fencing
        .brake(around)
        .filter(|_| on(Guard::StormBrake));
    let operation = new_operation(step, id, way, brake.is_some());
    fence::supersede(step);
    step.begin(operation);
    if let Some(why) = brake {
        ask(step, &why);
    }
    Answer::Started(id)
}

/// Without a plan, the host's own watchdog or a person can prove it still.
fn new_operation(step: &Step, id: OperationId, way: Way, is_braked: bool) -> Operation {
    let mut operation = match way.plan {
        Ok(plan) => fence::new_operation(step, id, plan, reason(step), BY),
        Err(fault) => without_plan(step, id, &fault, way.sufficient_sets),
    };
    if let Work::Fence(fence) = &mut operation.work {
        fence.is_braked = is_braked;
    }
    operation
}

fn without_plan(step: &Step, id: OperationId, fault: &str, sufficient_sets: Vec<SufficientSet>) -> Operation {
    let work = Work::Fence(FenceWork {
        plan: None,
        sufficient_sets,
        is_braked: false,
    });
    let generation = step.state.host.generation.next();
    let reason = format!("{}; {fault}", reason(step));
    Operation {
        stages: fence::after_fenced(step).into_iter().collect(),
        ..step.draft(id, work, generation, reason, BY)
    }
}

fn reason(step: &Step) -> String {
    let host = &step.state.host;
    let source = host.failure_source.as_deref().unwrap_or("an observer");
    let since = host.failure_since.unwrap_or(step.now).format("%FT%TZ");
    format!("the host has been UNREACHABLE since {since} (seen by {source})")
}

/// Nothing of it begins until a person says so: the segment's restarts are for what was tried.
fn ask(step: &mut Step, brake: &str) {
    let Some(operation) = step.state.operation.as_mut() else {
        return;
    };
    operation.status = OperationStatus::NeedsOperator;
    operation.detail =
        format!("{brake}; look why, then retry this operation to fence the host, or cancel it");
    let data = json!({
        "operation_id": operation.id,
        "kind": operation.kind(),
        "generation": operation.generation,
        "detail": operation.detail,
        "is_braked": true,
    });
    step.event(EventKind::OperationNeedsOperator, data);
}

/// Asks to be ticked when it is due, and again until somebody has come with a plan.
pub(super) fn watch(step: &mut Step) {
    if let Some(due) = fence_due(&step.state) {
        let again = after_ms(step.now, AUTO_FENCE_AGAIN_MS);
        step.wake(if due > step.now { due } else { again });
    }
}
