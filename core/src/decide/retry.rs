//! Trying again what failed, by request or because the segment says so.

use serde_json::json;

use crate::{
    Actor, EventKind, FencingKind, OperationId, OperationStatus, Refusal, Reply, TaskStatus, Undoing, Work,
};

use super::{Draft, evacuation, held, pause, proof};

pub(super) fn retry(
    draft: &mut Draft,
    id: OperationId,
    reason: &str,
    actor: &Actor,
) -> Result<Reply, Refusal> {
    let Some(live) = draft.live().filter(|live| live.id == id) else {
        return Err(Refusal::OperationOver { id });
    };
    if !matches!(
        live.status,
        OperationStatus::NeedsOperator | OperationStatus::Held
    ) {
        return Err(Refusal::NotWaiting {
            id,
            status: live.status,
        });
    }
    let overrides = held::overridden(live);
    draft.note(
        "operation.retry",
        json!({ "operation_id": id, "reason": reason, "by": actor.name, "overrides": overrides }),
    );
    let why = format!("tried again by {}: {reason}", actor.name);
    held::wanted(draft);
    if !pause::wanted(draft, &why) {
        pause::holds_no_more(draft);
        restart(draft, &why);
    }
    Ok(Reply::Done)
}

/// Sets everything that was not confirmed back to its beginning. What was proven stays proven, but for power that is not
/// part of a fence yet: hosts are switched on by their power supplies, and by people, so that it has to be read again.
pub(super) fn restart(draft: &mut Draft, why: &str) {
    let now = draft.now;
    let is_fenced = draft.state.host.current_fence().is_some();
    if !is_fenced {
        draft.undo(&Undoing::StartedAgain);
    }
    let Some(operation) = draft.state.operation.as_mut() else {
        return;
    };
    for stage in &mut operation.stages {
        for task in &mut stage.tasks {
            let again = match task.status {
                TaskStatus::Failed | TaskStatus::Cancelled | TaskStatus::Running | TaskStatus::Pending => {
                    true
                }
                // Skipped because its power.off had failed; all others were skipped because there is nothing to do.
                TaskStatus::Skipped => task.kind() == FencingKind::PowerOn,
                TaskStatus::Confirmed => {
                    let is_done = task.kind() != FencingKind::PowerOff && proof::does_prove(task);
                    task.kind().proof_kind().is_some() && !is_done && !is_fenced
                }
            };
            if again {
                task.begin_anew();
            }
        }
        if stage.started_at.is_none() || stage.tasks.iter().any(|task| task.status == TaskStatus::Pending) {
            stage.entered_at = None;
            stage.started_at = None;
        }
    }
    evacuation::look_again(operation);
    operation.status = OperationStatus::Running;
    if let Work::Fence(fence) = &mut operation.work {
        fence.is_held_by_brake = false;
        fence.held = None;
        fence.allowed_until = None;
        fence.asks = None;
    }
    why.clone_into(&mut operation.detail);
    operation.round = operation.round.saturating_add(1);
    operation.restart_at = None;
    operation.updated_at = now;
    let data = json!({
        "operation_id": operation.id,
        "kind": operation.kind(),
        "generation": operation.generation,
        "round": operation.round,
        "detail": why,
    });
    draft.event(EventKind::OperationRestarted, data);
}
