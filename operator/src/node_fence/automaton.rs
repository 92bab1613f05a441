//! The steps and states of a fence in the terms of the proposal "Node fencing" for Kubernetes, from what the database says.

use ringfence_core::{
    AttemptStatus, FencingKind, Host, Operation, OperationKind, OperationStatus, StepKind, Task,
};
use serde::{Deserialize, Serialize};

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Step {
    /// The node is kept from taking pods, and cut off from storage and network.
    Isolation,
    /// The node's power is taken away.
    #[serde(rename = "Power-Management")]
    PowerManagement,
    /// The node is taken back.
    Recovery,
}

/// Where the fence of a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Stands {
    /// The node is not isolated yet.
    New,
    /// The node is isolated, and nothing is proven yet.
    Running,
    /// The node is FENCED, and may be recovered.
    Done,
    /// The node was taken back.
    Final,
    /// A step has failed, or was stopped.
    Error,
}

#[cfg(test)]
impl Step {
    pub const ALL: [Self; 3] = [Self::Isolation, Self::PowerManagement, Self::Recovery];
}

#[cfg(test)]
impl Stands {
    pub const ALL: [Self; 5] = [Self::New, Self::Running, Self::Done, Self::Final, Self::Error];
}

/// The step and the state of a host whose last fence or rejoin is this.
pub(crate) fn place(host: &Host, last: Option<&Operation>) -> (Step, Stands) {
    let is_fenced = host.fence.is_some();
    let Some(last) = last else {
        // Its operations are older than the records that are kept.
        return match is_fenced {
            true => (Step::PowerManagement, Stands::Done),
            false => (Step::Isolation, Stands::New),
        };
    };
    match (last.kind(), last.status) {
        (OperationKind::Rejoin, OperationStatus::Running | OperationStatus::Held) => {
            (Step::Recovery, Stands::Done)
        }
        (OperationKind::Rejoin, OperationStatus::NeedsOperator) => (Step::Recovery, Stands::Error),
        (OperationKind::Rejoin, OperationStatus::Succeeded | OperationStatus::Cancelled) => {
            let stands = if is_fenced { Stands::Error } else { Stands::Final };
            (Step::Recovery, stands)
        }
        (OperationKind::Fence | OperationKind::Evacuation, status) => of_fence(host, last, status),
    }
}

fn of_fence(host: &Host, fence: &Operation, status: OperationStatus) -> (Step, Stands) {
    let reached = reached(fence);
    if host.current_fence().is_some() {
        return (reached, Stands::Done);
    }
    match status {
        OperationStatus::NeedsOperator | OperationStatus::Cancelled => (reached, Stands::Error),
        OperationStatus::Running | OperationStatus::Held | OperationStatus::Succeeded => {
            match is_isolated(fence) {
                true => (reached, Stands::Running),
                false => (Step::Isolation, Stands::New),
            }
        }
    }
}

/// Whether the node takes no pods any more, or that was left behind: no proof rests on it.
fn is_isolated(fence: &Operation) -> bool {
    let isolation = fence.tasks().find(|task| task.kind() == StepKind::Isolate);
    isolation.is_none_or(|task| task.status.is_over()) || fence.tasks().any(has_ended_on_a_device)
}

fn has_ended_on_a_device(task: &Task) -> bool {
    let has_ended = |state: &AttemptStatus| matches!(state, AttemptStatus::Ended { .. });
    task.as_fencing().is_some() && task.attempts.iter().any(|attempt| has_ended(&attempt.state))
}

/// The step that a fence has reached: the last one of those that it is made of once the node is isolated.
fn reached(fence: &Operation) -> Step {
    let has_power = fence.tasks().any(|task| task.kind() == FencingKind::PowerOff);
    match has_power && is_isolated(fence) {
        true => Step::PowerManagement,
        false => Step::Isolation,
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::{Outcome, TaskStatus, WorkloadStep};

    use super::*;
    use crate::samples::{ended, fence, host, rejoin};

    fn isolation(status: TaskStatus) -> Task {
        Task {
            status,
            ..Task::step(WorkloadStep::Isolate { one_by_one: false })
        }
    }

    fn device(kind: FencingKind, outcome: Option<Outcome>) -> Task {
        Task {
            status: TaskStatus::Running,
            attempts: outcome.map(ended).into_iter().collect(),
            ..Task::fencing(kind, Vec::new())
        }
    }

    #[test]
    fn a_fence_goes_from_isolation_to_power_and_ends_done() {
        use FencingKind::PowerOff;
        use OperationStatus::{NeedsOperator, Running, Succeeded};
        let begun = fence(
            Running,
            vec![isolation(TaskStatus::Running), device(PowerOff, None)],
        );
        assert_eq!(place(&host(false), Some(&begun)), (Step::Isolation, Stands::New));
        let isolated = fence(
            Running,
            vec![isolation(TaskStatus::Confirmed), device(PowerOff, None)],
        );
        assert_eq!(
            place(&host(false), Some(&isolated)),
            (Step::PowerManagement, Stands::Running)
        );
        for status in [Running, NeedsOperator, Succeeded] {
            let proven = fence(status, isolated.tasks().cloned().collect());
            assert_eq!(
                place(&host(true), Some(&proven)),
                (Step::PowerManagement, Stands::Done),
                "{status}"
            );
        }
    }

    #[test]
    fn an_isolation_that_cannot_be_done_holds_nothing_up() {
        let tasks = vec![
            isolation(TaskStatus::Running),
            device(FencingKind::PowerOff, Some(Outcome::Unknown)),
        ];
        let fence = fence(OperationStatus::Running, tasks);
        assert_eq!(
            place(&host(false), Some(&fence)),
            (Step::PowerManagement, Stands::Running)
        );
    }

    #[test]
    fn storage_and_network_are_isolation() {
        let tasks = vec![
            isolation(TaskStatus::Confirmed),
            device(FencingKind::StorageFence, None),
            device(FencingKind::NetworkFence, None),
        ];
        let running = fence(OperationStatus::Running, tasks);
        assert_eq!(
            place(&host(false), Some(&running)),
            (Step::Isolation, Stands::Running)
        );
        assert_eq!(
            place(&host(true), Some(&running)),
            (Step::Isolation, Stands::Done)
        );
    }

    #[test]
    fn a_fence_that_proves_nothing_is_an_error_at_the_step_that_it_has_reached() {
        let tasks = vec![
            isolation(TaskStatus::Confirmed),
            device(FencingKind::PowerOff, Some(Outcome::Unknown)),
        ];
        for status in [OperationStatus::NeedsOperator, OperationStatus::Cancelled] {
            let failed = fence(status, tasks.clone());
            assert_eq!(
                place(&host(false), Some(&failed)),
                (Step::PowerManagement, Stands::Error),
                "{status}"
            );
        }
    }

    #[test]
    fn a_rejoin_ends_final_or_in_an_error() {
        use OperationStatus::{Cancelled, NeedsOperator, Running, Succeeded};
        let cases = [
            (true, Running, Stands::Done),
            (true, NeedsOperator, Stands::Error),
            (true, Cancelled, Stands::Error),
            (false, Running, Stands::Done),
            (false, Succeeded, Stands::Final),
            (false, Cancelled, Stands::Final),
        ];
        for (fenced, status, stands) in cases {
            let placed = place(&host(fenced), Some(&rejoin(status)));
            assert_eq!(placed, (Step::Recovery, stands), "fenced {fenced}, {status}");
        }
    }

    #[test]
    fn what_is_older_than_the_records_is_told_by_the_host_alone() {
        assert_eq!(place(&host(true), None), (Step::PowerManagement, Stands::Done));
        assert_eq!(place(&host(false), None), (Step::Isolation, Stands::New));
    }
}
