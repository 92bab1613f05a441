//! Problems of a host: what is counted of what happens to it.

use serde_json::Value;

use crate::{Event, EventKind, FailureState, words};

/// What is counted.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum HostProblem {
    /// The host became UNREACHABLE.
    Failed,
    /// The host became FENCED.
    Fenced,
    /// The host was taken back.
    Returned,
    /// A rule of the segment came to act on a condition of the host.
    Condition,
}

words!(HostProblem);

impl HostProblem {
    /// What an event of this kind with this data tells, if it is to be counted; the name of the condition goes with it.
    #[must_use]
    pub fn told_by(kind: EventKind, data: &Value) -> Option<(Self, Option<&str>)> {
        let text = |field: &str| data.get(field).and_then(Value::as_str);
        match kind {
            EventKind::HostFenced => Some((Self::Fenced, None)),
            EventKind::HostUnfenced => Some((Self::Returned, None)),
            EventKind::HostFailureState => {
                (text("to") == Some(FailureState::Unreachable.as_str())).then_some((Self::Failed, None))
            }
            EventKind::HostCondition => text("action").map(|_| (Self::Condition, text("condition"))),
            EventKind::HostCreated
            | EventKind::HostUpdated
            | EventKind::HostDeleted
            | EventKind::HostQuarantined
            | EventKind::HostQuarantineEnded
            | EventKind::HostAlarmBegan
            | EventKind::HostAlarmEnded
            | EventKind::HostKdumpBegan
            | EventKind::HostKdumpEnded
            | EventKind::HostSuspended
            | EventKind::HostResumed
            | EventKind::HostLeftOff
            | EventKind::OperationStarted
            | EventKind::OperationHeld
            | EventKind::OperationReleased
            | EventKind::OperationProof
            | EventKind::OperationNeedsOperator
            | EventKind::OperationRestarted
            | EventKind::OperationSucceeded
            | EventKind::OperationCancelled
            | EventKind::WorkloadMoving
            | EventKind::WorkloadMoved
            | EventKind::WorkloadNotMoved
            | EventKind::SubscriptionDisabled => None,
        }
    }
}

impl Event {
    /// The problem that it tells, and the name of the condition if it is one.
    #[must_use]
    pub fn problem(&self) -> Option<(HostProblem, Option<&str>)> {
        HostProblem::told_by(self.kind, &self.data)
    }
}
