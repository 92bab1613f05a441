//! What ends a proof: one rule for the gate, for claims, for confirmations, for silence and for the way back.
//!
//! | proof | ended by the claim of | ended by a sign of life observed after it |
//! |---|---|---|
//! | `power.off` | `power.on` | yes |
//! | `storage.fence` | `storage.unfence` | no: a cut stays a cut |
//! | `network.fence` | `network.unfence` | no |
//! | `self-fencing` | any releasing task | yes |
//! | `kdump` | any releasing task | yes |
//! | `operator` | any releasing task | yes |
//!
//! What a person does by hand belongs to a rejoin: that takes a generation of its own, and no fence of an older one opens a gate.
//!
//! A claim ends it, not its result: from the claim on a worker may act. What ends a proof is kept with it; a proof that has ended
//! never comes back, another one has to be won.

use std::fmt;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::guard::{Guard, on};
use crate::{Generation, Proof, ProofKind, Resource, TaskKind, Timestamp};

/// What ended a proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum Undoing {
    /// A worker was allowed to release something to the host.
    Claimed {
        /// What.
        kind: TaskKind,
        /// For which generation.
        generation: Generation,
    },
    /// The fence was started again before it was proven: supplies and people switch power on, so it has to be read again.
    StartedAgain,
    /// The host was seen alive.
    SignOfLife {
        /// Who saw it.
        source: String,
        /// When.
        observed_at: Timestamp,
    },
}

/// How a proof came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// What ended it.
    #[serde(flatten)]
    pub undoing: Undoing,
    /// When, by the engine's clock.
    pub at: Timestamp,
}

impl Undoing {
    /// Whether it ends this proof.
    #[must_use]
    pub fn ends(&self, proof: &Proof) -> bool {
        match self {
            Self::Claimed { kind, .. } => on(Guard::ClaimEndsProof) && proof.kind.is_undone_by(*kind),
            Self::StartedAgain => on(Guard::RestartReadsPower) && proof.kind == ProofKind::PowerOff,
            Self::SignOfLife { observed_at, .. } => {
                on(Guard::LifeEndsProof)
                    && proof.kind.says_stopped()
                    && may_be_after(*observed_at, proof.read_at)
            }
        }
    }
}

/// What the clocks of two engines may differ by: each follows the database's, and one that is further away is set.
pub(crate) const CLOCKS_APART: TimeDelta = TimeDelta::seconds(1);

/// Each host is decided upon within so long after a clock was set. A date of until then may be one of the former time.
const SET_NOTED_WITHIN: TimeDelta = TimeDelta::seconds(10);

/// From when on a date is one of the time after the clock was set, for certain.
pub(crate) fn dated_from(clock_set_at: Timestamp) -> Timestamp {
    clock_set_at + SET_NOTED_WITHIN
}

/// The latest that `dated_from` and `clearly_after` make of a moment that is not yet to come.
pub(crate) fn latest_wait(now: Timestamp) -> Timestamp {
    clearly_after(dated_from(now))
}

/// Whether a sign of life may have come after a reading, by whichever engines' clocks the two were written down.
pub(crate) fn may_be_after(alive_at: Timestamp, read_at: Timestamp) -> bool {
    let apart = if on(Guard::ClocksApart) {
        CLOCKS_APART
    } else {
        TimeDelta::zero()
    };
    alive_at > read_at - apart
}

/// From when on a reading comes after a sign of life for certain.
pub(crate) fn clearly_after(alive_at: Timestamp) -> Timestamp {
    alive_at + CLOCKS_APART
}

impl fmt::Display for Undoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claimed { kind, generation } => {
                write!(
                    f,
                    "a worker was allowed to carry out a {kind} of generation {generation}"
                )
            }
            Self::StartedAgain => write!(f, "the fence was started again"),
            Self::SignOfLife { source, observed_at } => {
                write!(f, "{source} saw the host UP at {}", observed_at.format("%FT%TZ"))
            }
        }
    }
}

impl ProofKind {
    /// Whether it says that the host had stopped, rather than that it was cut off.
    #[must_use]
    pub fn says_stopped(self) -> bool {
        match self {
            Self::PowerOff | Self::SelfFencing | Self::Kdump | Self::Operator => true,
            Self::StorageFence | Self::NetworkFence => false,
        }
    }

    /// Whether a task of this kind undoes what it says.
    #[must_use]
    pub fn is_undone_by(self, kind: TaskKind) -> bool {
        kind.releases()
            && match self {
                Self::PowerOff => kind.resource() == Resource::Power,
                Self::StorageFence => kind.resource() == Resource::Storage,
                Self::NetworkFence => kind.resource() == Resource::Network,
                Self::SelfFencing | Self::Kdump | Self::Operator => true,
            }
    }
}
