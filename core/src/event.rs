//! Events: what subscribers are told, written in the transaction of the change.

use serde_json::Value;

use crate::words;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
pub enum EventKind {
    /// A host was added.
    #[strum(serialize = "host.created")]
    HostCreated,
    /// A host's description was changed.
    #[strum(serialize = "host.updated")]
    HostUpdated,
    /// A host was removed.
    #[strum(serialize = "host.deleted")]
    HostDeleted,
    /// The observers see something else than before.
    #[strum(serialize = "host.failure_state")]
    HostFailureState,
    /// A condition of the host has stood for as long as a rule of its segment says, or is no more.
    #[strum(serialize = "host.condition")]
    HostCondition,
    /// The host was fenced too often lately: it is taken back by a person alone.
    #[strum(serialize = "host.quarantined")]
    HostQuarantined,
    /// A person takes back a host that was in quarantine.
    #[strum(serialize = "host.quarantine_ended")]
    HostQuarantineEnded,
    /// A problem of the host has come as often as an alarm of its segment says.
    #[strum(serialize = "host.alarm_began")]
    HostAlarmBegan,
    /// The problem has become rarer than that, or the segment has no such alarm any more.
    #[strum(serialize = "host.alarm_ended")]
    HostAlarmEnded,
    /// Messages say that the host's kernel has crashed and that the host writes a dump.
    #[strum(serialize = "host.kdump_began")]
    HostKdumpBegan,
    /// No message of the host's crash dump comes any more.
    #[strum(serialize = "host.kdump_ended")]
    HostKdumpEnded,
    /// A person has suspended the host.
    #[strum(serialize = "host.suspended")]
    HostSuspended,
    /// The suspension of the host is over.
    #[strum(serialize = "host.resumed")]
    HostResumed,
    /// A fence was proven.
    #[strum(serialize = "host.fenced")]
    HostFenced,
    /// The host was taken back.
    #[strum(serialize = "host.unfenced")]
    HostUnfenced,
    /// Power was to be switched on within a fence, and was not read as on.
    #[strum(serialize = "host.left_off")]
    HostLeftOff,
    /// An operation began.
    #[strum(serialize = "operation.started")]
    OperationStarted,
    /// Safeguards hold the operation.
    #[strum(serialize = "operation.held")]
    OperationHeld,
    /// No safeguard holds the operation any more.
    #[strum(serialize = "operation.released")]
    OperationReleased,
    /// One more proof was won.
    #[strum(serialize = "operation.proof")]
    OperationProof,
    /// The operation waits for a person.
    #[strum(serialize = "operation.needs_operator")]
    OperationNeedsOperator,
    /// The operation tries again.
    #[strum(serialize = "operation.restarted")]
    OperationRestarted,
    /// The operation is done.
    #[strum(serialize = "operation.succeeded")]
    OperationSucceeded,
    /// The operation was stopped.
    #[strum(serialize = "operation.cancelled")]
    OperationCancelled,
    /// A worker has begun to start a workload elsewhere.
    #[strum(serialize = "workload.moving")]
    WorkloadMoving,
    /// A workload was seen elsewhere, or is no more.
    #[strum(serialize = "workload.moved")]
    WorkloadMoved,
    /// A workload could not be started elsewhere.
    #[strum(serialize = "workload.not_moved")]
    WorkloadNotMoved,
    /// A subscription is not delivered to any more.
    #[strum(serialize = "subscription.disabled")]
    SubscriptionDisabled,
}

words!(EventKind);

/// One change of one host. The writer numbers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// What goes with it.
    pub data: Value,
}
