//! Hosts: what is known of each, and what has to be remembered between operations.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    AttemptId, FrozenMethod, Generation, HostId, Operation, Parameters, Resource, SegmentId, SegmentPolicy,
    TaskKind, Timestamp,
};

macro_rules! words {
    ($name:ident { $($variant:ident => $word:literal),+ $(,)? }) => {
        impl $name {
            /// All values.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word used in the API and the database.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// The value that the word names.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;

/// Where a host's workloads live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// OpenStack Nova.
    Nova,
    /// Kubernetes.
    Kubernetes,
    /// Nowhere that Ringfence can see: workload steps are skipped.
    #[default]
    None,
}

words!(Backend { Nova => "nova", Kubernetes => "kubernetes", None => "none" });

/// What the observers last saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum FailureState {
    /// The host answers.
    Up,
    /// The host does not answer.
    Unreachable,
    /// Nobody can tell.
    #[default]
    Unknown,
}

words!(FailureState { Up => "UP", Unreachable => "UNREACHABLE", Unknown => "UNKNOWN" });

/// What has been proven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum FencingState {
    /// Nothing: the host may run and write.
    #[default]
    Unfenced,
    /// The host's workloads can neither run nor write.
    Fenced,
}

words!(FencingState { Unfenced => "UNFENCED", Fenced => "FENCED" });

/// What an observer knows of the host's present boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// Changes with every boot (`/proc/sys/kernel/random/boot_id`, or a node's `bootID`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// When the host says that it booted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booted_at: Option<Timestamp>,
    /// When the observer saw it.
    pub observed_at: Timestamp,
}

/// Something that a fence took from the host (or may have taken) and that has not been seen given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standing {
    /// The fencing task.
    pub kind: TaskKind,
    /// The way it was done, as it was then: an edited or deleted method does not lose what has to be undone.
    pub method: FrozenMethod,
    /// The one attempt that may have taken it, as long as there is only one. Should that be refused, nothing was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<AttemptId>,
}

/// A claimed attempt whose worker may still be acting, whatever has become of its operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// The attempt.
    pub attempt: AttemptId,
    /// Its generation.
    pub generation: Generation,
    /// What it does.
    pub kind: TaskKind,
    /// The claim under which it acts: only a result of this claim says that it has stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim_id: Option<Uuid>,
    /// The worker stops by itself before this.
    pub until: Timestamp,
}

/// A hypervisor or node that can be fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Its id.
    pub id: HostId,
    /// Its name, unique.
    pub name: String,
    /// Its segment.
    pub segment_id: SegmentId,
    /// Where its workloads live.
    pub backend: Backend,
    /// Which of the clouds or clusters in the configuration that is.
    pub cloud: Option<String>,
    /// The name by which its backend knows it, where that is not its own.
    pub known_as: Option<String>,
    /// The group of hosts that share a plan.
    pub host_type: Option<String>,
    /// The part of the site from which its devices can be reached; a worker serves one or more zones.
    pub zone: String,
    /// Values that this host gives to the parameters of methods, by method name.
    pub parameters: BTreeMap<String, Parameters>,
    /// What the observers last saw.
    pub failure_state: FailureState,
    /// Who saw it.
    pub failure_source: Option<String>,
    /// When they say they saw it.
    pub failure_observed_at: Option<Timestamp>,
    /// Since when, by the engine's clock, the failure state has been what it is while nothing was given back to the host:
    /// its self-fencing timeout counts from here.
    pub failure_since: Option<Timestamp>,
    /// The boot that was last seen.
    pub boot: Option<Boot>,
    /// What has been proven.
    pub fencing_state: FencingState,
    /// Advanced by each fence and rejoin.
    pub generation: Generation,
    /// The generation whose proofs make it FENCED.
    pub fenced_generation: Option<Generation>,
    /// Since when it is FENCED.
    pub fenced_at: Option<Timestamp>,
    /// The id of the boot that was last seen when it became FENCED.
    pub boot_at_fence: Option<String>,
    /// Whether it has to show a boot newer than the fence before it is taken back (fenced by storage and network alone).
    pub needs_boot: bool,
    /// Whether it was seen UP since the fence although it was proven to have stopped: it runs again, and that proof says
    /// nothing of what it does now.
    pub proof_spent: bool,
    /// The generation whose workloads somebody has begun to start elsewhere.
    pub evacuation_begun: Option<Generation>,
    /// Whether something has begun since it was last seen UP, while it was UNREACHABLE: it is not fenced without being asked then.
    pub is_silence_answered: bool,
    /// What has to be given back to it, by kind and method.
    pub standing: Vec<Standing>,
    /// What may be acting on it.
    pub in_flight: Vec<InFlight>,
    /// The number of its last event.
    pub event_sequence: u64,
    /// Counts its changes; the API's entity tag.
    pub revision: u64,
    /// When it was added.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Host {
    /// Whether the proofs of the present generation hold: FENCED, and no rejoin has begun since.
    #[must_use]
    pub fn is_fence_current(&self) -> bool {
        self.fencing_state == FencingState::Fenced && self.fenced_generation == Some(self.generation)
    }

    /// Whether the proofs of the present generation still say what the host does now.
    #[must_use]
    pub fn is_fence_good(&self) -> bool {
        self.is_fence_current() && !self.proof_spent
    }

    /// Whether a boot newer than the fence has been seen.
    ///
    /// Equal boot ids say no. Different ones say yes, unless the host itself says that it booted before the fence: the id on
    /// record may be older than the last boot before it. Where an id is missing the host's word for the time has to say yes;
    /// a boot later than the moment at which it was seen shows a wrong clock and says nothing good.
    #[must_use]
    pub fn has_newer_boot(&self) -> bool {
        let (Some(boot), Some(fenced_at)) = (&self.boot, self.fenced_at) else {
            return false;
        };
        if boot.observed_at <= fenced_at {
            return false;
        }
        let by_time = boot
            .booted_at
            .map(|booted_at| booted_at > fenced_at && booted_at <= boot.observed_at);
        match (&self.boot_at_fence, &boot.id) {
            (Some(before), Some(now)) => before != now && by_time != Some(false),
            (None, _) | (_, None) => by_time == Some(true),
        }
    }

    /// Whether the host was seen UP since it was FENCED; a report from before the fence says nothing of the time after it.
    #[must_use]
    pub fn is_seen_back(&self) -> bool {
        let is_newer = match (self.fenced_at, self.failure_observed_at) {
            (Some(fenced_at), Some(observed_at)) => observed_at >= fenced_at,
            (Some(_), None) => false,
            (None, _) => true,
        };
        self.failure_state == FailureState::Up && is_newer
    }

    /// Notes that something may have been given back to the host until `at`: what it did to itself before counts no more.
    pub(crate) fn given_back(&mut self, at: Timestamp) {
        self.failure_since = self.failure_since.map(|since| since.max(at));
    }

    /// The first attempt that may still be acting and that `kind` must not overlap with: one that pulls the same resource the other
    /// way, or one that starts a workload elsewhere while `kind` gives something back to the host.
    #[must_use]
    pub fn opposite_in_flight(&self, kind: TaskKind, now: Timestamp) -> Option<&InFlight> {
        let leads_back = kind.is_undoing() || kind == TaskKind::WorkloadsCleanUp;
        let is_opposite = |other: TaskKind| {
            let pulls = other.resource() == kind.resource() && other.is_undoing() != kind.is_undoing();
            let is_move = other == TaskKind::WorkloadsMove;
            if is_move {
                leads_back
            } else {
                pulls && !is_look(other) && !is_look(kind)
            }
        };
        self.in_flight
            .iter()
            .find(|f| f.until > now && is_opposite(f.kind))
    }

    /// The attempt that gives something back to the host and may still be acting, the one that lasts longest.
    #[must_use]
    pub fn undoing_in_flight(&self, now: Timestamp) -> Option<&InFlight> {
        self.in_flight
            .iter()
            .filter(|f| f.until > now && f.kind.is_undoing())
            .max_by_key(|f| f.until)
    }

    /// Whether nothing that was started on it can still be there: it was proven to have stopped, and was not seen since.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.failure_state == FailureState::Unreachable && self.is_fence_good() && !self.needs_boot
    }

    /// Whether storage or network fencing still stands.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.standing.iter().any(|s| s.kind.resource() != Resource::Power)
    }
}

/// Whether a task only reads.
fn is_look(kind: TaskKind) -> bool {
    matches!(
        kind,
        TaskKind::WorkloadsList | TaskKind::WorkloadsCleanUp | TaskKind::WorkloadsAddSpare
    )
}

/// All that one decision needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostState {
    /// The host.
    pub host: Host,
    /// Its live operation: running, or waiting for an operator.
    pub operation: Option<Operation>,
    /// What its segment says.
    pub policy: SegmentPolicy,
    /// When the clock of whoever decides was set to another time, if it was: how long anything has lasted is known from there on only.
    pub clock_set_at: Option<Timestamp>,
}
