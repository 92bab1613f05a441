//! What FENCED rests on.

use serde::{Deserialize, Serialize};

use crate::guard::{Guard, on};
use crate::undoing::clearly_after;
use crate::{Ended, Generation, OperationId, Proof, ProofKind, SufficientSet, Timestamp, Undoing};

/// A fence that was proven. It stays on record until the host is taken back, whether its proofs still hold or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// The generation that was proven.
    pub generation: Generation,
    /// The operation that proved it.
    pub operation_id: OperationId,
    /// Since when the host is FENCED.
    pub at: Timestamp,
    /// The sufficient sets, as they were frozen for it.
    pub sets: Vec<SufficientSet>,
    /// The proofs of its generation, by kind; those that came later too.
    pub proofs: Vec<Proof>,
    /// When every device of its power was last read as off just before it was switched on: the host was off until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_until: Option<Timestamp>,
    /// Whether a scheduler or an evacuation has begun to start its workloads elsewhere.
    pub is_evacuation_begun: bool,
    /// Whether its last evacuation has ended, and well.
    #[serde(default)]
    pub is_emptied: bool,
}

impl Fence {
    /// Whether a completed set still holds: none of its proofs has ended.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.holding_sets().next().is_some()
    }

    /// The completed sets none of whose proofs has ended.
    pub fn holding_sets(&self) -> impl Iterator<Item = &SufficientSet> {
        let standing: SufficientSet = self.standing().map(|proof| proof.kind).collect();
        let is_whole = move |set: &&SufficientSet| !set.is_empty() && set.is_subset(&standing);
        self.sets.iter().filter(is_whole)
    }

    /// The proofs that have not ended.
    pub fn standing(&self) -> impl Iterator<Item = &Proof> {
        self.proofs.iter().filter(|proof| proof.ended.is_none())
    }

    /// What ended the proof that ended last.
    #[must_use]
    pub fn ended(&self) -> Option<&Ended> {
        let ended = self.proofs.iter().filter_map(|proof| proof.ended.as_ref());
        ended.max_by_key(|ended| ended.at)
    }

    /// Whether the proofs show that the host had stopped after a moment that was decided upon: by what was allowed after it, whatever the
    /// engines' clocks say, or by a time that two clocks can tell from it. It had stopped, or it was read as off when Ringfence switched
    /// it on: every boot of it has begun after that.
    #[must_use]
    pub(crate) fn has_stopped_since(&self, moment: Timestamp) -> bool {
        let Some(stopped_at) = self.stopped_at() else {
            return false;
        };
        let mut allowed = self
            .stops()
            .filter_map(|proof| proof.claimed_at)
            .chain(self.off_until);
        let is_clear = stopped_at > clearly_after(moment) || !on(Guard::StopCameLater);
        allowed.any(|at| at > moment) || is_clear
    }

    /// When the first of its power was allowed to come back, if that is what has ended the proof of its power.
    #[must_use]
    pub(crate) fn power_released_at(&self) -> Option<Timestamp> {
        let power = self
            .proofs
            .iter()
            .find(|proof| proof.kind == ProofKind::PowerOff)?;
        match power.ended.as_ref()? {
            Ended {
                undoing: Undoing::Claimed { .. },
                at,
            } => Some(*at),
            Ended {
                undoing: Undoing::StartedAgain | Undoing::SignOfLife { .. },
                ..
            } => None,
        }
    }

    /// When the host was last proven to have stopped.
    #[must_use]
    pub(crate) fn stopped_at(&self) -> Option<Timestamp> {
        self.stops().map(|proof| proof.read_at).max()
    }

    /// The proofs that say that the host had stopped and were part of a completed set, whether they hold or not.
    fn stops(&self) -> impl Iterator<Item = &Proof> {
        let sufficed = self.sufficed();
        let stops = self.proofs.iter().filter(|proof| proof.kind.says_stopped());
        stops.filter(move |proof| sufficed.contains(&proof.kind) || !on(Guard::StopWasSufficient))
    }

    /// The kinds of proof in the sets that were completed, whatever has become of them since.
    fn sufficed(&self) -> SufficientSet {
        let proven: SufficientSet = self.proofs.iter().map(|proof| proof.kind).collect();
        let complete = self.sets.iter().filter(|set| set.is_subset(&proven));
        complete.flatten().copied().collect()
    }

    /// Adds a proof, in place of one of its kind that has ended.
    pub(crate) fn add(&mut self, proof: Proof) {
        self.proofs.retain(|known| known.kind != proof.kind);
        self.proofs.push(proof);
        self.proofs.sort_by_key(|proof| proof.kind);
    }
}
