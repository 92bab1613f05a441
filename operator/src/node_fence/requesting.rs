//! A `NodeFence` that was made by hand: its fence is asked for once.

use ringfence_engine::Operated;

use super::object::{NodeFence, api};
use super::serving::{Served, Verdict};
use super::status::{status, tell_fenced};
use super::suspending;
use crate::OperatorError;
use crate::condition::Conditions;
use crate::door::{Door, Standing};
use crate::marks::{carried_out, is_carried_out, keep, name_of};
use crate::refusal::{Why, told};

/// The reason of a fence whose object gives none.
const NO_REASON: &str = "a NodeFence was made";

/// Asks the engine for what the object asks for, unless that was done.
pub(super) async fn request(
    door: &Door,
    object: &NodeFence,
    standing: Option<Standing>,
) -> Result<Served, OperatorError> {
    let name = name_of(&object.metadata);
    if let Some(why) = names_another_node(object, name) {
        return Ok(refused(why, None));
    }
    let Some(standing) = standing else {
        return Ok(refused(host_unknown(door, name), None));
    };
    keep(door, &api(&door.client), &object.metadata).await?;
    if object.spec.suspend {
        Box::pin(suspending::suspend(door, object, standing)).await
    } else if is_carried_out(&object.metadata) {
        Ok(accepted(standing))
    } else {
        fence(door, object, standing).await
    }
}

fn accepted(standing: Standing) -> Served {
    let message = "the fence was asked for; status shows what became of it";
    Served {
        verdict: Verdict {
            accepted: Some(Why::new("CarriedOut", message)),
            ..Verdict::default()
        },
        standing: Some(standing),
    }
}

fn refused(why: Why, standing: Option<Standing>) -> Served {
    Served {
        verdict: Verdict {
            refused: Some(why),
            ..Verdict::default()
        },
        standing,
    }
}

pub(super) fn names_another_node(object: &NodeFence, name: &str) -> Option<Why> {
    let node = object.spec.node_name.as_deref().filter(|node| *node != name)?;
    let message = format!(
        "spec.nodeName is {node:?}, and the name of this NodeFence is {name:?}. Name the NodeFence as its node"
    );
    Some(Why::new("NodeNameDiffers", message))
}

fn host_unknown(door: &Door, node: &str) -> Why {
    let cluster = &door.cluster;
    let message = format!(
        "Ringfence has no host for node {node:?} of cluster {cluster}. Mend the name, or add the host: ringfence host add {node} \
         --backend kubernetes --cloud {cluster}"
    );
    Why::new("HostUnknown", message)
}

async fn fence(door: &Door, object: &NodeFence, standing: Standing) -> Result<Served, OperatorError> {
    let name = name_of(&object.metadata);
    let by = door.asker("NodeFence");
    let given = object.spec.reason.as_deref().filter(|reason| !reason.is_empty());
    let reason = given.unwrap_or(NO_REASON);
    let host_id = standing.state.host.id.to_string();
    if let Some(plan) = &object.spec.plan
        && let Some(why) = another_plan(door, &host_id, plan, reason).await?
    {
        return Ok(refused(why, Some(standing)));
    }
    show_as_new(door, object, &standing).await?;
    let operation = match door.engine.fence(&host_id, reason, &by).await {
        Ok(Operated::Started(id, _) | Operated::Joined(id, _)) => id.to_string(),
        Ok(Operated::Already(state)) => {
            let fence = state.host.fence.as_ref();
            fence.map_or_else(|| "none".to_owned(), |fence| fence.operation_id.to_string())
        }
        Err(error) => {
            let why = told(error)?;
            let message = format!(
                "{}. It is asked for again while this NodeFence exists",
                why.message
            );
            return Ok(refused(Why { message, ..why }, Some(standing)));
        }
    };
    tracing::info!(
        cluster = door.cluster,
        node = name,
        operation,
        "a NodeFence asked for a fence"
    );
    carried_out(door, &api(&door.client), &object.metadata, Some(&operation)).await?;
    let standing = door.standing(name).await?.unwrap_or(standing);
    Ok(accepted(standing))
}

/// What the object shows before anything is done for it.
async fn show_as_new(door: &Door, object: &NodeFence, standing: &Standing) -> Result<(), OperatorError> {
    if object.status.is_some() {
        return Ok(());
    }
    let name = name_of(&object.metadata);
    let mut conditions = Conditions::new(&[], object.metadata.generation, door.now());
    tell_fenced(&mut conditions, standing);
    let mut new = status(Some(standing), conditions.done());
    new.begin_anew();
    door.merge_status(&api(&door.client), name, &new).await
}

/// Why the plan that is named is not the one that applies.
async fn another_plan(
    door: &Door,
    host_id: &str,
    wanted: &str,
    reason: &str,
) -> Result<Option<Why>, OperatorError> {
    let by = door.asker("NodeFence");
    let dry_run = match door.engine.dry_run_fence(host_id, reason, &by).await {
        Ok(dry_run) => dry_run,
        Err(error) => return Ok(Some(told(error)?)),
    };
    let applies = dry_run.facts.plan.as_ref().map(|plan| plan.name.as_str());
    if applies == Some(wanted) {
        return Ok(None);
    }
    let found = applies.map_or_else(
        || "no plan applies to it".to_owned(),
        |plan| format!("plan {plan:?} applies to it"),
    );
    let message = format!(
        "spec.plan is {wanted:?}, and the host's plan is found by its name and type: {found}. Remove spec.plan, or change the scope of the plans"
    );
    Ok(Some(Why::new("PlanDiffers", message)))
}
