//! A report of one source.

use crate::{Boot, FailureState, Timestamp};

/// What one source says about a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What it saw.
    pub state: FailureState,
    /// Who it is.
    pub source: String,
    /// When it saw that. For `UP` a moment that the last sign of life came after, or the moment of the sign.
    pub observed_at: Timestamp,
    /// When it last had a sign of life of the host, where it reports something else than UP: that moment, or one that the sign came
    /// after. Without it a report of silence says nothing about the time before it.
    pub last_seen_at: Option<Timestamp>,
    /// A moment since which it has had none for certain; `last_seen_at` if that is not known to be earlier.
    pub silent_since: Option<Timestamp>,
    /// The boot that it saw.
    pub boot: Option<Boot>,
}

impl Report {
    /// The sign of life that it tells of.
    #[must_use]
    pub fn alive_at(&self) -> Option<Timestamp> {
        match self.state {
            FailureState::Up => Some(self.observed_at),
            FailureState::Unreachable | FailureState::Unknown => self.last_seen_at,
        }
    }
}
