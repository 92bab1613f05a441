//! Messages that nobody could deal with, for an operator to look at.

use async_trait::async_trait;

use crate::BusError;

/// A message that was refused or delivered too often. Nothing in it is believed: it may be forged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The message id that it carries, which need not be one of ours.
    pub id: String,
    /// The type that it claims.
    pub kind: String,
    /// The queue that it was in.
    pub queue: String,
    /// `rejected`, `delivery_limit`, `too_large`, `unreadable`, or another word of the broker's.
    pub reason: String,
    /// The size of its body when it was sent.
    pub bytes: u64,
    /// Its body; empty if that was larger than [`crate::MAX_BODY_BYTES`].
    pub body: Vec<u8>,
}

/// A bus whose dead letters can be looked at. Looking removes none.
#[async_trait]
pub trait DeadLetters: Send + Sync {
    /// How many there are.
    async fn dead_letter_count(&self) -> Result<u64, BusError>;

    /// The oldest `limit` of them, oldest first.
    async fn dead_letters(&self, limit: u16) -> Result<Vec<DeadLetter>, BusError>;
}
