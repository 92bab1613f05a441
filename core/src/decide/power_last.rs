//! Power comes back to an evacuated host last: one that starts may start again what it had.

use crate::{EventKind, FencingKind, Operation, OperationKind, Task, TaskStatus};

use serde_json::json;

use super::Draft;
use super::evacuation::{BESIDE, stage};

/// Whether a task of an evacuation waits until the workloads are elsewhere: a host that has power starts, and may start them again.
pub(super) fn waits(kind: OperationKind, task: &Task) -> bool {
    kind == OperationKind::Evacuation && task.kind() == FencingKind::PowerOn
}

/// Whether nothing but power is left of what the fence had to do.
pub(super) fn is_all_that_is_left(operation: &Operation) -> bool {
    let beside = operation.stages.get(BESIDE);
    let mut open = beside.into_iter().flat_map(|stage| &stage.tasks);
    open.all(|task| task.status.is_over() || waits(operation.kind(), task))
}

/// Reports devices that were to switch the power on, and were not read as on; returns the text for the operation's detail.
pub(super) fn tell_left_off(draft: &mut Draft) -> String {
    let tasks = draft.live().into_iter().flat_map(Operation::tasks);
    let is_off = |task: &&Task| task.kind() == FencingKind::PowerOn && task.status == TaskStatus::Failed;
    let why: Vec<&str> = tasks
        .filter(is_off)
        .map(|task| task.detail.as_deref().unwrap_or("no detail"))
        .collect();
    if why.is_empty() {
        return String::new();
    }
    let why = why.join("; ");
    let told = format!("; the host may stay off: power.on failed ({why})");
    let data = json!({
        "operation_id": draft.live().map(|live| live.id),
        "generation": draft.state.host.generation,
        "detail": why,
    });
    draft.event(EventKind::HostLeftOff, data);
    told
}

/// Every workload is elsewhere, or stays because its owner or the segment wants it: the host may start. `false` if its fence did not want that.
pub(super) fn release(operation: &mut Operation) -> bool {
    let Some(beside) = operation.stages.get_mut(BESIDE) else {
        return false;
    };
    let is_held = |task: &mut Task| task.kind() == FencingKind::PowerOn && !task.status.is_over();
    let held: Vec<Task> = beside.tasks.extract_if(.., is_held).collect();
    if held.is_empty() {
        return false;
    }
    operation.stages.push(stage(held));
    true
}
