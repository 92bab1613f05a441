//! What is left of a fence that makes way for an evacuation.

use crate::decide::progress;
use crate::{FencingKind, FencingTask, FrozenTask, Host, Operation, OperationKind, Task, TaskWork};

/// What is left to do on the devices of a FENCED host, by its live operation.
pub(crate) fn left_to_do(live: &Operation, host: &Host) -> Vec<FrozenTask> {
    if host.current_fence().is_none() {
        return Vec::new();
    }
    let left = match live.kind() {
        OperationKind::Fence => left_by_the_fence(Some(live), host),
        OperationKind::Evacuation => live
            .tasks()
            .filter(|task| !task.status.is_over())
            .cloned()
            .collect(),
        OperationKind::Rejoin => Vec::new(),
    };
    let frozen = |task: &Task| {
        let FencingTask { kind, levels, .. } = task.as_fencing()?;
        Some(FrozenTask {
            kind: *kind,
            levels: levels.clone(),
        })
    };
    left.iter().filter_map(frozen).collect()
}

/// What is not over of a fence that is proven, to be done by attempts of its own. Power comes back only to devices that were seen off,
/// and when everything else is over; if that is still being tried, it stays for the rejoin.
pub(super) fn left_by_the_fence(fence: Option<&Operation>, host: &Host) -> Vec<Task> {
    let Some(fence) = fence.filter(|live| live.kind() == OperationKind::Fence) else {
        return Vec::new();
    };
    let is_open = |task: &&Task| !task.status.is_over();
    // One of its kind that is over comes along without its attempts, which are the fence's: without it the others prove nothing.
    let is_over_beside = |task: &&Task| {
        let mut open = fence.tasks().filter(is_open);
        task.status.is_over() && open.any(|other| other.kind() == task.kind())
    };
    let left = fence.tasks().filter(|task| is_open(task) || is_over_beside(task));
    left.filter_map(|task| Some((task, task.as_fencing()?)))
        .flat_map(|(task, fencing)| taken_over(task, fencing, fence, host))
        .collect()
}

fn taken_over(task: &Task, fencing: &FencingTask, fence: &Operation, host: &Host) -> Vec<Task> {
    match fencing.kind {
        FencingKind::PowerOff | FencingKind::StorageFence | FencingKind::NetworkFence
            if task.status.is_over() =>
        {
            vec![Task {
                attempts: Vec::new(),
                first_attempt: 0,
                ..task.clone()
            }]
        }
        FencingKind::PowerOff | FencingKind::StorageFence | FencingKind::NetworkFence => {
            let work = TaskWork::Fencing(FencingTask {
                contradicted: 0,
                ..fencing.clone()
            });
            vec![Task {
                work,
                ..Task::fencing(fencing.kind, Vec::new())
            }]
        }
        // It had begun, and knows its devices.
        FencingKind::PowerOn if !fencing.levels.is_empty() => {
            vec![Task::fencing(fencing.kind, fencing.levels.clone())]
        }
        FencingKind::PowerOn => {
            let Some(seen_off) = fence.seen_off() else {
                return Vec::new();
            };
            let own = Task::fencing(fencing.kind, vec![seen_off.to_vec()]);
            let others = progress::switch_on_each(progress::may_be_off(host, seen_off));
            std::iter::once(own).chain(others).collect()
        }
        FencingKind::StorageUnfence | FencingKind::NetworkUnfence => Vec::new(),
    }
}
