//! Announcements to listeners whom the sender does not know.

use async_trait::async_trait;
use uuid::Uuid;

use crate::BusError;

/// Something that happened. Every listener gets it at least once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// Equal for every repetition.
    pub id: Uuid,
    /// By which listeners choose: words with dots between them, 255 bytes at most.
    pub routing_key: String,
    /// What kind of thing happened.
    pub kind: String,
    /// Of the body.
    pub content_type: &'static str,
    /// The text.
    pub body: Vec<u8>,
}

/// Where announcements are made.
#[async_trait]
pub trait Announcer: Send + Sync + 'static {
    /// Says them in this order. `Ok` once the broker has all of them for good; after an error some of them may have been said,
    /// and all have to be said again. If [`BusError::is_of_the_message`] says so, one of them can never be said.
    async fn announce(&self, announcements: &[Announcement]) -> Result<(), BusError>;
}
