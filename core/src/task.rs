//! Tasks: the things to make true.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Attempt, FrozenMethod, MoveReport, ObservedState, ProofKind, Timestamp, Workload};

/// One kind of thing to make true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum TaskKind {
    /// Take the power away from the host.
    #[serde(rename = "power.off")]
    PowerOff,
    /// Give the power back.
    #[serde(rename = "power.on")]
    PowerOn,
    /// Cut the host off from its volumes.
    #[serde(rename = "storage.fence")]
    StorageFence,
    /// Connect the host to its volumes again.
    #[serde(rename = "storage.unfence")]
    StorageUnfence,
    /// Cut the host off from the data network.
    #[serde(rename = "network.fence")]
    NetworkFence,
    /// Connect the host to the data network again.
    #[serde(rename = "network.unfence")]
    NetworkUnfence,
    /// Tell the host's backend that the host is down, so that it neither places anything there nor waits for it.
    #[serde(rename = "workloads.force-down")]
    WorkloadsForceDown,
    /// Take that back.
    #[serde(rename = "workloads.force-up")]
    WorkloadsForceUp,
    /// Find out which workloads belong to the host.
    #[serde(rename = "workloads.list")]
    WorkloadsList,
    /// Start one workload elsewhere.
    #[serde(rename = "workloads.move")]
    WorkloadsMove,
    /// Open a spare host to workloads.
    #[serde(rename = "workloads.add-spare")]
    WorkloadsAddSpare,
    /// Remove what is left of workloads that were started elsewhere.
    #[serde(rename = "workloads.clean-up")]
    WorkloadsCleanUp,
    /// Start the workloads that still belong to the host.
    #[serde(rename = "workloads.start")]
    WorkloadsStart,
}

/// What a task acts on. Two tasks that pull the same resource in opposite directions must never overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// The host's power supply.
    Power,
    /// The host's way to its volumes.
    Storage,
    /// The host's way to the data network.
    Network,
    /// The workloads that the backend has placed on the host.
    Workloads,
}

impl Resource {
    /// The word used in queue names and configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Storage => "storage",
            Self::Network => "network",
            Self::Workloads => "workloads",
        }
    }

    /// All resources, in the order in which a rejoin deals with them.
    pub const ALL: [Self; 4] = [Self::Power, Self::Storage, Self::Network, Self::Workloads];
}

impl TaskKind {
    /// All kinds.
    pub const ALL: [Self; 13] = [
        Self::PowerOff,
        Self::PowerOn,
        Self::StorageFence,
        Self::StorageUnfence,
        Self::NetworkFence,
        Self::NetworkUnfence,
        Self::WorkloadsForceDown,
        Self::WorkloadsForceUp,
        Self::WorkloadsList,
        Self::WorkloadsMove,
        Self::WorkloadsAddSpare,
        Self::WorkloadsCleanUp,
        Self::WorkloadsStart,
    ];

    /// The word used in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PowerOff => "power.off",
            Self::PowerOn => "power.on",
            Self::StorageFence => "storage.fence",
            Self::StorageUnfence => "storage.unfence",
            Self::NetworkFence => "network.fence",
            Self::NetworkUnfence => "network.unfence",
            Self::WorkloadsForceDown => "workloads.force-down",
            Self::WorkloadsForceUp => "workloads.force-up",
            Self::WorkloadsList => "workloads.list",
            Self::WorkloadsMove => "workloads.move",
            Self::WorkloadsAddSpare => "workloads.add-spare",
            Self::WorkloadsCleanUp => "workloads.clean-up",
            Self::WorkloadsStart => "workloads.start",
        }
    }

    /// What the task acts on.
    #[must_use]
    pub fn resource(self) -> Resource {
        match self {
            Self::PowerOff | Self::PowerOn => Resource::Power,
            Self::StorageFence | Self::StorageUnfence => Resource::Storage,
            Self::NetworkFence | Self::NetworkUnfence => Resource::Network,
            Self::WorkloadsForceDown
            | Self::WorkloadsForceUp
            | Self::WorkloadsList
            | Self::WorkloadsMove
            | Self::WorkloadsAddSpare
            | Self::WorkloadsCleanUp
            | Self::WorkloadsStart => Resource::Workloads,
        }
    }

    /// Whether the task takes something away from the host.
    #[must_use]
    pub fn is_fencing(self) -> bool {
        matches!(
            self,
            Self::PowerOff | Self::StorageFence | Self::NetworkFence | Self::WorkloadsForceDown
        )
    }

    /// Whether the task gives back what a fence took.
    #[must_use]
    pub fn is_undoing(self) -> bool {
        matches!(
            self,
            Self::PowerOn
                | Self::StorageUnfence
                | Self::NetworkUnfence
                | Self::WorkloadsForceUp
                | Self::WorkloadsStart
        )
    }

    /// The task that undoes this one.
    #[must_use]
    pub fn undone_by(self) -> Option<Self> {
        match self {
            Self::PowerOff => Some(Self::PowerOn),
            Self::StorageFence => Some(Self::StorageUnfence),
            Self::NetworkFence => Some(Self::NetworkUnfence),
            Self::WorkloadsForceDown => Some(Self::WorkloadsForceUp),
            Self::PowerOn
            | Self::StorageUnfence
            | Self::NetworkUnfence
            | Self::WorkloadsForceUp
            | Self::WorkloadsList
            | Self::WorkloadsMove
            | Self::WorkloadsAddSpare
            | Self::WorkloadsCleanUp
            | Self::WorkloadsStart => None,
        }
    }

    /// The kind of proof that the task gives when it was observed done.
    #[must_use]
    pub fn proof_kind(self) -> Option<ProofKind> {
        match self {
            Self::PowerOff => Some(ProofKind::PowerOff),
            Self::StorageFence => Some(ProofKind::StorageFence),
            Self::NetworkFence => Some(ProofKind::NetworkFence),
            Self::PowerOn
            | Self::StorageUnfence
            | Self::NetworkUnfence
            | Self::WorkloadsForceDown
            | Self::WorkloadsForceUp
            | Self::WorkloadsList
            | Self::WorkloadsMove
            | Self::WorkloadsAddSpare
            | Self::WorkloadsCleanUp
            | Self::WorkloadsStart => None,
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
            Self::WorkloadsForceDown => ObservedState::ForcedDown,
            Self::WorkloadsForceUp => ObservedState::ForcedUp,
            Self::WorkloadsList => ObservedState::Listed,
            Self::WorkloadsMove => ObservedState::Moved,
            Self::WorkloadsAddSpare => ObservedState::Enabled,
            Self::WorkloadsCleanUp => ObservedState::Clean,
            Self::WorkloadsStart => ObservedState::Started,
        }
    }
}

impl fmt::Display for TaskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Its stage has not begun.
    Pending,
    /// An attempt is under way, or waits for a pause or an opposite task to end.
    Running,
    /// Every device of one level was observed in the wanted state.
    Confirmed,
    /// Every level failed.
    Failed,
    /// There was nothing to do; `detail` says why.
    Skipped,
    /// Its operation ended before it did.
    Cancelled,
}

impl TaskStatus {
    /// Whether nothing more will come of the task in this round.
    #[must_use]
    pub fn is_over(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Confirmed | Self::Failed | Self::Skipped | Self::Cancelled => true,
        }
    }
}

/// One task of an operation, with all that was tried for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// What to make true.
    pub kind: TaskKind,
    /// How far it is.
    pub status: TaskStatus,
    /// The workload that it is about, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Box<Workload>>,
    /// What became of the workload, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Box<MoveReport>>,
    /// Why it was skipped, cancelled or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The ways to do it, frozen when the operation began: every method of a level has to succeed, or the next level is tried.
    pub levels: Vec<Vec<FrozenMethod>>,
    /// The level in use, counted from 0.
    pub level: usize,
    /// When the level in use was begun; each of its methods has its own time from here. Moved on by the time that no device
    /// is to blame for: waiting for a free device, or for an engine that was away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level_started_at: Option<Timestamp>,
    /// How often it was begun again because the host was seen UP after the reading that had confirmed it.
    #[serde(default)]
    pub contradicted: u32,
    /// Attempts of earlier rounds stay in the list for the record; those before this index no longer count.
    #[serde(default)]
    pub first_attempt: usize,
    /// What was tried, oldest first.
    pub attempts: Vec<Attempt>,
}

impl Task {
    /// A task that waits for its stage.
    #[must_use]
    pub fn pending(kind: TaskKind, levels: Vec<Vec<FrozenMethod>>) -> Self {
        Self {
            kind,
            status: TaskStatus::Pending,
            workload: None,
            moved: None,
            detail: None,
            levels,
            level: 0,
            level_started_at: None,
            contradicted: 0,
            first_attempt: 0,
            attempts: Vec::new(),
        }
    }

    /// A task that has nothing to do.
    #[must_use]
    pub fn skipped(kind: TaskKind, why: impl Into<String>) -> Self {
        Self {
            status: TaskStatus::Skipped,
            detail: Some(why.into()),
            ..Self::pending(kind, Vec::new())
        }
    }

    /// The attempts of this round.
    #[must_use]
    pub fn round(&self) -> &[Attempt] {
        self.attempts.get(self.first_attempt..).unwrap_or_default()
    }
}
