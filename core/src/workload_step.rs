//! Workload steps: what is asked of a platform for the workloads of one host, with all that it needs to know.

use serde::{Deserialize, Serialize};

use crate::{Backend, EvacuationPolicy, FrozenMethod, StepKind, Timestamp, Workload};

/// A host as its platform knows it, and who can ask the platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformHost {
    /// Which sort of platform.
    pub backend: Backend,
    /// The platform's name in the configuration.
    pub platform: String,
    /// The host's name there.
    pub host: String,
    /// The zone whose workers reach the platform.
    pub zone: String,
}

impl PlatformHost {
    /// The platform's name with its sort before it, as reports and attempts name it.
    #[must_use]
    pub fn label(&self) -> String {
        self.backend.label(&self.platform)
    }
}

/// A step, and what it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum WorkloadStep {
    /// Keep workloads from starting on the host.
    #[serde(rename = "workloads.isolate")]
    Isolate {
        /// Whether the platform has to leave the workloads on the host until each is moved.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        one_by_one: bool,
    },
    /// Tell the platform that the host is down.
    #[serde(rename = "workloads.mark-down")]
    MarkDown {
        /// Which workloads the platform may let go by itself, where it does that. `None` before an evacuation: none.
        evacuation: Option<Box<EvacuationPolicy>>,
    },
    /// Tell the platform to believe the host again.
    #[serde(rename = "workloads.mark-up")]
    MarkUp,
    /// Find out which workloads belong to the host.
    #[serde(rename = "workloads.list")]
    List {
        /// The keys of metadata that the segment's policy asks for.
        metadata_keys: Vec<String>,
    },
    /// Start one workload elsewhere.
    #[serde(rename = "workloads.move")]
    Move(Box<MoveStep>),
    /// See to it that nothing of the workloads that were moved is left with the host.
    #[serde(rename = "workloads.empty")]
    Empty,
    /// Open a spare host to workloads.
    #[serde(rename = "workloads.add-capacity")]
    AddCapacity {
        /// The spare host, as the platform calls it.
        host: String,
    },
    /// Remove what is left of workloads that were started elsewhere.
    #[serde(rename = "workloads.clean-up")]
    CleanUp,
    /// Start the workloads that still belong to the host.
    #[serde(rename = "workloads.start")]
    Start {
        /// Since when the host is FENCED: what no user has stopped after that is to run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fenced_at: Option<Timestamp>,
    },
}

/// One workload to start elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveStep {
    /// Which.
    pub workload: Workload,
    /// The methods by which services of the platform itself have cut the host off: what they took from the workload goes with it.
    /// Filled in when the step is sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cut_off_by: Vec<FrozenMethod>,
    /// The platform's own id of an earlier move that ends no more, since the host that it goes to is dead. Filled in when the step
    /// is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_up: Option<String>,
    /// Whether the platform must not be asked: another worker may still be asking it. What was begun is followed to its end. Filled in
    /// when the step is sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_look: bool,
    /// Whether the platform's disruption budgets decide when it goes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disruption_budgets: bool,
}

impl WorkloadStep {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> StepKind {
        match self {
            Self::Isolate { .. } => StepKind::Isolate,
            Self::MarkDown { .. } => StepKind::MarkDown,
            Self::MarkUp => StepKind::MarkUp,
            Self::List { .. } => StepKind::List,
            Self::Move(_) => StepKind::Move,
            Self::Empty => StepKind::Empty,
            Self::AddCapacity { .. } => StepKind::AddCapacity,
            Self::CleanUp => StepKind::CleanUp,
            Self::Start { .. } => StepKind::Start,
        }
    }

    /// The workload that it is about, where it is about one.
    #[must_use]
    pub fn workload(&self) -> Option<&Workload> {
        match self {
            Self::Move(step) => Some(&step.workload),
            Self::Isolate { .. }
            | Self::MarkDown { .. }
            | Self::MarkUp
            | Self::List { .. }
            | Self::Empty
            | Self::AddCapacity { .. }
            | Self::CleanUp
            | Self::Start { .. } => None,
        }
    }
}
