//! Serving a `NodeFence`: what it asks for is asked of the engine, and what the database says is shown.

use std::time::Duration;

use tokio::time::Instant;

use super::object::{NodeFence, api, has_record, is_deleted, is_own};
use super::requesting::names_another_node;
use super::status::{status, tell_fenced};
use super::word::{self, Said};
use super::{failures, own, releasing, requesting, suspending};
use crate::condition::Conditions;
use crate::door::{Door, Standing, look_again};
use crate::marks::name_of;
use crate::refusal::Why;
use crate::taking_back::is_released;
use crate::{OperatorError, health_check_lease, remediation};

/// Within such a time nothing else than the status is looked after.
const SHORT: Duration = Duration::from_secs(1);

/// What became of an object that is still there.
pub(super) struct Served {
    /// What stands in the way of what it asks for, or that nothing does.
    pub verdict: Verdict,
    /// The host, as it was read last.
    pub standing: Option<Standing>,
}

/// Conditions beside `Fenced`.
#[derive(Default)]
pub(super) struct Verdict {
    pub accepted: Option<Why>,
    pub refused: Option<Why>,
    pub not_released: Option<Why>,
    /// When the suspension ends that the object asks for.
    pub suspended_until: Option<String>,
}

/// Serves the `NodeFence` of a node; returns when it is looked at again without a change.
pub(crate) async fn serve(door: &Door, node: &str) -> Result<Option<Duration>, OperatorError> {
    let standing = door.standing(node).await?;
    let object = door.call(api(&door.client).get_opt(node)).await?;
    let suspends = |object: &NodeFence| {
        object.spec.suspend && !is_deleted(object) && names_another_node(object, node).is_none()
    };
    let standing = match object.as_ref().is_some_and(suspends) {
        true => standing,
        false => Box::pin(suspending::lift(door, node, standing)).await?,
    };
    let Some(object) = object else {
        return match standing {
            Some(standing) => own::make(door, node, &standing).await,
            None => Ok(None),
        };
    };
    let (object, said) = match is_deleted(&object) || names_another_node(&object, node).is_some() {
        true => (object, None),
        false => word::hear(door, object, standing.as_ref()).await?,
    };
    // A word that was taken just now has changed the host.
    let standing = match said {
        Some(Said::Taken(_)) => door.standing(node).await?,
        Some(Said::Refused(_)) | None => standing,
    };
    // From its first sight on, whatever its host is by then.
    let awaits_record = is_own(&object) && awaits_record(door, &object);
    let served = match (is_deleted(&object), is_own(&object)) {
        (true, _) => releasing::release(door, &object, standing).await?,
        (false, true) if awaits_record && standing.as_ref().is_some_and(is_released) => {
            return Ok(Some(SHORT));
        }
        (false, true) => own::keep(door, &object, standing).await?,
        (false, false) => Some(Box::pin(requesting::request(door, &object, standing)).await?),
    };
    match served {
        Some(served) => show(door, &object, served, said.as_ref()).await,
        None => {
            tend_lease(door, node, None).await?;
            Ok(None)
        }
    }
}

/// Whether the object may have been made for a fence that is about to be committed.
fn awaits_record(door: &Door, object: &NodeFence) -> bool {
    let uid = object.metadata.uid.as_deref().unwrap_or_default();
    !has_record(object) && door.awaiting.awaits_record(uid, Instant::now())
}

async fn show(
    door: &Door,
    object: &NodeFence,
    served: Served,
    said: Option<&Said>,
) -> Result<Option<Duration>, OperatorError> {
    let Served { verdict, standing } = served;
    let known = object
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref());
    let mut conditions = Conditions::new(known.unwrap_or_default(), object.metadata.generation, door.now());
    if let Some(why) = &verdict.accepted {
        conditions.yes("Accepted", why);
    }
    if let Some(why) = &verdict.refused {
        conditions.no("Accepted", why);
    }
    if let Some(standing) = &standing {
        tell_fenced(&mut conditions, standing);
    }
    match said {
        Some(Said::Taken(why)) => conditions.yes(word::CONFIRMED, why),
        Some(Said::Refused(why)) => conditions.no(word::CONFIRMED, why),
        None => {}
    }
    if let Some(why) = &verdict.not_released {
        conditions.no("Released", why);
    }
    let mut wanted = status(standing.as_ref(), conditions.done());
    wanted.suspended_until = verdict.suspended_until;
    wanted.confirmation = word::to_remember(object);
    wanted.record = object.status.as_ref().and_then(|status| status.record.clone());
    if verdict.refused.is_some() && standing.as_ref().is_some_and(is_unasked) {
        wanted.begin_anew();
    }
    let next = look_again(standing.as_ref(), door.now());
    let is_changed = object.status.as_ref() != Some(&wanted);
    if is_changed || next > SHORT {
        tend_lease(door, name_of(&object.metadata), standing.as_ref()).await?;
    }
    if is_changed {
        // Before they are shown: what is shown was told.
        if let Some(standing) = &standing {
            failures::tell(door, object, standing, &wanted).await;
        }
        door.merge_status(&api(&door.client), name_of(&object.metadata), &wanted)
            .await?;
    }
    Ok(Some(next))
}

/// Keeps health checks from a node that Ringfence fences on its own.
async fn tend_lease(door: &Door, node: &str, standing: Option<&Standing>) -> Result<(), OperatorError> {
    let is_theirs = |standing: &Standing| {
        let last = standing.last.as_ref();
        last.is_some_and(|last| remediation::has_asked_for(door, last))
    };
    match standing.filter(|standing| !is_released(standing)) {
        Some(standing) if !is_theirs(standing) => health_check_lease::hold(door, node).await,
        Some(_) | None => health_check_lease::give_back(door, node).await,
    }
}

/// Whether no fence is proven or under way: the last one is not the one that the object asks for.
fn is_unasked(standing: &Standing) -> bool {
    standing.state.host.fence.is_none() && standing.state.operation.is_none()
}
