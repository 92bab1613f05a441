//! An admin's word that applied fencing was released by hand, or is gone with its device.
//!
//! Without it a host whose switch was thrown away could never be taken back: nothing can observe what is not there any more.

use std::collections::BTreeSet;

use serde_json::json;

use crate::guard::{Guard, on};
use crate::{
    Actor, AppliedFencing, AttemptStatus, Generation, Host, Operation, OperationKind, OperationStatus,
    Refusal, Reply, Resource, StepKind, Task, TaskStatus, TaskWork, Timestamp,
};

use super::{Draft, retry};

/// Takes the named methods off the applied fencing, and off the rejoin that waits for them.
pub(super) fn confirm_released(
    draft: &mut Draft,
    generation: Generation,
    methods: &BTreeSet<String>,
    reason: &str,
    actor: &Actor,
) -> Result<Reply, Refusal> {
    if !actor.is_admin {
        return Err(Refusal::NeedsAdmin);
    }
    let current = draft.state.host.generation;
    if generation != current {
        return Err(Refusal::StaleGeneration {
            given: generation,
            current,
        });
    }
    refuse_if_fencing(draft)?;
    refuse_if_letting_go(draft)?;
    refuse_if_unknown(draft, methods)?;
    let now = draft.now;
    let host = &mut draft.state.host;
    if marked_by(host).is_some_and(|platform| methods.contains(&platform)) {
        host.applied.marked_down_by = None;
    }
    host.applied
        .fencing
        .retain(|s| !(counts(s) && methods.contains(&s.method.name)));
    host.released(now);
    draft.note(
        "applied_fencing.released",
        json!({ "generation": generation, "methods": methods, "reason": reason, "by": actor.name }),
    );
    let why = format!("released by hand, says {}: {reason}", actor.name);
    if let Some(operation) = draft.state.operation.as_mut().filter(|o| o.status.is_live()) {
        take_off(operation, methods, &why, draft.now);
    }
    if draft
        .live()
        .is_some_and(|live| live.status == OperationStatus::NeedsOperator)
    {
        retry::restart(draft, &why);
    }
    Ok(Reply::Done)
}

/// The platform that was told that the host is down, as the request names it.
fn marked_by(host: &Host) -> Option<String> {
    host.applied.marked_down_by?;
    Some(host.backend.label(host.cloud.as_deref()?))
}

/// Power holds no rejoin up: that the host is back is what counts there.
fn counts(applied: &AppliedFencing) -> bool {
    applied.kind.resource() != Resource::Power
}

/// A fence rests on the fencing that is applied: no method is released while the fence has to hold, or while more is being fenced.
fn refuse_if_fencing(draft: &Draft) -> Result<(), Refusal> {
    if let Some(live) = draft.live().filter(|live| live.kind() == OperationKind::Fence) {
        return Err(Refusal::live(live));
    }
    if draft.state.host.current_fence().is_some() && on(Guard::HandWaitsForRejoin) {
        return Err(Refusal::HostState(
            "FENCED, and what stands holds it; begin a rejoin first",
        ));
    }
    match draft.state.host.fencing_in_flight(draft.now) {
        Some(f) if on(Guard::HandWaitsForFencing) => Err(Refusal::FencingInFlight {
            kind: f.kind,
            generation: f.generation,
            until: f.until,
        }),
        Some(_) | None => Ok(()),
    }
}

/// An evacuation that was cancelled may still start workloads elsewhere, which the host must not write beside.
fn refuse_if_letting_go(draft: &Draft) -> Result<(), Refusal> {
    match draft.state.host.letting_go_in_flight(draft.now) {
        Some(f) if on(Guard::HandWaitsForSteps) => Err(Refusal::LettingGoInFlight {
            kind: f.kind,
            generation: f.generation,
            until: f.until,
        }),
        Some(_) | None => Ok(()),
    }
}

fn refuse_if_unknown(draft: &Draft, methods: &BTreeSet<String>) -> Result<(), Refusal> {
    let host = &draft.state.host;
    let methods_there = host
        .applied
        .fencing
        .iter()
        .filter(|s| counts(s))
        .map(|s| s.method.name.clone());
    let applied: BTreeSet<String> = methods_there.chain(marked_by(host)).collect();
    match methods.iter().find(|name| !applied.contains(*name)) {
        Some(method) => Err(Refusal::NotApplied {
            method: method.clone(),
            applied: if applied.is_empty() {
                "none".to_owned()
            } else {
                applied.into_iter().collect::<Vec<_>>().join(", ")
            },
        }),
        None => Ok(()),
    }
}

fn take_off(operation: &mut Operation, methods: &BTreeSet<String>, why: &str, now: Timestamp) {
    let platform = operation.platform.as_ref().map(|at| at.label());
    let open = operation.tasks_mut().filter(|task| {
        task.kind().releases()
            && task.kind().resource() != Resource::Power
            && task.status != TaskStatus::Confirmed
            && task.status != TaskStatus::Skipped
    });
    for task in open {
        withdraw(task, methods, now);
        let is_done = match &mut task.work {
            TaskWork::Fencing(fencing) => {
                for level in &mut fencing.levels {
                    level.retain(|method| !methods.contains(&method.name));
                }
                fencing.levels.iter().all(Vec::is_empty)
            }
            TaskWork::Step(mark) => {
                let is_mark = mark.step.kind() == StepKind::MarkUp;
                is_mark && platform.as_ref().is_some_and(|name| methods.contains(name))
            }
        };
        if is_done {
            task.status = TaskStatus::Skipped;
            task.detail = Some(why.to_owned());
        }
    }
    operation.updated_at = now;
}

/// An attempt that no worker has claimed yet need not be made any more.
fn withdraw(task: &mut Task, methods: &BTreeSet<String>, now: Timestamp) {
    for attempt in task
        .attempts
        .iter_mut()
        .filter(|a| methods.contains(&a.by.name()))
    {
        if matches!(attempt.state, AttemptStatus::Dispatched { .. }) {
            attempt.state = AttemptStatus::Cancelled { ended_at: now };
        }
    }
}
