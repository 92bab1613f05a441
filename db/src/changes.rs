//! What a transaction writes of hosts and all that belongs to them, and how it ends.

use std::future::Future;
use std::pin::Pin;

use ringfence_core::{AttemptId, HostId, HostState, Operation, OperationId, Proof, Timestamp};
use uuid::Uuid;

use crate::{AuditEntry, DbError, DeviceLease, HostWrite, NewEvent, NewPermit, NewReceipt, OutboxRow};

/// Everything that a transaction writes.
#[derive(Debug, Default)]
pub struct Changes<'a> {
    /// Devices to lease. Each is named once.
    pub leases: Vec<DeviceLease>,
    /// Permits to take.
    pub permits: Vec<NewPermit<'a>>,
    /// Operations that hold no permit any more.
    pub returned: Vec<OperationId>,
    /// For the requests with an idempotency key.
    pub receipts: Vec<NewReceipt<'a>>,
    /// Attempts whose leases end. A transaction leases devices or ends leases, and not both.
    pub released: Vec<AttemptId>,
    /// Operations that have changed, each with what is known of it in the database.
    pub changed_operations: Vec<(&'a Operation, &'a Operation)>,
    /// Operations that are new.
    pub new_operations: Vec<&'a Operation>,
    /// Proofs that were won; each kind once for a host and generation.
    pub proofs: Vec<(HostId, &'a Proof)>,
    /// Hosts that have changed; each once.
    pub hosts: Vec<HostWrite<'a>>,
    /// Events, in order.
    pub events: Vec<NewEvent>,
    /// Messages to publish after the commit.
    pub outbox: Vec<OutboxRow>,
    /// Lines of the audit trail, in order.
    pub audit: Vec<AuditEntry>,
    /// Nothing is changed if it is later than that by the database's clock, where hosts were read without a lock.
    pub not_after: Option<Timestamp>,
}

/// How a transaction ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything was written.
    Committed {
        /// Whether all processes hear of the events, which have their numbers. If not, they wait for [`crate::number_events`] on PostgreSQL.
        are_events_announced: bool,
    },
    /// Nothing was changed: a host is not as it was read, or something that a host was read without a lock for was not to be had.
    HostsChanged,
    /// Nothing was changed, because of this.
    Refused(NotHad),
}

/// What a transaction could not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotHad {
    /// Devices that are leased to other attempts.
    pub devices: Vec<String>,
    /// Operations for which there is no permit.
    pub operations: Vec<OperationId>,
    /// Tries that do not have their idempotency key any more, or whose key has a receipt.
    pub holders: Vec<Uuid>,
}

impl NotHad {
    pub(crate) fn is_empty(&self) -> bool {
        self.devices.is_empty() && self.operations.is_empty() && self.holders.is_empty()
    }
}

impl Ended {
    /// There was nothing to write.
    pub const NOTHING: Self = Self::Committed {
        are_events_announced: false,
    };
}

/// What is awaited.
pub type Ending<'a> = Pin<Box<dyn Future<Output = Result<Ended, DbError>> + Send + 'a>>;

/// A transaction that changes hosts. Dropped, it changes nothing.
pub trait HostTransaction: Send {
    /// Writes changes and commits them, all or nothing.
    ///
    /// # Errors
    /// The database refuses a change or is not there. If [`DbError::is_passing`], the commit may have been made even so.
    fn commit<'a>(self: Box<Self>, changes: &'a Changes<'a>) -> Ending<'a>;
}

/// Whether others are kept from changing hosts that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// They are not, and the commit tells whether they have. For one host, on PostgreSQL; SQLite has one writer.
    Optimistic,
    /// They are until the transaction ends.
    Pessimistic,
}

/// A transaction that has begun.
pub struct Begun {
    /// The hosts that are there, with all that decisions need.
    pub hosts: Vec<HostState>,
    /// When they were read, by the database's clock. `None` on SQLite, whose clock is this machine's, and where there is no host.
    pub read_at: Option<Timestamp>,
    /// How it goes on.
    pub transaction: Box<dyn HostTransaction>,
}
