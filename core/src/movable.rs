//! What the proofs of a fence allow to be started elsewhere.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use crate::guard::{Guard, on};
use crate::{Generation, HostState, Proof, ProofKind, SufficientSet, Timestamp, gate::Gate, gates};

/// Which workloads of a FENCED host may be started elsewhere, by what holds of it. A platform whose workloads may use other storage than that
/// which was fenced heeds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Movable {
    /// All: the host has stopped, or is cut off from storage and network.
    All,
    /// Those all of whose volumes are on the storage that the host is cut off from.
    OnFencedStorage,
    /// Those that have no volume that outlives them: the host is cut off from the network, and may still write.
    WithoutVolumes,
}

/// Which workloads of this host its standing proofs allow to be started elsewhere at this moment; `None` where it is not FENCED, or its
/// proofs have ended. Whether its gates are open is another question.
#[must_use]
pub fn proven_movable(state: &HostState, now: Timestamp) -> Option<Movable> {
    let fence = state.host.good_fence()?;
    let counts = |proof: &&Proof| counts_at(proof, state) <= now || !on(Guard::LaterProofSettles);
    let standing = || fence.standing().filter(counts);
    let has = |kind: ProofKind| standing().any(|proof| proof.kind == kind);
    let named: SufficientSet = fence.holding_sets().flatten().copied().collect();
    // A message that is not signed says no more than the plan lets it say.
    let is_taken =
        |kind| kind != ProofKind::Kdump || named.contains(&kind) || !on(Guard::KdumpCountsInItsSet);
    let has_stopped = standing().any(|proof| proof.kind.says_stopped() && is_taken(proof.kind));
    Some(
        match (has(ProofKind::StorageFence), has(ProofKind::NetworkFence)) {
            _ if has_stopped => Movable::All,
            (true, true) => Movable::All,
            (true, false) => Movable::OnFencedStorage,
            (false, _) => Movable::WithoutVolumes,
        },
    )
}

/// When a proof of a FENCED host says that nothing of the host lands any more. Storage shows that it is closed when all has landed. To other
/// storage the host may have sent something just before its network was taken.
fn counts_at(proof: &Proof, state: &HostState) -> Timestamp {
    let settled_at = proof.settled_at(state.clock_set_at);
    if proof.kind != ProofKind::NetworkFence {
        return settled_at;
    }
    let more_s = state.policy.settle_s.saturating_sub(proof.settle_s);
    settled_at + TimeDelta::seconds(i64::from(more_s))
}

/// When all workloads of this host may be started elsewhere by the proofs that stand now: at this moment, or once these have settled.
pub(crate) fn all_movable_at(state: &HostState, now: Timestamp) -> Option<Timestamp> {
    let proofs = state.host.good_fence()?.standing();
    let mut moments: Vec<Timestamp> = proofs.map(|proof| counts_at(proof, state).max(now)).collect();
    moments.push(now);
    moments.sort();
    let is_all = |at: &Timestamp| proven_movable(state, *at) == Some(Movable::All);
    moments.into_iter().find(is_all)
}

/// Which workloads of this host may be started elsewhere at this moment; `None` while its evacuate gate is closed.
#[must_use]
pub fn movable_now(state: &HostState, now: Timestamp) -> Option<Movable> {
    let may_some = gates(state, now).evacuate.allowed;
    proven_movable(state, now).filter(|_| may_some)
}

/// May all workloads of this host be started elsewhere at once? Less than the evacuate gate where the platform starts them by itself: the
/// evacuate gate is open as well where some of them may.
#[must_use]
pub fn gate_of_all(state: &HostState, now: Timestamp) -> Gate {
    let gate = gates(state, now).evacuate;
    let only = match proven_movable(state, now) {
        Some(Movable::OnFencedStorage) => "storage; only workloads whose volumes are all on that may go",
        Some(Movable::WithoutVolumes) => "the network; only workloads without volumes may go",
        Some(Movable::All) | None => return gate,
    };
    if !gate.allowed || !state.host.backend.starts_by_itself() {
        return gate;
    }
    Gate {
        allowed: false,
        reason: format!("the host is cut off from {only}, which an evacuation moves"),
    }
}

/// What a platform was told of a host of which only some may be started elsewhere: a list that was written at one moment, and may be older
/// than what holds now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedToGo {
    /// The generation that it was written for.
    pub generation: Generation,
    /// What was proven when it was written.
    pub movable: Movable,
    /// What may go, in the platform's own names.
    pub names: BTreeSet<String>,
}

/// May that which has one of these names be taken from the host at this moment? It may where all may go, or where only some may and the list
/// has one of the names: a list of this generation, written for what is proven now. `None`: there is no list.
#[must_use]
pub fn gate_of_named(state: &HostState, list: Option<&NamedToGo>, names: &[&str], now: Timestamp) -> Gate {
    let gate = gate_of_all(state, now);
    let Some(movable) = movable_now(state, now).filter(|_| !gate.allowed) else {
        return gate;
    };
    let refused = |why: &str| Gate {
        allowed: false,
        reason: format!("{}; {why}", gate.reason),
    };
    match list {
        None => refused("nothing was named yet that may go"),
        Some(list) if list.generation != state.host.generation || list.movable != movable => {
            refused("what was named was named for another fence, or when something else was proven")
        }
        Some(list) if !names.iter().any(|name| list.names.contains(*name)) => refused("this was not named"),
        Some(_) => Gate {
            allowed: true,
            reason: "the host is cut off from that which this uses".to_owned(),
        },
    }
}
