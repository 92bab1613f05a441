//! Workloads that come onto a host after its evacuation has emptied it: a scheduler of its platform may not have seen yet that the host is
//! closed.

use crate::decide::list_workloads;
use crate::platform::platform_of;
use crate::{HostState, Movable, PlatformHost, Timestamp, Workload, WorkloadStep, movable_now};

/// What a platform is asked about a host that it may have bound workloads to again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookForLatecomers {
    /// The step, which only looks.
    pub step: WorkloadStep,
    /// The host, as the platform knows it.
    pub at: PlatformHost,
    /// Which workloads may be started elsewhere.
    pub movable: Movable,
}

/// The question whether workloads have come onto the host since its last evacuation emptied it. `None` where there can be none, or where that
/// evacuation did not end well: a person decides then. None begins by itself on a suspended host.
#[must_use]
pub fn look_for_latecomers(state: &HostState, now: Timestamp) -> Option<LookForLatecomers> {
    let live = state.operation.as_ref();
    let is_busy = live.is_some_and(|operation| operation.status.is_live());
    let is_emptied = state.host.good_fence().is_some_and(|fence| fence.is_emptied);
    let is_suspended = state.suspensions(now).next().is_some();
    if is_busy || is_suspended || !is_emptied || !state.host.backend.starts_by_itself() {
        return None;
    }
    Some(LookForLatecomers {
        step: list_workloads(&state.policy),
        at: platform_of(state)?,
        movable: movable_now(state, now)?,
    })
}

/// Whether one of these is to be started elsewhere, as the segment says.
#[must_use]
pub fn are_latecomers(state: &HostState, found: &[Workload]) -> bool {
    let policy = &state.policy.evacuation;
    found.iter().any(|workload| policy.leaves(workload).is_none())
}
