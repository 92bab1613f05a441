//! Identifiers, generations and the time type.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A moment in UTC. The engine's clock makes it; `core` only compares it.
pub type Timestamp = chrono::DateTime<chrono::Utc>;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

uuid_id!(
    /// A host.
    HostId
);
uuid_id!(
    /// A segment: failure domain and policy group.
    SegmentId
);
uuid_id!(
    /// A configured way to do a task.
    MethodId
);
uuid_id!(
    /// A plan: how a group of hosts is fenced.
    PlanId
);
uuid_id!(
    /// A webhook that is told of events.
    SubscriptionId
);
uuid_id!(
    /// One fence, rejoin or evacuation of one host.
    OperationId
);

/// The segment that exists from the first start and takes hosts that name no other.
pub const DEFAULT_SEGMENT_ID: SegmentId = SegmentId(Uuid::from_u128(1));

/// The zone of hosts that name no other.
pub const DEFAULT_ZONE: &str = "default";

/// The counter that a new fence or rejoin advances. Everything done for it carries it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Generation(pub u32);

impl Generation {
    /// The generation after this one. Saturates: 2^32 fences of one host are out of reach.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An attempt is named by its operation and its number within it, so that naming one needs no randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptId {
    /// The operation that the attempt was made for.
    pub operation_id: OperationId,
    /// Counts from 1 within the operation.
    pub number: u32,
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.operation_id, self.number)
    }
}
