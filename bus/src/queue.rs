//! Queues, by what they carry.

use std::fmt;

use ringfence_core::Resource;

/// The queue that takes messages which were refused or delivered too often; an operator has to look at it.
pub const DEAD_LETTERS: &str = "ringfence.dead-letters";

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Queue {
    /// Work for the workers that serve a resource in a zone.
    Tasks {
        /// What the task acts on.
        resource: Resource,
        /// The part of the site from which the device can be reached.
        zone: String,
    },
    /// Questions to a device in a zone, outside any operation: validation of parameters, status checks.
    Devices {
        /// What the device acts on.
        resource: Resource,
        /// The part of the site from which the device can be reached.
        zone: String,
    },
    /// Claims and signs of life, for the engines.
    Claims,
    /// Results, for the engines.
    Results,
    /// Addresses from which kdump messages came, for the engines.
    Kdump,
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tasks { resource, zone } => write!(f, "ringfence.tasks.{}.{zone}", resource.as_str()),
            Self::Devices { resource, zone } => write!(f, "ringfence.devices.{}.{zone}", resource.as_str()),
            Self::Claims => f.write_str("ringfence.claims"),
            Self::Results => f.write_str("ringfence.results"),
            Self::Kdump => f.write_str("ringfence.kdump"),
        }
    }
}
