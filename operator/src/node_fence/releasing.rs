//! A `NodeFence` that is being deleted: the host is taken back first.

use super::object::{NodeFence, api};
use super::serving::{Served, Verdict};
use crate::OperatorError;
use crate::door::{Door, Standing};
use crate::marks::{is_kept, let_go, name_of};
use crate::remediation;
use crate::taking_back::{is_released, take_back};

const REASON: &str = "the NodeFence was deleted";

/// Asks for a rejoin, and lets the object go once the host is UNFENCED, or if another object wants the host fenced; `None` if there is nothing
/// to show any more.
pub(super) async fn release(
    door: &Door,
    object: &NodeFence,
    standing: Option<Standing>,
) -> Result<Option<Served>, OperatorError> {
    let (meta, api) = (&object.metadata, api(&door.client));
    if !is_kept(meta) {
        return Ok(None);
    }
    let Some(standing) = standing.filter(|standing| !is_released(standing)) else {
        let_go(door, &api, meta).await?;
        return Ok(None);
    };
    if remediation::wants_fenced(door, standing.state.host.id, None).await? {
        let_go(door, &api, meta).await?;
        return Ok(None);
    }
    let why = take_back(door, &standing, &door.asker("NodeFence"), REASON).await?;
    let now = door.standing(name_of(meta)).await?;
    if now.as_ref().is_none_or(is_released) {
        let_go(door, &api, meta).await?;
        return Ok(None);
    }
    Ok(Some(Served {
        verdict: Verdict {
            not_released: Some(why),
            ..Verdict::default()
        },
        standing: now,
    }))
}
