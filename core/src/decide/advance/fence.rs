//! How a fence goes on.

use super::stages::{Stages, run_beside, run_next_stage};
use super::{needs_operator, set_detail};
use crate::decide::draft::after_ms;
use crate::decide::fence::isolates;
use crate::decide::{AUTO_FENCE_AGAIN_MS, Draft, held, kdump_proof, pause, proof};
use crate::guard::{Guard, on};
use crate::{Awaits, OperationStatus, TaskStatus};

pub(super) fn go_on(draft: &mut Draft) {
    // While it is held, not even the host's own watchdog opens one gate more.
    let held = draft
        .live()
        .filter(|live| live.is_held() && on(Guard::BrakeHolds));
    let is_held = held.is_some();
    // A suspension that began after a person's word was heard holds what comes of that word, too.
    let stands_still = held.is_some_and(|live| pause::stands_still(draft, live));
    if is_held && !stands_still {
        // All that it can have won is a person's word.
        proof::settle(draft);
    }
    if is_held && (stands_still || draft.state.host.current_fence().is_none()) {
        if let Some(at) = held::look_due(draft.live()) {
            // An engine may have to ask others first, which takes a while.
            let again = after_ms(draft.now, AUTO_FENCE_AGAIN_MS);
            draft.wake(if at > draft.now { at } else { again });
        }
        return;
    }
    loop {
        // A proof can end the wait for an operator, and decides whether power may come back: look before each stage.
        proof::collect(draft);
        let is_isolated = isolate(draft);
        let Some(live) = draft.live() else { return };
        let is_fenced = draft.state.host.current_fence().is_some();
        let waits = matches!(
            live.status,
            OperationStatus::NeedsOperator | OperationStatus::Held
        );
        if waits && !is_fenced && proof::settles_at(draft).is_none() {
            return;
        }
        if waits {
            // It runs again, and what has to be read again is begun now.
            resume(draft);
            continue;
        }
        let is_told = tell_backend(draft);
        match run_next_stage(draft) {
            Stages::Moved => {}
            Stages::Busy => {
                proof::collect(draft);
                tell_backend(draft);
                return;
            }
            Stages::Stuck(why) => return needs_operator(draft, why),
            Stages::Over if draft.state.host.current_fence().is_none() => return wait_or_ask(draft),
            Stages::Over if is_told && is_isolated => return proof::succeed(draft),
            Stages::Over => return,
        }
    }
}

/// A proof has come to an operation that waits for an operator.
fn resume(draft: &mut Draft) {
    if let Some(operation) = draft.state.operation.as_mut() {
        operation.status = OperationStatus::Running;
        operation.restart_at = None;
    }
    held::begins(draft);
}

/// Keeps workloads from starting on the host, beside whatever is still under way. `true` if nothing of it is left.
fn isolate(draft: &mut Draft) -> bool {
    run_beside(draft, |_, stage| isolates(stage))
}

/// Does what waits for FENCED, beside whatever is still under way. `true` if nothing of it is left.
fn tell_backend(draft: &mut Draft) -> bool {
    run_beside(draft, |_, stage| stage.awaits == Some(Awaits::Fenced))
}

/// Nothing is left to do and nothing is proven: the host's own watchdog may still prove it, or its crash kernel.
fn wait_or_ask(draft: &mut Draft) {
    let Some(operation) = draft.live() else { return };
    if let Some(at) = proof::settles_at(draft) {
        draft.wake(at);
        let at = at.format("%FT%TZ");
        return set_detail(
            draft,
            format!("proven; waiting until {at} for what the storage had accepted by then"),
        );
    }
    if let Some(until) = proof::awaits_silence(draft) {
        if until > draft.now {
            draft.wake(until);
            return set_detail(
                draft,
                "the host's power was read as off; waiting until no source sees the host UP".to_owned(),
            );
        }
        return needs_operator(
            draft,
            "the host's power was read as off, and the host is still seen UP: its device lies, or is the device of another host".to_owned(),
        );
    }
    let silent = proof::silence(draft);
    if let Some(silent) = silent.as_ref().filter(|silent| silent.lapses_at() > draft.now) {
        draft.wake(silent.lapses_at());
        let due = silent.due.format("%FT%TZ");
        return set_detail(
            draft,
            format!("waiting for a report of silence after {due}, the self-fencing timeout"),
        );
    }
    if let Some(until) = kdump_proof::awaited_until(draft) {
        draft.wake(until);
        return set_detail(
            draft,
            "waiting for a kdump message that the host sends after the fence has begun".to_owned(),
        );
    }
    let failed: Vec<_> = operation
        .tasks()
        .filter(|task| task.status == TaskStatus::Failed)
        .map(|task| {
            format!(
                "{} ({})",
                task.kind(),
                task.detail.as_deref().unwrap_or("no detail")
            )
        })
        .collect();
    let unproven: Vec<_> = operation
        .tasks()
        .filter(|task| task.status == TaskStatus::Confirmed && task.kind().proof_kind().is_some())
        .filter(|task| !proof::does_prove(task))
        .map(|task| task.kind().to_string())
        .collect();
    let has_plan = operation.fence().is_some_and(|fence| fence.plan.is_some());
    let why = if !has_plan {
        "no plan can be carried out: fence the host by hand and confirm it".to_owned()
    } else if operation.tasks().all(|task| task.kind().proof_kind().is_none()) {
        "the plan does nothing by itself: fence the host by hand and confirm it".to_owned()
    } else {
        let mut why = "no sufficient set was completed".to_owned();
        for (what, tasks) in [("failed", failed), ("done, which proves nothing", unproven)] {
            if !tasks.is_empty() {
                why.push_str(&format!("; {what}: {}", tasks.join("; ")));
            }
        }
        why
    };
    needs_operator(draft, why);
}
