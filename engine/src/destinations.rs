//! Hosts that workloads are on their way to, and that have died.

use ringfence_core::{Finding, HostId, Stuck, TaskResult, error_chain};

use crate::{Engine, EngineError};

/// The result of a worker, with what it cannot know: whether the host that a move goes to is dead, so that nothing will come of the move.
/// Whatever the worker has said of that is forgotten. What cannot be looked up now is when the next try of the move ends.
pub(crate) async fn looked_up(engine: &Engine, mut result: TaskResult) -> TaskResult {
    let host_id = result.claim.host_id;
    let Some(Finding::Move(report)) = &mut result.finding else {
        return result;
    };
    report.given_up = None;
    if let Some(stuck) = &report.stuck {
        match is_dead(engine, host_id, stuck).await {
            Ok(is_dead) => report.given_up = is_dead.then(|| stuck.id.clone()),
            Err(error) => {
                tracing::warn!(to = stuck.to, error = %error_chain(&error), "whether the destination of a move is dead cannot be looked up");
            }
        }
    }
    result
}

/// One that is cut off by storage and network alone may have it running: no step would end it there when the host comes back.
async fn is_dead(engine: &Engine, from: HostId, stuck: &Stuck) -> Result<bool, EngineError> {
    let mut reader = engine.0.db.reader();
    let from = ringfence_db::load_state(&mut reader, &from.to_string()).await?;
    let Some(cloud) = from.and_then(|state| state.host.cloud) else {
        return Ok(false);
    };
    let to = ringfence_db::load_state_in_cloud(&mut reader, &cloud, &stuck.to).await?;
    Ok(to.is_some_and(|state| state.host.is_dead()))
}
