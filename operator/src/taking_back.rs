//! Asking for a host to be taken back, because the object that asked for its fence is deleted.

use ringfence_core::{Operation, OperationKind, OperationStatus};
use ringfence_engine::{Context, Operated};

use crate::OperatorError;
use crate::door::{Door, Standing};
use crate::refusal::{Why, told};

/// Whether nothing of a fence is left on the host, and nothing is done for one.
pub(crate) fn is_released(standing: &Standing) -> bool {
    let host = &standing.state.host;
    let live = standing.state.operation.as_ref().map(Operation::kind);
    let is_held = matches!(live, Some(OperationKind::Fence | OperationKind::Rejoin));
    host.fence.is_none() && host.applied.is_empty() && !is_held
}

/// Asks for a rejoin; a fence that has proven nothing is cancelled first. Says why the host is not taken back yet.
pub(crate) async fn take_back(
    door: &Door,
    standing: &Standing,
    by: &Context,
    reason: &str,
) -> Result<Why, OperatorError> {
    let host = &standing.state.host;
    if let Some(live) = &standing.state.operation {
        match live.kind() {
            OperationKind::Rejoin => return Ok(under_way(live)),
            OperationKind::Fence if host.current_fence().is_none() => {
                if let Err(error) = door.engine.cancel(live.id.0, reason, by).await {
                    return Ok(told(error)?);
                }
            }
            OperationKind::Fence | OperationKind::Evacuation => {}
        }
    }
    let last = standing.last.as_ref();
    if let Some(stopped) = last.filter(|last| is_stopped_rejoin(last, &by.actor)) {
        let message = format!(
            "rejoin {} was cancelled ({}); ask for another one: ringfence host rejoin {}",
            stopped.id, stopped.detail, host.name
        );
        return Ok(Why::new("RejoinCancelled", message));
    }
    let id = host.id.to_string();
    match door.engine.rejoin(&id, reason, false, by).await {
        Ok(Operated::Started(id, _) | Operated::Joined(id, _)) => {
            let (cluster, host) = (&door.cluster, &host.name);
            tracing::info!(cluster, host, "a rejoin was asked for: {reason}");
            Ok(Why::new("RejoinRunning", format!("rejoin {id} has begun")))
        }
        Ok(Operated::Already(_)) => Ok(Why::new("Released", "the host is UNFENCED")),
        Err(error) => Ok(told(error)?),
    }
}

fn under_way(rejoin: &Operation) -> Why {
    let reason = match rejoin.status {
        OperationStatus::NeedsOperator => "RejoinNeedsOperator",
        OperationStatus::Running
        | OperationStatus::Held
        | OperationStatus::Succeeded
        | OperationStatus::Cancelled => "RejoinRunning",
    };
    Why::new(reason, format!("rejoin {}: {}", rejoin.id, rejoin.detail))
}

/// A rejoin that was asked for here and that a person has stopped is not asked for again.
fn is_stopped_rejoin(last: &Operation, asker: &str) -> bool {
    last.kind() == OperationKind::Rejoin
        && last.status == OperationStatus::Cancelled
        && last.requested_by == asker
}
