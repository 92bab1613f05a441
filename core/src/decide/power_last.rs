//! Power comes back to an evacuated host last: one that starts may start again what it had.

use crate::{FencingKind, Operation, OperationKind, Task};

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

/// Every workload is elsewhere, or stays by somebody's wish: the host may start. `false` if its fence did not want that.
pub(super) fn give_back(operation: &mut Operation) -> bool {
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
