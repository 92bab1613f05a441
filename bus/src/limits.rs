//! The bounds that both buses keep.

/// How often a message is delivered again before it goes to the dead letters: it is delivered at most once more than this.
pub const DELIVERY_LIMIT: u32 = 5;

/// The most messages that wait in one queue. A publish beyond it is refused with [`crate::BusError::Full`].
pub const MAX_QUEUE_LENGTH: usize = 10_000;

/// The most dead letters that are kept; the oldest make room.
pub const MAX_DEAD_LETTERS: usize = 1_000;

/// The most questions that one bus may have open.
pub const MAX_OPEN_QUESTIONS: usize = 10_000;
