//! Events: what subscribers are told, written in the same transaction as the change.

use std::fmt;

use serde_json::Value;

use crate::host::words;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// A host was added.
    HostCreated,
    /// A host's description was changed.
    HostUpdated,
    /// A host was removed.
    HostDeleted,
    /// The observers see something else than before.
    HostFailureState,
    /// A fence was proven.
    HostFenced,
    /// The host was taken back.
    HostUnfenced,
    /// Power was to be given back within a fence, and was not seen to be on.
    HostLeftOff,
    /// An operation began.
    OperationStarted,
    /// One more proof was won.
    OperationProof,
    /// The operation waits for a person.
    OperationNeedsOperator,
    /// The operation tries again.
    OperationRestarted,
    /// The operation is done.
    OperationSucceeded,
    /// The operation was stopped.
    OperationCancelled,
    /// A worker has begun to start a workload elsewhere.
    WorkloadMoving,
    /// A workload was seen elsewhere, or is no more.
    WorkloadMoved,
    /// A workload could not be started elsewhere.
    WorkloadNotMoved,
    /// A subscription is not delivered to any more.
    SubscriptionDisabled,
}

words!(EventKind {
    HostCreated => "host.created",
    HostUpdated => "host.updated",
    HostDeleted => "host.deleted",
    HostFailureState => "host.failure_state",
    HostFenced => "host.fenced",
    HostUnfenced => "host.unfenced",
    HostLeftOff => "host.left_off",
    OperationStarted => "operation.started",
    OperationProof => "operation.proof",
    OperationNeedsOperator => "operation.needs_operator",
    OperationRestarted => "operation.restarted",
    OperationSucceeded => "operation.succeeded",
    OperationCancelled => "operation.cancelled",
    WorkloadMoving => "workload.moving",
    WorkloadMoved => "workload.moved",
    WorkloadNotMoved => "workload.not_moved",
    SubscriptionDisabled => "subscription.disabled",
});

/// One change of one host. The writer numbers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// What goes with it.
    pub data: Value,
}
