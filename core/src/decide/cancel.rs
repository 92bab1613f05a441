//! A request to stop an operation. The host's state stays as it is proven. Who stops a fence wants none for this silence of the host.

use serde_json::json;

use crate::{Actor, Cause, Operation, OperationId, OperationKind, OperationStatus, Refusal, Reply};

use super::Draft;

pub(super) fn cancel(
    draft: &mut Draft,
    id: OperationId,
    reason: &str,
    actor: &Actor,
) -> Result<Reply, Refusal> {
    let Some(live) = draft.live().filter(|live| live.id == id) else {
        return Err(Refusal::OperationOver { id });
    };
    let is_answer = live.kind() == OperationKind::Fence && !is_withdrawn(live, actor);
    draft.note(
        "operation.cancel",
        json!({ "operation_id": id, "reason": reason, "by": actor.name }),
    );
    draft.end(
        OperationStatus::Cancelled,
        format!("cancelled by {}: {reason}", actor.name),
    );
    if is_answer {
        draft.answer_silence();
    }
    Ok(Reply::Done)
}

/// Whether a program takes back what it has asked for before any of it began: its deadline is over, and it has not looked at the host.
fn is_withdrawn(live: &Operation, actor: &Actor) -> bool {
    let is_by_program = live.fence().is_some_and(|fence| fence.cause == Cause::Program);
    is_by_program && live.is_held_before_it_begins() && live.requested_by == actor.name
}
