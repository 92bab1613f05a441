//! A request to fence.

use serde_json::json;

use crate::guard::{Guard, on};
use crate::{
    Actor, Awaits, Cause, FailureState, FenceWork, FrozenPlan, FrozenTask, HostState, Operation, OperationId,
    OperationKind, OperationStatus, Refusal, Reply, Stage, StepKind, Task, Work, WorkloadStep,
};

use super::{Draft, held, pause, proof, retry};
use crate::platform::platform_of;

/// What is asked for.
pub(super) struct Request {
    pub plan: Option<FrozenPlan>,
    pub reason: String,
    /// By a program, which does not know what safeguards know.
    pub heeds_safeguards: bool,
}

/// Already FENCED by proofs that hold: nothing. A fence is live: that one; what is held begins now, if a person asks. Seen UP: refused. No plan: refused.
/// A rejoin is live: it makes way. Else: a new one.
pub(super) fn fence(
    draft: &mut Draft,
    operation_id: OperationId,
    request: Request,
    actor: &Actor,
) -> Result<Reply, Refusal> {
    let Request {
        plan,
        reason,
        heeds_safeguards,
    } = request;
    if draft.state.host.good_fence().is_some() {
        return Ok(Reply::AlreadySo);
    }
    let has_ended = draft.state.host.current_fence().is_some();
    if let Some(live) = draft
        .live()
        .filter(|live| live.kind() == OperationKind::Fence && !has_ended)
    {
        let (id, is_held) = (live.id, live.is_held());
        let overrides = (!heeds_safeguards).then(|| held::overridden(live));
        // The operation keeps the reason of the one who began it.
        draft.note(
            "fence.joined",
            json!({ "operation_id": id, "reason": reason, "by": actor.name, "overrides": overrides.unwrap_or_default() }),
        );
        if heeds_safeguards {
            return Ok(Reply::Joined(id));
        }
        held::wanted(draft);
        let why = format!("wanted by {}: {reason}", actor.name);
        if !pause::wanted(draft, &why) && is_held {
            pause::holds_no_more(draft);
            retry::restart(draft, &why);
        }
        return Ok(Reply::Joined(id));
    }
    refuse_if_up(draft)?;
    let plan = plan.ok_or(Refusal::PlanMissing)?;
    proof::finish_ended(draft);
    supersede(draft);
    let mut operation = new_operation(draft, operation_id, plan, reason, &actor.name);
    if let Work::Fence(fence) = &mut operation.work
        && heeds_safeguards
    {
        fence.cause = Cause::Program;
    }
    let was_answered = draft.state.host.is_silence_answered;
    draft.begin(operation);
    if heeds_safeguards && on(Guard::ProgramIsHeld) {
        // The silence is answered when it begins: a program may take it back before.
        draft.state.host.is_silence_answered = was_answered;
        held::hold(draft, Vec::new());
        draft.wake(draft.now);
    }
    Ok(Reply::Started(operation_id))
}

/// A host that answers is not fenced.
pub(super) fn refuse_if_up(draft: &Draft) -> Result<(), Refusal> {
    let host = &draft.state.host;
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
pub(super) fn supersede(draft: &mut Draft) {
    let next = draft.state.host.generation.next();
    if draft.live().is_some() {
        draft.end(
            OperationStatus::Cancelled,
            format!("superseded by a fence of generation {next}"),
        );
    }
}

/// The backend of a host that is FENCED is told so, and never before.
pub(super) fn after_fenced(state: &HostState) -> Option<Stage> {
    platform_of(state)?;
    Some(Stage {
        delay_s: 0,
        at_once: None,
        awaits: Some(Awaits::Fenced),
        entered_at: None,
        started_at: None,
        tasks: vec![Task::step(WorkloadStep::MarkDown { evacuation: None })],
    })
}

/// Where the platform would start workloads on the host by itself, it is kept from that at once, beside everything else: no proof rests
/// on it.
fn isolation(state: &HostState) -> Option<Stage> {
    platform_of(state).filter(|at| at.backend.starts_by_itself())?;
    let one_by_one = state.policy.evacuation.moves_one_by_one();
    Some(Stage {
        delay_s: 0,
        at_once: None,
        awaits: None,
        entered_at: None,
        started_at: None,
        tasks: vec![Task::step(WorkloadStep::Isolate { one_by_one })],
    })
}

/// Whether it is the stage of the isolation.
pub(super) fn isolates(stage: &Stage) -> bool {
    stage.tasks.iter().any(|task| task.kind() == StepKind::Isolate)
}

/// The stages of a fence that was proven, and goes on with what it had left to do.
pub(crate) fn rest_of_fence(state: &HostState, left: Vec<FrozenTask>) -> Vec<Stage> {
    let (releasing, taking): (Vec<_>, Vec<_>) = left.into_iter().partition(|task| task.kind.releases());
    let planned = [taking, releasing].into_iter().filter(|tasks| !tasks.is_empty());
    let stages = isolation(state)
        .into_iter()
        .chain(planned.map(|tasks| planned_stage(0, tasks)));
    stages.chain(after_fenced(state)).collect()
}

fn planned_stage(delay_s: u32, tasks: Vec<FrozenTask>) -> Stage {
    let tasks = tasks
        .into_iter()
        .map(|task| Task::fencing(task.kind, task.levels));
    Stage {
        delay_s,
        at_once: None,
        awaits: None,
        entered_at: None,
        started_at: None,
        tasks: tasks.collect(),
    }
}

pub(super) fn new_operation(
    draft: &Draft,
    id: OperationId,
    plan: FrozenPlan,
    reason: String,
    by: &str,
) -> Operation {
    let generation = draft.state.host.generation.next();
    let planned = plan
        .stages
        .into_iter()
        .map(|stage| planned_stage(stage.delay_s, stage.tasks));
    let stages = isolation(&draft.state)
        .into_iter()
        .chain(planned)
        .chain(after_fenced(&draft.state));
    let work = Work::Fence(FenceWork::new(Some(plan.name), plan.sufficient_sets));
    Operation {
        stages: stages.collect(),
        ..draft.operation(id, work, generation, reason, by)
    }
}
