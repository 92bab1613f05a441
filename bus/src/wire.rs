//! Messages as they travel: a type, an id, a body and a signature.

use ringfence_core::AttemptId;
use uuid::Uuid;

use crate::{BusError, Queue, Trace};

/// The largest body, in bytes. A task carries one method, which validation bounds far below this.
pub const MAX_BODY_BYTES: usize = 256 * 1024;

/// For whom a message is signed, so that it cannot be used elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Audience {
    /// The consumers of a queue.
    Queue(Queue),
    /// The caller that asked the question with this message id.
    Reply(Uuid),
}

/// A message, not yet believed: read it with [`crate::Keys::open`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its own id.
    pub id: Uuid,
    /// Its type, as [`crate::Payload::KIND`].
    pub kind: String,
    /// JSON.
    pub body: Vec<u8>,
    /// The id of the key that it was signed with.
    pub key_id: String,
    /// HMAC-SHA-256 over type, id, audience and body.
    pub signature: Vec<u8>,
    /// The W3C `traceparent` of the span that it was sent in; not signed, only followed.
    pub trace: Option<String>,
}

impl Message {
    /// The trace that it was sent in. What it says of that is not signed and may be anything; where it is no trace, the attempt's
    /// own is taken.
    #[must_use]
    pub fn trace_of(&self, attempt: AttemptId) -> Trace {
        let carried = self.trace.as_deref().and_then(Trace::parse);
        carried.unwrap_or_else(|| Trace::of(attempt))
    }
}

pub(crate) fn check_size(bytes: usize) -> Result<(), BusError> {
    if bytes > MAX_BODY_BYTES {
        return Err(BusError::TooLarge {
            bytes,
            allowed: MAX_BODY_BYTES,
        });
    }
    Ok(())
}
