//! Whether the storm brake would hold an automatic fence (S11).

use crate::{
    FailureState, FencingPolicy, FencingState, HostState, Neighbourhood, Operation, OperationKind, Timestamp,
    fence_due, unanswered_condition,
};

/// How the storm brake of the host's segment stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StormBrake {
    /// Its limits, and whether the segment wants silent hosts fenced without being asked.
    pub policy: FencingPolicy,
    /// How the hosts stand once this one is silent too.
    pub around: Neighbourhood,
    /// Why an automatic fence of the host would wait for a person; `None` if it would not.
    pub holds: Option<String>,
    /// When such a fence is due as things are.
    pub due_at: Option<Timestamp>,
}

impl StormBrake {
    pub(super) fn new(state: &HostState, around: Neighbourhood) -> Self {
        let policy = state.policy.fencing.clone();
        let around = around.with_silent(state);
        Self {
            holds: policy.brake(&around),
            due_at: fence_due(state),
            policy,
            around,
        }
    }
}

impl Neighbourhood {
    /// The neighbourhood once this host has fallen silent. A host that is already out of service is already counted.
    #[must_use]
    fn with_silent(self, state: &HostState) -> Self {
        let HostState { host, operation, .. } = state;
        let is_fence = |live: &Operation| live.status.is_live() && live.kind() == OperationKind::Fence;
        let is_out = host.failure_state == FailureState::Unreachable
            || host.fencing_state() == FencingState::Fenced
            || unanswered_condition(host).is_some()
            || operation.as_ref().is_some_and(is_fence);
        if is_out {
            return self;
        }
        Self {
            out_of_service: self.out_of_service + 1,
            lately: self.lately + 1,
            out_of_service_in_cloud: self.out_of_service_in_cloud + u64::from(host.cloud.is_some()),
            ..self
        }
    }
}
