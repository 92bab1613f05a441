//! What happens in a simulation.

use chrono::TimeDelta;
use ringfence_core::{ConditionStatus, FailureState, HostId, Timestamp};

/// The most that may happen in one story.
pub const MAX_HAPPENINGS: usize = 10_000;
/// The longest story.
pub const MAX_LASTS: TimeDelta = TimeDelta::days(7);

/// What happens, and when.
#[derive(Clone, Debug)]
pub struct Story {
    /// When it begins.
    pub begins_at: Timestamp,
    /// How long it is followed.
    pub lasts: TimeDelta,
    /// What happens.
    pub happenings: Vec<Happening>,
}

/// Something that happens to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happening {
    /// Since the beginning.
    pub after: TimeDelta,
    /// To which host.
    pub host_id: HostId,
    /// What.
    pub what: What,
}

/// What happens to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// All who watch it see it so. A host that is seen UP again has booted.
    Seen(FailureState),
    /// A source says that it has a condition.
    Condition {
        /// Who says so; the simulation where that is not known.
        source: Option<String>,
        /// Its name, as in `KernelDeadlock`.
        name: String,
        /// Whether that is so.
        status: ConditionStatus,
    },
    /// A person asks for its rejoin.
    Rejoin,
    /// A person, or a monitor, asks for its fence.
    Fence,
}
