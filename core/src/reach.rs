//! What a plan can prove when only some zones have workers.

use std::collections::{BTreeMap, BTreeSet};

use crate::{FencingKind, FrozenMethod, FrozenPlan, ProofKind, Resource, SufficientSet};

impl FrozenPlan {
    /// The proofs that the plan's own tasks could win if only the methods of which `is_usable` says so could be carried out, each with the
    /// methods by which it would be won: each task of the kind needs a level whose every method is usable.
    #[must_use]
    pub fn provable(
        &self,
        is_usable: impl Fn(&FrozenMethod) -> bool,
    ) -> BTreeMap<ProofKind, Vec<&FrozenMethod>> {
        let is_level_usable = |level: &&Vec<FrozenMethod>| {
            !level.is_empty() && level.iter().all(|method| method.can_prove && is_usable(method))
        };
        let tasks = || self.stages.iter().flat_map(|stage| &stage.tasks);
        let kinds: BTreeSet<FencingKind> = tasks().map(|task| task.kind).collect();
        let won_by = |kind: FencingKind| {
            let of_kind = tasks().filter(|task| task.kind == kind);
            let levels = of_kind.map(|task| task.levels.iter().find(is_level_usable));
            let levels: Option<Vec<_>> = levels.collect();
            Some((kind.proof_kind()?, levels?.into_iter().flatten().collect()))
        };
        kinds.into_iter().filter_map(won_by).collect()
    }

    /// The sufficient sets that a fence by this plan can complete without a person if only the methods of which `is_usable` says so could be
    /// carried out, given whether the host's segment counts on self-fencing. Each proof comes with the methods by which it would be won.
    #[must_use]
    pub fn sets_within_reach(
        &self,
        has_watchdog: bool,
        is_usable: impl Fn(&FrozenMethod) -> bool,
    ) -> Vec<BTreeMap<ProofKind, Vec<&FrozenMethod>>> {
        let mut proofs = self.provable(is_usable);
        if has_watchdog {
            proofs.insert(ProofKind::SelfFencing, Vec::new());
        }
        let won = |set: &SufficientSet| {
            let won = set.iter().map(|kind| Some((*kind, proofs.get(kind)?.clone())));
            won.collect::<Option<BTreeMap<_, _>>>()
                .filter(|set| !set.is_empty())
        };
        self.sufficient_sets.iter().filter_map(won).collect()
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
