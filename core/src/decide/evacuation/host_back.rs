//! A host that is back, or of which it is not known whether it is silent.

use super::{gate, may_move, told};
use crate::decide::draft::after_s;
use crate::decide::{Draft, EVACUATION_HELD_S};
use crate::guard::{Guard, on};
use crate::{FailureState, FencingKind, Operation, OperationStatus, StepKind, Task};

/// Whether what was proven of the host has ended, so that nothing more of it may be started elsewhere.
pub(in crate::decide) fn is_back(draft: &Draft) -> bool {
    let host = &draft.state.host;
    host.failure_state == FailureState::Up || (host.is_back() && !is_started_by(draft.live()))
}

/// Whether the evacuation itself, with nothing left to move, has switched the power on.
fn is_started_by(live: Option<&Operation>) -> bool {
    let last = live.and_then(|live| live.stages.last());
    let mut tasks = last.into_iter().flat_map(|stage| &stage.tasks);
    tasks.any(|task| task.kind() == FencingKind::PowerOn)
}

/// Ends the evacuation of a host that is back, once no worker is at it any more. `true` if there is nothing else to do now.
pub(in crate::decide) fn stop_if_back(draft: &mut Draft) -> bool {
    if !is_back(draft) || !on(Guard::EvacuationEndsAtReturn) {
        return false;
    }
    let now = draft.now;
    let Some(operation) = draft.state.operation.as_mut() else {
        return true;
    };
    let is_at_it = |task: &Task| {
        let mut claimed = task.attempts.iter().filter(|attempt| attempt.is_open());
        task.kind() == StepKind::Move && claimed.any(|attempt| attempt.claimed_at.is_some())
    };
    if operation.tasks().any(is_at_it) {
        let detail = "the host is back; waiting for what is on its executor";
        if operation.detail != detail {
            detail.clone_into(&mut operation.detail);
            operation.updated_at = now;
        }
        return true;
    }
    let detail = format!("the host is back; {}", told(operation));
    draft.end(OperationStatus::Cancelled, detail);
    true
}

/// While no source can tell whether the host is silent, no move begins; but not for ever.
pub(in crate::decide) fn hold(draft: &mut Draft) -> Option<String> {
    let is_open = may_move(draft);
    let now = draft.now;
    let is_starting = is_started_by(draft.live());
    let evacuation = draft.state.operation.as_mut()?.evacuation_mut()?;
    if is_open || is_starting {
        evacuation.held_since = None;
        return None;
    }
    let since = *evacuation.held_since.get_or_insert(now);
    let until = after_s(since, EVACUATION_HELD_S);
    if until <= now && on(Guard::HoldEnds) {
        evacuation.held_since = None;
        return Some(format!(
            "the gate has been closed for {EVACUATION_HELD_S} s: {}",
            gate(draft).reason
        ));
    }
    draft.wake(until);
    None
}
