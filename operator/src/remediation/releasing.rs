//! A remediation that is being deleted: its fence is stopped, or its host is taken back.

use ringfence_core::OperationId;

use super::object::{Remediation, api};
use super::serving::Found;
use super::wishes::wants_fenced;
use super::{asker, has_asked_for};
use crate::OperatorError;
use crate::door::{Door, Standing};
use crate::marks::{is_kept, let_go};
use crate::node_fence;
use crate::refusal::Why;
use crate::taking_back::{is_released, take_back};

const REASON: &str = "the RingfenceRemediation was deleted";

/// Lets the object go once nothing of its fence is left; says why it is kept, if it is.
pub(super) async fn release(
    door: &Door,
    namespace: &str,
    object: &Remediation,
    found: &mut Found,
) -> Result<Option<Why>, OperatorError> {
    if !is_kept(&object.metadata) {
        return Ok(None);
    }
    let why = match &found.standing {
        Some(standing) if !is_released(standing) => {
            give_back(door, standing, object.metadata.uid.as_deref()).await?
        }
        Some(_) | None => None,
    };
    found.read_again(door).await?;
    if why.is_some() && !found.standing.as_ref().is_none_or(is_released) {
        return Ok(why);
    }
    let_go(door, &api(&door.client, namespace), &object.metadata).await?;
    Ok(None)
}

/// Asks for a rejoin where the fence is the remediation's own, and no other object wants it; says why the host is not taken back yet.
async fn give_back(
    door: &Door,
    standing: &Standing,
    uid: Option<&str>,
) -> Result<Option<Why>, OperatorError> {
    let is_wanted = is_wanted(door, standing, uid).await?;
    if is_wanted || !is_own(door, standing).await? {
        return Ok(None);
    }
    let why = take_back(door, standing, &asker(door), REASON).await?;
    Ok(Some(why))
}

async fn is_wanted(door: &Door, standing: &Standing, uid: Option<&str>) -> Result<bool, OperatorError> {
    let host = &standing.state.host;
    Ok(node_fence::wants_fenced(door, host).await? || wants_fenced(door, host.id, uid).await?)
}

/// Whether a remediation has asked for the fence that holds the host, or for its rejoin.
async fn is_own(door: &Door, standing: &Standing) -> Result<bool, OperatorError> {
    let state = &standing.state;
    let live = state.operation.as_ref().map(|live| live.id);
    let fence: Option<OperationId> = state.host.fence.as_ref().map(|fence| fence.operation_id);
    let last = standing.last.as_ref().map(|last| last.id);
    let mut reader = door.engine.db().reader();
    for id in [fence, live, last].into_iter().flatten() {
        let operation = ringfence_db::operation(&mut reader, id.0).await?;
        if operation.is_some_and(|operation| has_asked_for(door, &operation)) {
            return Ok(true);
        }
    }
    Ok(false)
}
