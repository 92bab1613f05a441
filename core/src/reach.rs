//! What a plan can prove when only some zones have workers.

use std::collections::BTreeSet;

use crate::{FencingKind, FrozenMethod, FrozenPlan, ProofKind, Resource, SufficientSet};

impl FrozenPlan {
    /// The proofs that the plan's own tasks could win if only the methods of which `is_served` says so (by resource and zone)
    /// could be carried out: each task of the kind needs a level whose every method is served.
    #[must_use]
    pub fn provable(&self, is_served: impl Fn(Resource, &str) -> bool) -> SufficientSet {
        let is_level_served = |level: &Vec<FrozenMethod>| {
            !level.is_empty()
                && level
                    .iter()
                    .all(|method| method.can_prove && is_served(method.resource, &method.zone))
        };
        let tasks = || self.stages.iter().flat_map(|stage| &stage.tasks);
        let kinds: BTreeSet<FencingKind> = tasks().map(|task| task.kind).collect();
        kinds
            .into_iter()
            .filter(|kind| {
                tasks()
                    .filter(|task| task.kind == *kind)
                    .all(|task| task.levels.iter().any(is_level_served))
            })
            .filter_map(FencingKind::proof_kind)
            .collect()
    }

    /// Whether a fence by this plan can end without a person under that condition, given whether the host's segment counts on
    /// self-fencing.
    #[must_use]
    pub fn can_prove_alone(&self, has_watchdog: bool, is_served: impl Fn(Resource, &str) -> bool) -> bool {
        let mut proofs = self.provable(is_served);
        if has_watchdog {
            proofs.insert(ProofKind::SelfFencing);
        }
        self.sufficient_sets
            .iter()
            .any(|set| !set.is_empty() && set.is_subset(&proofs))
    }

    /// All that has to be served for all of it: resource and zone.
    #[must_use]
    pub fn needs(&self) -> BTreeSet<(Resource, String)> {
        self.methods()
            .map(|method| (method.resource, method.zone.clone()))
            .collect()
    }

    /// The methods of all its tasks; one that several tasks have comes several times.
    pub fn methods(&self) -> impl Iterator<Item = &FrozenMethod> {
        let tasks = self.stages.iter().flat_map(|stage| &stage.tasks);
        tasks.flat_map(|task| task.levels.iter().flatten())
    }
}
