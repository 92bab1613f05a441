//! Whether a stage may begin, and what it waits for until then.

use crate::decide::draft::after_s;
use crate::decide::{Draft, EVACUATION_HELD_S, evacuation};
use crate::guard::{Guard, on};
use crate::{
    Awaits, FailureState, FencingKind, OldBoot, Operation, OperationKind, SegmentPolicy, Stage, Task,
    TaskStatus, Timestamp,
};

/// Whether a stage may begin.
pub(super) enum Wait {
    Ready,
    Not,
    GiveUp(String),
}

pub(super) fn may_begin(draft: &mut Draft, operation: &mut Operation, index: usize) -> Wait {
    let now = draft.now;
    let is_fence = operation.kind() == OperationKind::Fence;
    let stage = &mut operation.stages[index];
    if is_fence
        && stage.tasks.iter().any(|task| task.kind() == FencingKind::PowerOn)
        && !power_may_come(draft, &operation.policy, stage)
    {
        return Wait::Not;
    }
    let entered_at = *stage.entered_at.get_or_insert(now);
    let begins_at = after_s(entered_at, stage.delay_s);
    if begins_at > now {
        draft.wake(begins_at);
        return Wait::Not;
    }
    match stage.awaits {
        None => Wait::Ready,
        Some(Awaits::SelfFencing) => await_self_fencing(draft, operation),
        Some(Awaits::Fenced) if draft.state.host.current_fence().is_some() => Wait::Ready,
        Some(Awaits::Fenced) if on(Guard::BackendAwaitsFenced) => Wait::Not,
        Some(Awaits::Fenced) => Wait::Ready,
        Some(Awaits::HostBack) => await_host(
            draft,
            operation,
            after_s(entered_at, operation.policy.rejoin_wait_s),
        ),
    }
}

/// A host that starts may start again what is to be started elsewhere: that comes first. If it cannot be told for long whether it can
/// begin, the power stays off until a rejoin.
fn power_may_come(draft: &mut Draft, policy: &SegmentPolicy, stage: &mut Stage) -> bool {
    if !evacuation::is_expected_by(&draft.state, policy) || !on(Guard::PowerWaitsForEvacuation) {
        return true;
    }
    let Some(fenced_at) = draft.state.host.fence.as_ref().map(|fence| fence.at) else {
        return true;
    };
    let until = after_s(fenced_at, EVACUATION_HELD_S);
    if until > draft.now {
        draft.wake(until);
        return false;
    }
    for task in stage
        .tasks
        .iter_mut()
        .filter(|task| task.kind() == FencingKind::PowerOn)
    {
        task.status = TaskStatus::Skipped;
        task.detail = Some(format!(
            "its workloads are to be started elsewhere, and for {EVACUATION_HELD_S} s it was not known whether the host is silent"
        ));
    }
    true
}

fn await_self_fencing(draft: &mut Draft, operation: &Operation) -> Wait {
    let host = &draft.state.host;
    let (Some(timeout_s), Some(fence)) = (operation.policy.self_fencing_timeout_s, &host.fence) else {
        return Wait::Ready;
    };
    let due = after_s(fence.at, timeout_s);
    let is_booted =
        host.sources.has_booted_since(fence.at, draft.state.clock_set_at) || operation.is_boot_confirmed();
    if due <= draft.now || is_booted || !on(Guard::RejoinAwaitsSelfFencing) {
        return Wait::Ready;
    }
    draft.wake(due);
    Wait::Not
}

fn await_host(draft: &mut Draft, operation: &mut Operation, until: Timestamp) -> Wait {
    let taking = draft.state.host.fencing_in_flight(draft.now).cloned();
    let taking = taking.filter(|_| on(Guard::RejoinAwaitsFencing));
    let host = &draft.state.host;
    let old_boot = host
        .old_boot(draft.state.clock_set_at)
        .filter(|_| !operation.is_boot_confirmed());
    let missing = if let Some(f) = taking {
        draft.wake(f.until);
        format!("a {} may still be carried out", f.kind)
    } else if !host.is_seen_back(draft.state.clock_set_at) && on(Guard::RejoinAwaitsHost) {
        match host.failure_state {
            FailureState::Up => {
                "the host was last seen UP before it was fenced or switched off, and not since".to_owned()
            }
            FailureState::Unreachable | FailureState::Unknown => not_up(operation, host.failure_state),
        }
    } else {
        match old_boot {
            None => return Wait::Ready,
            Some(OldBoot::CutOff) => {
                "the host was cut off from storage or network and has shown no boot that began after that".to_owned()
            }
            Some(OldBoot::OutlivedItsStop) => {
                "the host runs a boot from before it was proven to have stopped: what proved that may not tell the truth"
                    .to_owned()
            }
        }
    };
    if until <= draft.now {
        return Wait::GiveUp(missing);
    }
    draft.wake(until);
    operation.detail = format!("waiting: {missing}");
    Wait::Not
}

/// A host that was not given its power cannot be UP: that is what has to be mended.
fn not_up(operation: &Operation, seen: FailureState) -> String {
    let is_off = |task: &&Task| task.kind() == FencingKind::PowerOn && task.status == TaskStatus::Failed;
    let power = operation.tasks().find(is_off).map(why_failed);
    let power = power.map(|why| format!("{why}; ")).unwrap_or_default();
    format!("{power}the host is {seen}, not UP")
}

/// The task and its reason, for a person.
pub(super) fn why_failed(task: &Task) -> String {
    format!(
        "{} failed: {}",
        task.kind(),
        task.detail.as_deref().unwrap_or("no detail")
    )
}
