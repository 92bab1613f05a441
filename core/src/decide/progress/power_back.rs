//! The power that a fence may switch on again.

use crate::guard::{Guard, on};
use crate::{FencingKind, FrozenMethod, Host, Operation, OperationKind, Task};

/// The power that a fence may switch on again.
pub(in crate::decide) enum PowerBack {
    /// Not within a fence: the task knows its devices.
    AsPlanned,
    /// The devices that were seen off, and those that may be off: they were commanded, and not read back.
    To {
        seen_off: Vec<FrozenMethod>,
        may_be_off: Vec<FrozenMethod>,
    },
    /// None, and why.
    No(&'static str),
}

/// What a fence may switch on again: what it has seen off, once that (or something else) has made the host FENCED. Before
/// that the observation would be undone while it still has to count.
pub(in crate::decide) fn power_back(operation: &Operation, host: &Host) -> PowerBack {
    match operation.kind() {
        OperationKind::Rejoin | OperationKind::Evacuation => PowerBack::AsPlanned,
        OperationKind::Fence if host.current_fence().is_none() && on(Guard::PowerBackAfterFenced) => {
            PowerBack::No("the host was not FENCED by then")
        }
        OperationKind::Fence => match operation.seen_off() {
            Some(seen_off) => PowerBack::To {
                seen_off: seen_off.to_vec(),
                may_be_off: may_be_off(host, seen_off),
            },
            None if goes_on(operation) => PowerBack::AsPlanned,
            None => PowerBack::No("power.off was not confirmed"),
        },
    }
}

/// Whether it was restored from the record of its host, and was told what to switch on.
fn goes_on(operation: &Operation) -> bool {
    let mut fencing = operation.tasks().filter_map(Task::as_fencing);
    fencing.any(|task| task.kind == FencingKind::PowerOn && !task.levels.is_empty())
}

/// Devices of the host's power that a fence has commanded, beside those that were seen off. A fence that went on to another level has left
/// them as they are.
pub(in crate::decide) fn may_be_off(host: &Host, seen_off: &[FrozenMethod]) -> Vec<FrozenMethod> {
    let power = host
        .applied
        .fencing
        .iter()
        .filter(|one| one.kind == FencingKind::PowerOff);
    let methods = power.map(|one| &one.method);
    methods
        .filter(|method| !seen_off.contains(method))
        .cloned()
        .collect()
}

/// A task for each of these devices.
pub(in crate::decide) fn switch_on_each(methods: Vec<FrozenMethod>) -> impl Iterator<Item = Task> {
    let tasks = methods.into_iter();
    tasks.map(|method| Task::fencing(FencingKind::PowerOn, vec![vec![method]]))
}
