//! Kinds of tasks: fencing tasks on devices, and workload steps on a platform.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected};
use serde::{Deserialize, Serialize, Serializer};

use crate::{ObservedState, ProofKind, words};

/// What a task acts on.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
#[strum(serialize_all = "snake_case")]
pub enum Resource {
    /// The host's power supply.
    Power,
    /// The host's way to its volumes.
    Storage,
    /// The host's way to the data network.
    Network,
    /// The workloads that the host's platform has placed on the host.
    Workloads,
    /// Nothing: others are asked whether a fence may begin.
    Query,
    /// Nothing: it is read what hosts write to a shared storage.
    Heartbeat,
}

words!(Resource);

/// A task on devices: it takes something from a host, or releases it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
pub enum FencingKind {
    /// Take the power away from the host.
    #[strum(serialize = "power.off")]
    PowerOff,
    /// Give the power back.
    #[strum(serialize = "power.on")]
    PowerOn,
    /// Cut the host off from its volumes.
    #[strum(serialize = "storage.fence")]
    StorageFence,
    /// Connect the host to its volumes again.
    #[strum(serialize = "storage.unfence")]
    StorageUnfence,
    /// Cut the host off from the data network.
    #[strum(serialize = "network.fence")]
    NetworkFence,
    /// Connect the host to the data network again.
    #[strum(serialize = "network.unfence")]
    NetworkUnfence,
}

words!(FencingKind);

/// A step on the workloads of a host, which the host's platform carries out.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr, strum::VariantArray,
)]
pub enum StepKind {
    /// Keep workloads from starting on the host, before anything is proven.
    #[strum(serialize = "workloads.isolate")]
    Isolate,
    /// Tell the platform that the host is down: it places nothing there, and waits for nothing from there.
    #[strum(serialize = "workloads.mark-down")]
    MarkDown,
    /// Tell the platform to believe the host again.
    #[strum(serialize = "workloads.mark-up")]
    MarkUp,
    /// Find out which workloads belong to the host.
    #[strum(serialize = "workloads.list")]
    List,
    /// Start one workload elsewhere.
    #[strum(serialize = "workloads.move")]
    Move,
    /// See to it that nothing of the workloads that were moved is left with the host, such as an attached volume.
    #[strum(serialize = "workloads.empty")]
    Empty,
    /// Open a spare host to workloads.
    #[strum(serialize = "workloads.add-capacity")]
    AddCapacity,
    /// Remove what is left of workloads that were started elsewhere.
    #[strum(serialize = "workloads.clean-up")]
    CleanUp,
    /// Start the workloads that still belong to the host.
    #[strum(serialize = "workloads.start")]
    Start,
}

words!(StepKind);

/// One kind of thing to make true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskKind {
    /// On devices.
    Fencing(FencingKind),
    /// On a platform.
    Step(StepKind),
}

impl FencingKind {
    /// What the task acts on.
    #[must_use]
    pub fn resource(self) -> Resource {
        match self {
            Self::PowerOff | Self::PowerOn => Resource::Power,
            Self::StorageFence | Self::StorageUnfence => Resource::Storage,
            Self::NetworkFence | Self::NetworkUnfence => Resource::Network,
        }
    }

    /// Whether the task takes something away from the host.
    #[must_use]
    pub fn takes(self) -> bool {
        !self.releases()
    }

    /// Whether the task releases what a fence took.
    #[must_use]
    pub fn releases(self) -> bool {
        match self {
            Self::PowerOn | Self::StorageUnfence | Self::NetworkUnfence => true,
            Self::PowerOff | Self::StorageFence | Self::NetworkFence => false,
        }
    }

    /// The task that undoes this one.
    #[must_use]
    pub fn undone_by(self) -> Option<Self> {
        match self {
            Self::PowerOff => Some(Self::PowerOn),
            Self::StorageFence => Some(Self::StorageUnfence),
            Self::NetworkFence => Some(Self::NetworkUnfence),
            Self::PowerOn | Self::StorageUnfence | Self::NetworkUnfence => None,
        }
    }

    /// The kind of proof that the task gives when it was observed done.
    #[must_use]
    pub fn proof_kind(self) -> Option<ProofKind> {
        match self {
            Self::PowerOff => Some(ProofKind::PowerOff),
            Self::StorageFence => Some(ProofKind::StorageFence),
            Self::NetworkFence => Some(ProofKind::NetworkFence),
            Self::PowerOn | Self::StorageUnfence | Self::NetworkUnfence => None,
        }
    }

    /// What has to be read back for the task to count as done.
    #[must_use]
    pub fn wanted_state(self) -> ObservedState {
        match self {
            Self::PowerOff => ObservedState::Off,
            Self::PowerOn => ObservedState::On,
            Self::StorageFence | Self::NetworkFence => ObservedState::Fenced,
            Self::StorageUnfence | Self::NetworkUnfence => ObservedState::Unfenced,
        }
    }
}

impl StepKind {
    /// Whether the step takes something away from the host.
    #[must_use]
    pub fn takes(self) -> bool {
        match self {
            Self::Isolate | Self::MarkDown => true,
            Self::MarkUp
            | Self::List
            | Self::Move
            | Self::Empty
            | Self::AddCapacity
            | Self::CleanUp
            | Self::Start => false,
        }
    }

    /// Whether the step releases something to the host.
    #[must_use]
    pub fn releases(self) -> bool {
        match self {
            Self::MarkUp | Self::Start => true,
            Self::Isolate
            | Self::MarkDown
            | Self::List
            | Self::Move
            | Self::Empty
            | Self::AddCapacity
            | Self::CleanUp => false,
        }
    }

    /// Whether the platform starts workloads of the host elsewhere, or detaches their volumes, because of the step.
    #[must_use]
    pub fn lets_go(self) -> bool {
        match self {
            Self::MarkDown | Self::Move | Self::Empty => true,
            Self::Isolate | Self::MarkUp | Self::List | Self::AddCapacity | Self::CleanUp | Self::Start => {
                false
            }
        }
    }

    /// Whether the step leaves the host as it is.
    #[must_use]
    pub fn only_looks(self) -> bool {
        match self {
            Self::List | Self::AddCapacity | Self::CleanUp => true,
            Self::Isolate | Self::MarkDown | Self::MarkUp | Self::Move | Self::Empty | Self::Start => false,
        }
    }
}

impl TaskKind {
    /// All kinds.
    pub fn all() -> impl Iterator<Item = Self> {
        let fencing = FencingKind::ALL.iter().copied().map(Self::Fencing);
        fencing.chain(StepKind::ALL.iter().copied().map(Self::Step))
    }

    /// The word used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fencing(kind) => kind.as_str(),
            Self::Step(kind) => kind.as_str(),
        }
    }

    /// The kind that the word names.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let fencing = FencingKind::from_word(word).map(Self::Fencing);
        fencing.or_else(|| StepKind::from_word(word).map(Self::Step))
    }

    /// What the task acts on.
    #[must_use]
    pub fn resource(self) -> Resource {
        match self {
            Self::Fencing(kind) => kind.resource(),
            Self::Step(_) => Resource::Workloads,
        }
    }

    /// Whether the task takes something away from the host.
    #[must_use]
    pub fn takes(self) -> bool {
        match self {
            Self::Fencing(kind) => kind.takes(),
            Self::Step(kind) => kind.takes(),
        }
    }

    /// Whether the task releases something to the host.
    #[must_use]
    pub fn releases(self) -> bool {
        match self {
            Self::Fencing(kind) => kind.releases(),
            Self::Step(kind) => kind.releases(),
        }
    }

    /// The kind of proof that the task gives when it was observed done.
    #[must_use]
    pub fn proof_kind(self) -> Option<ProofKind> {
        match self {
            Self::Fencing(kind) => kind.proof_kind(),
            Self::Step(_) => None,
        }
    }

    /// What has to be read back for the task to count as done.
    #[must_use]
    pub fn wanted_state(self) -> ObservedState {
        match self {
            Self::Fencing(kind) => kind.wanted_state(),
            Self::Step(_) => ObservedState::Done,
        }
    }
}

impl From<FencingKind> for TaskKind {
    fn from(kind: FencingKind) -> Self {
        Self::Fencing(kind)
    }
}

impl From<StepKind> for TaskKind {
    fn from(kind: StepKind) -> Self {
        Self::Step(kind)
    }
}

impl PartialEq<FencingKind> for TaskKind {
    fn eq(&self, other: &FencingKind) -> bool {
        *self == Self::Fencing(*other)
    }
}

impl PartialEq<StepKind> for TaskKind {
    fn eq(&self, other: &StepKind) -> bool {
        *self == Self::Step(*other)
    }
}

impl fmt::Display for TaskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for TaskKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for TaskKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Self::from_word(&word)
            .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&word), &"the word of a task"))
    }
}
