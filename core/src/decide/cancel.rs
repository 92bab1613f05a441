//! A request to stop an operation. The host's state stays as it is proven.

use serde_json::json;

use crate::{Actor, Answer, OperationId, OperationStatus, Refusal};

use super::Step;

pub(super) fn cancel(
    step: &mut Step,
    id: OperationId,
    reason: &str,
    actor: &Actor,
) -> Result<Answer, Refusal> {
    if step.live().is_none_or(|live| live.id != id) {
        return Err(Refusal::OperationOver { id });
    }
    step.note(
        "operation.cancel",
        json!({ "operation_id": id, "reason": reason, "by": actor.name }),
    );
    step.end(
        OperationStatus::Cancelled,
        format!("cancelled by {}: {reason}", actor.name),
    );
    Ok(Answer::Done)
}
