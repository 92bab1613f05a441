//! How far a remediation is, as its conditions tell it.

use ringfence_core::{HostState, Operation, OperationKind, OperationStatus};

use crate::refusal::Why;

/// How far a remediation is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It goes on.
    Processing(Why),
    /// The node is FENCED and its pods are gone, and it is taken back if that was asked for.
    Succeeded(Why),
    /// Nothing more comes of it by itself: another remediation may be tried.
    Failed(Why),
}

/// What is asked of the engine next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Evacuate,
    Rejoin,
}

/// How far a remediation is whose fence was asked for, and what comes next. `evacuation` is the last one since the fence.
pub(super) fn progress(
    state: &HostState,
    last: Option<&Operation>,
    evacuation: Option<&Operation>,
    is_taken_back: bool,
) -> (Progress, Option<Next>) {
    let Some(last) = last else {
        let why = Why::new(
            "Recorded",
            "its operations are older than the records that are kept",
        );
        return (Progress::Succeeded(why), None);
    };
    match last.kind() {
        OperationKind::Rejoin => (of_rejoin(state, last), None),
        OperationKind::Fence | OperationKind::Evacuation if state.host.current_fence().is_none() => {
            (of_fence(last), None)
        }
        OperationKind::Fence | OperationKind::Evacuation => after_fenced(state, evacuation, is_taken_back),
    }
}

fn of_fence(fence: &Operation) -> Progress {
    let why = |reason: &str| Why::new(reason, format!("fence {}: {}", fence.id, fence.detail));
    match fence.status {
        OperationStatus::NeedsOperator if fence.restart_at.is_none() => {
            Progress::Failed(why("FenceNeedsOperator"))
        }
        OperationStatus::Cancelled => Progress::Failed(why("FenceCancelled")),
        OperationStatus::Held => Progress::Processing(why("FenceHeld")),
        OperationStatus::Running | OperationStatus::NeedsOperator | OperationStatus::Succeeded => {
            Progress::Processing(why("Fencing"))
        }
    }
}

fn after_fenced(
    state: &HostState,
    evacuation: Option<&Operation>,
    is_taken_back: bool,
) -> (Progress, Option<Next>) {
    let generation = state.host.generation;
    let fenced = |what: &str| format!("the node is FENCED in generation {generation}, and {what}");
    let processing = |reason: &str, what: &str| Progress::Processing(Why::new(reason, fenced(what)));
    let is_fence_live = state
        .operation
        .as_ref()
        .is_some_and(|live| live.kind() == OperationKind::Fence);
    let Some(evacuation) = evacuation else {
        // What follows the fence by itself begins when the fence has ended.
        let next = (!is_fence_live).then_some(Next::Evacuate);
        return (processing("Evacuating", "its pods are to be deleted"), next);
    };
    match evacuation.status {
        OperationStatus::Running => (processing("Evacuating", "its pods are being deleted"), None),
        OperationStatus::Held => (processing("EvacuationHeld", &evacuation.detail), None),
        OperationStatus::NeedsOperator => {
            let message = fenced(&format!(
                "its pods could not all be deleted: {}",
                evacuation.detail
            ));
            (
                Progress::Failed(Why::new("EvacuationNeedsOperator", message)),
                None,
            )
        }
        OperationStatus::Succeeded | OperationStatus::Cancelled if is_taken_back => {
            let progress = Progress::Succeeded(Why::new("Fenced", fenced("its pods are gone")));
            (progress, Some(Next::Rejoin))
        }
        OperationStatus::Succeeded | OperationStatus::Cancelled => {
            let message = fenced("its pods are gone; the remediation does not take it back");
            (Progress::Succeeded(Why::new("Fenced", message)), None)
        }
    }
}

fn of_rejoin(state: &HostState, rejoin: &Operation) -> Progress {
    let why = |reason: &str| Why::new(reason, format!("rejoin {}: {}", rejoin.id, rejoin.detail));
    match rejoin.status {
        OperationStatus::NeedsOperator => Progress::Failed(why("RejoinNeedsOperator")),
        OperationStatus::Cancelled if state.host.fence.is_some() => Progress::Failed(why("RejoinCancelled")),
        OperationStatus::Running | OperationStatus::Held => Progress::Succeeded(why("Rejoining")),
        OperationStatus::Succeeded | OperationStatus::Cancelled => {
            Progress::Succeeded(Why::new("Unfenced", "the node was fenced and taken back"))
        }
    }
}

#[cfg(test)]
mod tests {
    use ringfence_core::SegmentPolicy;

    use super::*;
    use crate::samples::{evacuation, fence, host, rejoin};

    fn state(is_fenced: bool, live: Option<&Operation>) -> HostState {
        HostState::new(host(is_fenced), live.cloned(), SegmentPolicy::default())
    }

    /// Whether a remediation goes on, its reason, and what comes next.
    fn told((progress, next): (Progress, Option<Next>)) -> (&'static str, String, Option<Next>) {
        match progress {
            Progress::Processing(why) => ("processing", why.reason, next),
            Progress::Succeeded(why) => ("succeeded", why.reason, next),
            Progress::Failed(why) => ("failed", why.reason, next),
        }
    }

    fn of_fence(status: OperationStatus) -> (&'static str, String, Option<Next>) {
        let fence = fence(status, Vec::new());
        told(progress(&state(false, Some(&fence)), Some(&fence), None, true))
    }

    #[test]
    fn a_fence_that_proves_nothing_fails_and_has_no_next_step() {
        use OperationStatus::{Cancelled, NeedsOperator, Running};
        assert_eq!(of_fence(Running), ("processing", "Fencing".to_owned(), None));
        assert_eq!(
            of_fence(NeedsOperator),
            ("failed", "FenceNeedsOperator".to_owned(), None)
        );
        assert_eq!(of_fence(Cancelled), ("failed", "FenceCancelled".to_owned(), None));
    }

    #[test]
    fn nothing_is_deleted_or_taken_back_before_the_fence_is_proven_and_over() {
        let running = fence(OperationStatus::Running, Vec::new());
        let adds = progress(&state(true, Some(&running)), Some(&running), None, true);
        assert_eq!(told(adds), ("processing", "Evacuating".to_owned(), None));
        let over = fence(OperationStatus::Succeeded, Vec::new());
        let proven = progress(&state(true, None), Some(&over), None, true);
        assert_eq!(
            told(proven),
            ("processing", "Evacuating".to_owned(), Some(Next::Evacuate))
        );
    }

    #[test]
    fn a_node_is_taken_back_once_its_pods_are_gone_and_only_where_that_is_wanted() {
        use OperationStatus::{Held, NeedsOperator, Running, Succeeded};
        let over = fence(Succeeded, Vec::new());
        let after = |status, is_taken_back| {
            let evacuation = evacuation(status);
            told(progress(
                &state(true, None),
                Some(&over),
                Some(&evacuation),
                is_taken_back,
            ))
        };
        assert_eq!(
            after(Running, true),
            ("processing", "Evacuating".to_owned(), None)
        );
        assert_eq!(
            after(Held, true),
            ("processing", "EvacuationHeld".to_owned(), None)
        );
        assert_eq!(
            after(NeedsOperator, true),
            ("failed", "EvacuationNeedsOperator".to_owned(), None)
        );
        assert_eq!(
            after(Succeeded, true),
            ("succeeded", "Fenced".to_owned(), Some(Next::Rejoin))
        );
        assert_eq!(after(Succeeded, false), ("succeeded", "Fenced".to_owned(), None));
    }

    #[test]
    fn a_rejoin_that_fails_makes_the_remediation_fail_and_is_not_asked_for_again() {
        use OperationStatus::{Cancelled, NeedsOperator, Running, Succeeded};
        let cases = [
            (true, Running, "succeeded", "Rejoining"),
            (true, NeedsOperator, "failed", "RejoinNeedsOperator"),
            (true, Cancelled, "failed", "RejoinCancelled"),
            (false, Succeeded, "succeeded", "Unfenced"),
        ];
        for (is_fenced, status, how, reason) in cases {
            let rejoin = rejoin(status);
            let progress = progress(&state(is_fenced, None), Some(&rejoin), None, true);
            assert_eq!(told(progress), (how, reason.to_owned(), None), "{status}");
        }
    }
}
