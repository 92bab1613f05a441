//! Where the records of hosts outlive the database.

use std::fmt::Debug;

use async_trait::async_trait;
use ringfence_core::{HostId, Record, Timestamp};
use serde::{Deserialize, Serialize};

use crate::BackendError;

/// The record of one host, as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WrittenRecord {
    /// When, by the clock of the engine that wrote it.
    pub written_at: Timestamp,
    /// The record.
    pub host: Record,
}

/// Whose a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// This process may write it.
    Own,
    /// Another process has taken it over.
    Other,
}

/// A platform that keeps the records of its own hosts. One process at a time may write them.
#[async_trait]
pub trait Records: Send + Sync + Debug {
    /// The platform whose hosts have records.
    fn platform(&self) -> &str;

    /// Takes all records over, by the hosts' names in the platform: what another process writes from then on is refused.
    ///
    /// # Errors
    /// The platform is away or refuses, a record cannot be read, or yet another process takes the records over at this moment.
    async fn take_over(&self) -> Result<Vec<(String, WrittenRecord)>, BackendError>;

    /// Writes the record of a host, if it is this process's to write.
    ///
    /// # Errors
    /// The platform is away or refuses. The record may be written or not, and may be written again.
    async fn write(&self, host: &str, record: &WrittenRecord) -> Result<Writer, BackendError>;

    /// Who may write the record of a host.
    ///
    /// # Errors
    /// The platform is away or refuses, or there is no record.
    async fn writer(&self, host: &str) -> Result<Writer, BackendError>;

    /// Removes the record of a host that was removed, if it is of this host and this process's to write.
    ///
    /// # Errors
    /// The platform is away or refuses.
    async fn remove(&self, host: &str, id: HostId) -> Result<(), BackendError>;

    /// Whether this process leads, as the platform says at a moment after the call began. If so, no other process had begun to take the
    /// records over at that moment.
    ///
    /// # Errors
    /// The platform is away or refuses.
    async fn is_led_here(&self) -> Result<bool, BackendError>;
}
