//! A request to stop an operation. The host's state stays as it is proven.

use serde_json::json;

use crate::{Actor, OperationId, OperationStatus, Refusal, Reply};

use super::Draft;

pub(super) fn cancel(
    draft: &mut Draft,
    id: OperationId,
    reason: &str,
    actor: &Actor,
) -> Result<Reply, Refusal> {
    if draft.live().is_none_or(|live| live.id != id) {
        return Err(Refusal::OperationOver { id });
    }
    draft.note(
        "operation.cancel",
        json!({ "operation_id": id, "reason": reason, "by": actor.name }),
    );
    draft.end(
        OperationStatus::Cancelled,
        format!("cancelled by {}: {reason}", actor.name),
    );
    Ok(Reply::Done)
}
