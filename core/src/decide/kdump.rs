//! A host in its crash kernel: the fences that have begun by themselves leave it its power until its dump is over, or has taken too long.

use serde_json::json;

use crate::guard::{Guard, on};
use crate::{Cause, EngineTime, EventKind, FencingKind, Kdump, Operation, Reply, TaskKind, Timestamp};

use super::Draft;
use super::draft::after_s;

/// A message came from an address of the host. What it proves is seen when the fence goes on.
pub(super) fn message(draft: &mut Draft, heard_after: Option<EngineTime>) -> Reply {
    let now = draft.now;
    draft.heard_after = heard_after;
    let known = draft.state.host.kdump.as_ref();
    let is_new = known.is_none_or(|known| known.is_over);
    let since = known.map_or(now, |known| known.since);
    draft.state.host.kdump = Some(Kdump {
        since,
        ..Kdump::new(now)
    });
    if is_new {
        draft.event(EventKind::HostKdumpBegan, json!({ "since": since }));
    }
    Reply::Done
}

/// Tells the end of a dump. One that is over is remembered only while the host has an operation: it has held its power for as long as it may.
pub(super) fn look(draft: &mut Draft) {
    let now = draft.now;
    let has_operation = draft.live().is_some();
    let Some(known) = draft.state.host.kdump.as_mut() else {
        return;
    };
    let (since, last_at, over_at) = (known.since, known.last_at, known.over_at());
    if over_at > now {
        return draft.wake(over_at);
    }
    let is_news = !std::mem::replace(&mut known.is_over, true);
    if !has_operation {
        draft.state.host.kdump = None;
    }
    if is_news {
        let data = json!({ "since": since, "last_message_at": last_at });
        draft.event(EventKind::HostKdumpEnded, data);
    }
}

/// Until when, at the latest, a dump of the host holds a task of the operation.
pub(super) fn holds(draft: &Draft, operation: &Operation, kind: TaskKind) -> Option<Timestamp> {
    let known = draft.state.host.kdump.as_ref()?;
    let timeout_s = draft.state.policy.fencing.kdump_timeout_s?;
    let until = after_s(known.since, timeout_s);
    let is_on = known.over_at() > draft.now && until > draft.now;
    let is_bound = kind == FencingKind::PowerOff && !is_asked_for(operation);
    (is_on && is_bound && on(Guard::KdumpHoldsPower)).then_some(until)
}

/// What a person asks for is held by nothing.
fn is_asked_for(operation: &Operation) -> bool {
    let fence = operation.fence();
    fence.is_some_and(|fence| fence.cause == Cause::Request || fence.is_wanted)
}

/// What a task that is held tells of it.
pub(super) fn told(draft: &Draft, until: Timestamp) -> String {
    let since = draft
        .state
        .host
        .kdump
        .as_ref()
        .map_or(draft.now, |known| known.since);
    format!(
        "is held while the host writes a crash dump, since {}, at the latest until {}",
        since.format("%FT%TZ"),
        until.format("%FT%TZ")
    )
}
