//! A request to fence.

use serde_json::json;

use crate::guard::{Guard, on};
use crate::{
    Actor, Answer, Awaits, FailureState, FenceWork, FrozenPlan, Operation, OperationId, OperationKind,
    OperationStatus, Refusal, Stage, Task, Work, WorkloadStep,
};

use super::{Step, proof, retry};
use crate::platform::platform_of;

/// Already FENCED by proofs that hold: nothing. A fence is live: that one; what the brake holds begins now. Seen UP: refused. No plan: refused. A rejoin is
/// live: it makes way. Else: a new one.
pub(super) fn fence(
    step: &mut Step,
    operation_id: OperationId,
    plan: Option<FrozenPlan>,
    reason: String,
    actor: &Actor,
) -> Result<Answer, Refusal> {
    if step.state.host.good_fence().is_some() {
        return Ok(Answer::AlreadySo);
    }
    let has_ended = step.state.host.current_fence().is_some();
    if let Some(live) = step
        .live()
        .filter(|live| live.kind() == OperationKind::Fence && !has_ended)
    {
        let (id, is_braked) = (live.id, live.is_braked());
        // The operation keeps the reason of the one who began it.
        step.note(
            "fence.joined",
            json!({ "operation_id": id, "reason": reason, "by": actor.name }),
        );
        if is_braked {
            retry::restart(step, &format!("wanted by {}: {reason}", actor.name));
        }
        return Ok(Answer::Joined(id));
    }
    refuse_if_up(step)?;
    let plan = plan.ok_or(Refusal::PlanMissing)?;
    proof::finish_ended(step);
    supersede(step);
    let operation = new_operation(step, operation_id, plan, reason, &actor.name);
    step.begin(operation);
    Ok(Answer::Started(operation_id))
}

/// A host that answers is not fenced.
pub(super) fn refuse_if_up(step: &Step) -> Result<(), Refusal> {
    let host = &step.state.host;
    if host.failure_state == FailureState::Up && on(Guard::UpIsNotFenced) {
        let source_name = host
            .failure_source
            .clone()
            .unwrap_or_else(|| "an observer".to_owned());
        return Err(Refusal::HostUp { source_name });
    }
    Ok(())
}

/// A rejoin makes way for a newer fence.
pub(super) fn supersede(step: &mut Step) {
    let next = step.state.host.generation.next();
    if step.live().is_some() {
        step.end(
            OperationStatus::Cancelled,
            format!("superseded by a fence of generation {next}"),
        );
    }
}

/// The backend of a host that is FENCED is told so, and never before.
pub(super) fn after_fenced(step: &Step) -> Option<Stage> {
    platform_of(&step.state)?;
    Some(Stage {
        delay_s: 0,
        at_once: None,
        awaits: Some(Awaits::Fenced),
        entered_at: None,
        started_at: None,
        tasks: vec![Task::step(WorkloadStep::MarkDown)],
    })
}

pub(super) fn new_operation(
    step: &Step,
    id: OperationId,
    plan: FrozenPlan,
    reason: String,
    by: &str,
) -> Operation {
    let generation = step.state.host.generation.next();
    let stages = plan
        .stages
        .into_iter()
        .map(|stage| Stage {
            delay_s: stage.delay_s,
            at_once: None,
            awaits: None,
            entered_at: None,
            started_at: None,
            tasks: stage
                .tasks
                .into_iter()
                .map(|task| Task::fencing(task.kind, task.levels))
                .collect(),
        })
        .chain(after_fenced(step))
        .collect();
    let work = Work::Fence(FenceWork {
        plan: Some(plan.name),
        sufficient_sets: plan.sufficient_sets,
        is_braked: false,
    });
    Operation {
        stages,
        ..step.draft(id, work, generation, reason, by)
    }
}
