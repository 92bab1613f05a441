//! A fence that was not asked for and that safeguards hold: it is looked at again until it may begin, or is not wanted any more.

use serde_json::json;

use crate::guard::{Guard, on};
use crate::safeguard::{LOOK_AGAIN_S, rulings};
use crate::{
    Cause, EventKind, Held, Neighbourhood, Operation, OperationStatus, Permit, Reply, Ruling, Timestamp, Work,
};

use super::draft::after_s;
use super::{Draft, auto_fence};

/// Those that hold an automatic fence of the host.
pub(super) fn holding(draft: &Draft, cause: Cause, around: Neighbourhood) -> Vec<Ruling> {
    let host = &draft.state.host;
    let all = rulings(&draft.state, cause, host.failure_state, around, draft.now);
    all.into_iter()
        .filter(|ruling| ruling.holds() && on(Guard::SafeguardsHold))
        .collect()
}

/// What a fence takes that begins now.
pub(super) fn permits(draft: &Draft) -> Vec<Permit> {
    let policy = &draft.state.policy.fencing;
    let segment_id = draft.state.host.segment_id;
    let at_once = policy
        .at_once
        .map(|at_most| Permit::of_segment(segment_id, at_most));
    let per_minute = policy
        .per_minute
        .map(|at_most| Permit::of_minute(segment_id, draft.now, at_most));
    let all = at_once.into_iter().chain(per_minute);
    all.filter(|_| on(Guard::FenceTakesPermit)).collect()
}

/// Nothing of it begins until a look finds that no safeguard holds it, or a person says so.
pub(super) fn hold(draft: &mut Draft, by: Vec<Ruling>) {
    let now = draft.now;
    let Some(operation) = draft.state.operation.as_mut() else {
        return;
    };
    let detail = told(&by);
    operation.status = OperationStatus::Held;
    operation.detail.clone_from(&detail);
    operation.updated_at = now;
    let data = json!({
        "operation_id": operation.id,
        "kind": operation.kind(),
        "generation": operation.generation,
        "detail": detail,
        "held_by": by,
    });
    if let Work::Fence(fence) = &mut operation.work {
        fence.held = Some(Held {
            since: now,
            looked_at: now,
            by,
        });
    }
    draft.event(EventKind::OperationHeld, data);
}

fn told(by: &[Ruling]) -> String {
    let told: Vec<String> = by.iter().map(Ruling::told).collect();
    told.join("; ")
}

/// Begins it if nothing holds it any more. Too much may have failed meanwhile: then a person is asked. Its segment may not want it any more:
/// then it ends.
pub(super) fn look_again(draft: &mut Draft, around: Neighbourhood) -> Reply {
    if look_due(draft.live()).is_none_or(|due| due > draft.now) {
        return Reply::AlreadySo;
    }
    if !draft.state.policy.fencing.automatic {
        draft.end(
            OperationStatus::Cancelled,
            "the segment fences no host by itself any more".to_owned(),
        );
        draft.state.host.is_silence_answered = false;
        return Reply::Done;
    }
    let cause = draft
        .live()
        .and_then(Operation::fence)
        .map_or(Cause::Silence, |fence| fence.cause);
    let by = holding(draft, cause, around);
    if !by.is_empty() {
        look_on(draft, by);
    } else if let Some(why) = auto_fence::brake(draft, around) {
        set_held(draft, None);
        auto_fence::ask(draft, &why);
    } else {
        release(draft);
    }
    Reply::Done
}

/// When the safeguards of a live operation are looked at again, if they hold it.
#[must_use]
pub fn look_due(live: Option<&Operation>) -> Option<Timestamp> {
    let held = live?.fence()?.held.as_ref()?;
    Some(after_s(held.looked_at, LOOK_AGAIN_S))
}

fn look_on(draft: &mut Draft, by: Vec<Ruling>) {
    let now = draft.now;
    let Some(operation) = draft.state.operation.as_mut() else {
        return;
    };
    if let Work::Fence(fence) = &mut operation.work
        && let Some(held) = &mut fence.held
    {
        held.looked_at = now;
        if held.by != by {
            operation.detail = told(&by);
            operation.updated_at = now;
            held.by = by;
        }
    }
}

fn release(draft: &mut Draft) {
    let (now, taken) = (draft.now, permits(draft));
    set_held(draft, None);
    let Some(operation) = draft.state.operation.as_mut() else {
        return;
    };
    operation.status = OperationStatus::Running;
    operation.detail = "no safeguard holds it any more".to_owned();
    operation.updated_at = now;
    if let Work::Fence(fence) = &mut operation.work {
        fence.permits = taken;
    }
    let data = json!({
        "operation_id": operation.id,
        "kind": operation.kind(),
        "generation": operation.generation,
        "detail": operation.detail,
    });
    draft.event(EventKind::OperationReleased, data);
}

fn set_held(draft: &mut Draft, held: Option<Held>) {
    if let Some(Work::Fence(fence)) = draft.state.operation.as_mut().map(|live| &mut live.work) {
        fence.held = held;
    }
}
