//! What the inputs of one transaction have made of one host.

use std::collections::{BTreeMap, HashMap};

use ringfence_core::{Generation, HostId, HostState, Operation, Proof, ProofKind};
use ringfence_db::HostWrite;

use super::turn::Decided;

/// The decisions on one host, each upon what the one before it left.
pub(super) struct Chain<'a> {
    before: &'a HostState,
    last: &'a Decided,
    /// Every operation that was touched, as it is at the end; one that made way stands before the one that took its place.
    operations: Vec<&'a Operation>,
}

impl<'a> Chain<'a> {
    /// Those of all hosts, in the order of the first decisions.
    pub fn of_all(decided: &[&'a Decided]) -> Vec<Self> {
        let mut chains: Vec<Self> = Vec::with_capacity(decided.len());
        let mut at: HashMap<HostId, usize> = HashMap::with_capacity(decided.len());
        for decided in decided {
            let index = *at.entry(decided.before.host.id).or_insert_with(|| {
                chains.push(Self::begin(decided));
                chains.len() - 1
            });
            chains[index].add(decided);
        }
        chains
    }

    fn begin(first: &'a Decided) -> Self {
        Self {
            before: &first.before,
            last: first,
            operations: Vec::new(),
        }
    }

    fn add(&mut self, decided: &'a Decided) {
        let decision = &decided.decision;
        for operation in decision.superseded.iter().chain(&decision.state.operation) {
            match self.operations.iter_mut().find(|known| known.id == operation.id) {
                Some(known) => *known = operation,
                None => self.operations.push(operation),
            }
        }
        self.last = decided;
    }

    /// The host as it is at the end.
    pub fn host(&self) -> HostWrite<'a> {
        HostWrite {
            host: &self.last.decision.state.host,
            known: Some(&self.before.host),
            wake_at: self.last.decision.wake_at,
        }
    }

    /// The operations that are new.
    pub fn new_operations(&self) -> impl Iterator<Item = &'a Operation> {
        let operations = self.operations.iter().copied();
        operations.filter(|operation| self.known(operation).is_none())
    }

    /// Those that are known and have changed, each with what is known of it.
    pub fn changed_operations(&self) -> impl Iterator<Item = (&'a Operation, &'a Operation)> {
        let operations = self.operations.iter().copied();
        let known = operations.filter_map(|operation| Some((operation, self.known(operation)?)));
        known.filter(|(operation, known)| operation != known)
    }

    /// The proofs that were won, the last one of each kind and generation.
    pub fn proofs(&self) -> impl Iterator<Item = (HostId, &'a Proof)> {
        let mut won: BTreeMap<(Generation, ProofKind), &'a Proof> = BTreeMap::new();
        for operation in self.operations.iter().copied() {
            let known = self
                .known(operation)
                .map_or(&[] as &[Proof], |known| &known.proofs);
            let new = operation.proofs.iter().filter(|proof| is_won(known, proof));
            won.extend(new.map(|proof| ((proof.generation, proof.kind), proof)));
        }
        let host_id = self.before.host.id;
        won.into_values().map(move |proof| (host_id, proof))
    }

    fn known(&self, operation: &Operation) -> Option<&'a Operation> {
        self.before
            .operation
            .as_ref()
            .filter(|known| known.id == operation.id)
    }
}

/// Whether a proof is none of those that are known. One that has only come to its end is.
fn is_won(known: &[Proof], proof: &Proof) -> bool {
    let whole = |proof: &Proof| Proof {
        ended: None,
        ..proof.clone()
    };
    !known.iter().any(|known| whole(known) == whole(proof))
}
