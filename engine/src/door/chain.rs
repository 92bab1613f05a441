//! What the inputs of one transaction have made of one host.

use std::collections::HashMap;

use ringfence_core::{HostId, HostState, Operation, Proof, ProofKind};
use ringfence_db::HostWrite;

use super::turn::Decided;

/// The decisions on one host, each upon what the one before it left.
pub(super) struct Chain<'a> {
    before: &'a HostState,
    last: &'a Decided,
    fenced_proof: Option<ProofKind>,
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
            fenced_proof: None,
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
        let fenced = |state: &HostState| state.host.fenced_generation;
        if fenced(&self.last.decision.state) != fenced(&decision.state) {
            self.fenced_proof = None;
        }
        self.fenced_proof = fenced_proof(&decision.state).or(self.fenced_proof);
        self.last = decided;
    }

    /// The host as it is at the end.
    pub fn host(&self) -> HostWrite<'a> {
        HostWrite {
            host: &self.last.decision.state.host,
            known: Some(&self.before.host),
            fenced_proof: self.fenced_proof,
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

    /// The proofs that were won; `true` if in place of an earlier one of the same kind.
    pub fn proofs(&self) -> impl Iterator<Item = (HostId, &'a Proof, bool)> {
        self.operations.iter().copied().flat_map(|operation| {
            let known = self.known(operation);
            operation.proofs.iter().filter_map(move |proof| {
                let earlier =
                    known.and_then(|known| known.proofs.iter().find(|earlier| earlier.kind == proof.kind));
                let is_new = earlier != Some(proof);
                is_new.then_some((operation.host_id, proof, earlier.is_some()))
            })
        })
    }

    fn known(&self, operation: &Operation) -> Option<&'a Operation> {
        self.before
            .operation
            .as_ref()
            .filter(|known| known.id == operation.id)
    }
}

/// One of the proofs of the present fence, if the operation at hand has won it.
fn fenced_proof(state: &HostState) -> Option<ProofKind> {
    let fenced = state.host.fenced_generation?;
    let operation = state
        .operation
        .as_ref()
        .filter(|operation| operation.generation == fenced)?;
    operation.proofs.first().map(|proof| proof.kind)
}
