//! A fence that no person asked for and that safeguards hold: it is looked at again until it may begin, or is not wanted any more.

use serde_json::json;

use crate::group;
use crate::guard::{Guard, on};
use crate::safeguard::{LOOK_AGAIN_S, rulings};
use crate::{
    Asks, Cause, EventKind, FenceWork, Held, Neighbourhood, Operation, OperationStatus, Opinions, Permit,
    Reply, Ruling, Timestamp, Work,
};

use super::draft::{after_ms, after_s};
use super::{AUTO_FENCE_AGAIN_MS, Draft, auto_fence};

/// Those that hold an automatic fence of the host. Where others were not asked because something else holds it, that holds it alone: it keeps its place in the line.
pub(super) fn holding(
    draft: &Draft,
    cause: Cause,
    around: &Neighbourhood,
    opinions: &Opinions,
) -> Vec<Ruling> {
    let host = &draft.state.host;
    let all = rulings(
        &draft.state,
        cause,
        host.failure_state,
        around,
        opinions,
        draft.now,
    );
    let mut by: Vec<Ruling> = all.into_iter().filter(Ruling::holds).collect();
    let is_held_anyway = by.iter().any(|ruling| !ruling.safeguard.is_asked());
    if is_held_anyway && opinions.asked_at.is_none() {
        by.retain(|ruling| !ruling.safeguard.is_asked());
    }
    by
}

/// What a fence takes that begins now.
pub(super) fn permits(draft: &Draft, around: &Neighbourhood, opinions: &Opinions) -> Vec<Permit> {
    let policy = &draft.state.policy.fencing;
    let segment_id = draft.state.host.segment_id;
    let at_once = policy
        .at_once
        .map(|at_most| Permit::of_segment(segment_id, at_most));
    let per_minute = policy
        .per_minute
        .map(|at_most| Permit::of_minute(segment_id, draft.now, at_most));
    let groups = group::permits(policy, &draft.state.host.labels, around, draft.now);
    let all = at_once
        .into_iter()
        .chain(per_minute)
        .chain(groups)
        .chain(opinions.permits(draft.now));
    all.filter(|_| on(Guard::FenceTakesPermit)).collect()
}

/// Nothing of it begins until a look finds that no safeguard holds it, or a person says so. What a program asks for is held by nothing but the look that is to come: what safeguards
/// rest on does not come with the request.
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
    if by.is_empty() {
        return "its safeguards are looked at before it begins".to_owned();
    }
    let told: Vec<String> = by.iter().map(Ruling::told).collect();
    told.join("; ")
}

/// Begins it if nothing holds it any more. Too much may have failed meanwhile: then a person is asked. Its segment may not want it any more:
/// then it ends.
pub(super) fn look_again(draft: &mut Draft, around: &Neighbourhood, opinions: &Opinions) -> Reply {
    if look_due(draft.live()).is_none_or(|due| due > draft.now) {
        return Reply::AlreadySo;
    }
    let Some(fence) = draft.live().and_then(Operation::fence) else {
        return Reply::AlreadySo;
    };
    let (cause, asks) = (fence.cause, fence.asks);
    let is_midway = asks.is_some();
    if asks.is_some_and(|asks| is_late(draft, asks, around, opinions)) {
        return Reply::AlreadySo;
    }
    if !draft.state.policy.fencing.automatic && !is_midway && cause != Cause::Program {
        draft.end(
            OperationStatus::Cancelled,
            "the segment fences no host by itself any more".to_owned(),
        );
        draft.state.host.is_silence_answered = false;
        return Reply::Done;
    }
    let mut by = holding(draft, cause, around, opinions);
    if is_midway {
        // It has begun: what held its beginning alone holds it no more.
        let is_fenced = draft.state.host.current_fence().is_some();
        by.retain(|ruling| ruling.safeguard.holds_steps() && !is_fenced);
    }
    let is_held = draft.live().is_some_and(Operation::is_held);
    let held = draft.live().and_then(Operation::held);
    let is_told = held.is_some_and(|held| !held.by.is_empty());
    if !by.is_empty() && is_told {
        look_on(draft, by);
    } else if !by.is_empty() {
        hold(draft, by);
    } else if is_midway {
        go_on_with_next(draft, around, opinions, is_held);
    } else if let Some(why) = auto_fence::brake(draft, around) {
        // Nothing of it begins: a person is asked first.
        end_hold(draft);
        auto_fence::ask(draft, &why);
    } else {
        let taken = permits(draft, around, opinions);
        let until = allowed_until(draft, around, opinions);
        if let Some(fence) = fence_of(draft) {
            fence.permits = taken;
            fence.allowed_until = until;
        }
        release(draft);
    }
    Reply::Done
}

/// Whether the safeguards are looked at again before each step of the fence: what others say, and how many hosts of its groups are out of service, may have changed.
fn looks_at_steps(draft: &Draft) -> bool {
    let policy = &draft.state.policy.fencing;
    policy.asks_others() || policy.keeps_some(&draft.state.host.labels)
}

/// Whether others were asked, or the hosts counted, before the step was due, by another engine perhaps.
fn is_late(draft: &Draft, asks: Asks, around: &Neighbourhood, opinions: &Opinions) -> bool {
    let policy = &draft.state.policy.fencing;
    let is_before = |at: Option<Timestamp>| at.is_none_or(|at| at < asks.since);
    let is_old = policy.keeps_some(&draft.state.host.labels) && is_before(around.groups.counted_at);
    is_old || policy.asks_others() && is_before(opinions.asked_at)
}

/// Until when the first of its steps needs no further look.
pub(super) fn allowed_until(draft: &Draft, around: &Neighbourhood, opinions: &Opinions) -> Option<Timestamp> {
    let policy = &draft.state.policy.fencing;
    let asked = policy.asks_others().then(|| opinions.count_until());
    let counted = policy
        .keeps_some(&draft.state.host.labels)
        .then(|| around.groups.count_until());
    // The earlier one, and none where one of them is not known.
    asked.into_iter().chain(counted).min().flatten()
}

/// Whether a fence that has begun by itself has to wait before its next step: the safeguards are looked at before each. A host that is FENCED is
/// not waited for: its workloads may be started elsewhere by then.
pub(super) fn asks_first(draft: &mut Draft, operation: &mut Operation) -> bool {
    let now = draft.now;
    let is_bound =
        looks_at_steps(draft) && draft.state.host.current_fence().is_none() && on(Guard::AsksBeforeEachStep);
    let Work::Fence(fence) = &mut operation.work else {
        return false;
    };
    let is_allowed = fence.allowed_until.take().is_some_and(|until| now <= until);
    if !is_bound || fence.cause == Cause::Request || fence.is_wanted || is_allowed {
        fence.asks = None;
        return false;
    }
    let is_new = fence.asks.is_none();
    fence.asks.get_or_insert(Asks { since: now });
    "its safeguards are looked at before its next step".clone_into(&mut operation.detail);
    draft.wake(if is_new {
        now
    } else {
        after_ms(now, AUTO_FENCE_AGAIN_MS)
    });
    true
}

/// A person wants the live fence: others are not asked about its next steps.
pub(super) fn wanted(draft: &mut Draft) {
    if let Some(fence) = fence_of(draft) {
        fence.is_wanted = fence.cause != Cause::Request;
        fence.asks = None;
        draft.answer_silence();
    }
}

/// What holds the operation, in words: a person who wants it overrides that.
pub(super) fn overridden(live: &Operation) -> Vec<String> {
    let by = live.held().map(|held| held.by.iter().map(Ruling::told).collect());
    let brake = live.is_held_by_brake().then(|| vec![live.detail.clone()]);
    brake.or(by).unwrap_or_default()
}

/// Nothing holds its next step.
fn go_on_with_next(draft: &mut Draft, around: &Neighbourhood, opinions: &Opinions, is_held: bool) {
    let until = allowed_until(draft, around, opinions);
    if let Some(fence) = fence_of(draft) {
        fence.asks = None;
        fence.allowed_until = until;
    }
    if is_held {
        release(draft);
    }
}

fn fence_of(draft: &mut Draft) -> Option<&mut FenceWork> {
    match draft.state.operation.as_mut().map(|live| &mut live.work) {
        Some(Work::Fence(fence)) => Some(fence),
        _ => None,
    }
}

/// When the safeguards of a live operation are looked at again, if they hold it.
#[must_use]
pub fn look_due(live: Option<&Operation>) -> Option<Timestamp> {
    let fence = live
        .filter(|live| live.status.is_live() && live.paused.is_none())?
        .fence()?;
    match &fence.held {
        Some(held) if held.by.is_empty() => Some(held.since),
        Some(held) => Some(after_s(held.looked_at, LOOK_AGAIN_S)),
        None => fence.asks.map(|asks| asks.since),
    }
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
    let now = draft.now;
    begins(draft);
    let Some(operation) = draft.state.operation.as_mut() else {
        return;
    };
    operation.status = OperationStatus::Running;
    operation.detail = "no safeguard holds it any more".to_owned();
    operation.updated_at = now;
    let data = json!({
        "operation_id": operation.id,
        "kind": operation.kind(),
        "generation": operation.generation,
        "detail": operation.detail,
    });
    draft.event(EventKind::OperationReleased, data);
}

/// It answers the silence of its host from now on, whatever becomes of it.
pub(super) fn begins(draft: &mut Draft) {
    end_hold(draft);
    draft.answer_silence();
}

fn end_hold(draft: &mut Draft) {
    if let Some(fence) = fence_of(draft) {
        fence.held = None;
    }
}
