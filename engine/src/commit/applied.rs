//! What came of a change.

use ringfence_core::{HostState, Reply};

/// A change that was committed.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The host and its operation as they are now.
    pub state: HostState,
    /// The answer to the request.
    pub answer: Reply,
}

/// What one try of a change came to.
pub(crate) enum Tried {
    /// It was decided and committed.
    Applied(Box<Applied>),
    /// A claim would have been granted, but its device is leased to another attempt.
    DeviceBusy,
}
