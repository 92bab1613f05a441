//! A `NodeFence` with `spec.suspend`: its host is suspended until a time, and no longer than the object says so.

use chrono::{DateTime, SecondsFormat, SubsecRound, TimeDelta};
use ringfence_core::{Suspension, Timestamp};
use ringfence_engine::{SuspensionDraft, SuspensionEnd};

use super::object::{NodeFence, api};
use super::serving::{Served, Verdict};
use crate::OperatorError;
use crate::door::{Door, Standing};
use crate::marks::{carried_out, is_carried_out, name_of};
use crate::refusal::{Why, told};

/// Who suspends it.
const ASKER: &str = "NodeFence";
/// The reason of a suspension whose object gives none.
const NO_REASON: &str = "spec.suspend of the NodeFence is true";
const LIFTED: &str = "no NodeFence suspends the node any more";
/// How long a suspension lasts whose object gives no end.
const LASTS: TimeDelta = TimeDelta::hours(24);

/// Suspends the host, unless that is over or was done.
pub(super) async fn suspend(
    door: &Door,
    object: &NodeFence,
    standing: Standing,
) -> Result<Served, OperatorError> {
    let until = match wanted_until(door, object, &standing) {
        Ok(until) => until,
        Err(why) => return Ok(served(why, None, Some(standing))),
    };
    if until <= door.now() {
        let lifted = lift(door, name_of(&object.metadata), Some(standing)).await?;
        return Ok(served(ended(until), Some(text(until)), lifted));
    }
    let (why, standing) = if let Some(other) = of_another(door, &standing) {
        let Suspension { by, reason, .. } = other;
        let message =
            format!("the host is suspended already, by {by}: {reason}. The NodeFence asks for no fence");
        (Why::new("Suspended", message), standing)
    } else {
        Box::pin(suspend_until(door, object, until, standing)).await?
    };
    let is_idle = standing.state.operation.is_none() && standing.state.host.fence.is_none();
    if is_carried_out(&object.metadata) && is_idle {
        carried_out(door, &api(&door.client), &object.metadata, None).await?;
    }
    let shown = own(door, &standing).and_then(|own| own.until).map(text);
    Ok(served(why, shown, Some(standing)))
}

/// Ends the suspension of a host that a `NodeFence` has suspended and that none suspends any more.
pub(super) async fn lift(
    door: &Door,
    node: &str,
    standing: Option<Standing>,
) -> Result<Option<Standing>, OperatorError> {
    let Some(suspended) = standing.as_ref().filter(|standing| own(door, standing).is_some()) else {
        return Ok(standing);
    };
    let host = suspended.state.host.id.to_string();
    if let Err(error) = door.engine.resume_host(&host, LIFTED, &door.asker(ASKER)).await {
        // A refusal: it has ended by itself, or its host is gone.
        told(error)?;
    }
    tracing::info!(
        cluster = door.cluster,
        node,
        "a NodeFence suspends its node no more"
    );
    door.standing(node).await
}

/// Whether the object suspends its host still.
pub(super) fn is_in_force(door: &Door, object: &NodeFence, standing: &Standing) -> bool {
    let until = wanted_until(door, object, standing);
    object.spec.suspend && until.is_ok_and(|until| until > door.now())
}

async fn suspend_until(
    door: &Door,
    object: &NodeFence,
    until: Timestamp,
    standing: Standing,
) -> Result<(Why, Standing), OperatorError> {
    let message = format!(
        "the host is suspended until {}: nothing begins by itself, what is under way stands still, and the NodeFence asks for no fence",
        text(until)
    );
    let is_done = own(door, &standing).is_some_and(|own| own.until == Some(until));
    if is_done {
        return Ok((Why::new("Suspended", message), standing));
    }
    let given = object.spec.reason.as_deref().filter(|reason| !reason.is_empty());
    let draft = SuspensionDraft {
        end: SuspensionEnd::At(until),
        reason: given.unwrap_or(NO_REASON),
    };
    let host = standing.state.host.id.to_string();
    let node = name_of(&object.metadata);
    if let Err(error) = door.engine.suspend_host(&host, draft, &door.asker(ASKER)).await {
        return Ok((told(error)?, standing));
    }
    tracing::info!(cluster = door.cluster, node, %until, "a NodeFence suspends its node");
    let standing = door.standing(node).await?.unwrap_or(standing);
    Ok((Why::new("Suspended", message), standing))
}

/// As the object says; else as it was begun, which the object or its host remembers.
fn wanted_until(door: &Door, object: &NodeFence, standing: &Standing) -> Result<Timestamp, Why> {
    let begun = object
        .status
        .as_ref()
        .and_then(|status| status.suspended_until.as_deref());
    let begun = begun.and_then(|until| parsed(until).ok());
    match object.spec.suspend_until.as_deref() {
        Some(given) => parsed(given).map_err(|error| {
            let message = format!(
                "spec.suspendUntil is {given:?}, and is no time: {error}; such as 2026-11-28T22:00:00Z is allowed"
            );
            Why::new("Invalid", message)
        }),
        None => {
            let by_host = || own(door, standing).and_then(|own| own.until);
            let new = || door.now().trunc_subsecs(0) + LASTS;
            Ok(begun.or_else(by_host).unwrap_or_else(new))
        }
    }
}

fn parsed(text: &str) -> Result<Timestamp, chrono::ParseError> {
    DateTime::parse_from_rfc3339(text).map(|time| time.to_utc())
}

fn text(time: Timestamp) -> String {
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

/// The host's suspension, as far as a `NodeFence` has begun it.
fn own<'a>(door: &Door, standing: &'a Standing) -> Option<&'a Suspension> {
    let own = door.asker(ASKER).actor;
    in_force(door, standing).filter(|suspension| suspension.by == own)
}

fn of_another<'a>(door: &Door, standing: &'a Standing) -> Option<&'a Suspension> {
    let own = door.asker(ASKER).actor;
    in_force(door, standing).filter(|suspension| suspension.by != own)
}

fn in_force<'a>(door: &Door, standing: &'a Standing) -> Option<&'a Suspension> {
    let suspension = standing.state.host.suspension.as_ref();
    suspension.filter(|suspension| suspension.is_in_force(door.now()))
}

fn ended(until: Timestamp) -> Why {
    let message = format!(
        "the suspension ended at {}; set spec.suspendUntil to a later time, or spec.suspend to false",
        text(until)
    );
    Why::new("SuspensionEnded", message)
}

fn served(why: Why, suspended_until: Option<String>, standing: Option<Standing>) -> Served {
    Served {
        verdict: Verdict {
            refused: Some(why),
            suspended_until,
            ..Verdict::default()
        },
        standing,
    }
}
