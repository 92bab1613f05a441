//! An explanation's statements about a fence come true in the fence.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ringfence_core::*;
use uuid::Uuid;

use super::actions::{Truthfulness, history, live_through};
use super::facts::decisions;
use super::settings::{Setting, setting};
use crate::explaining::{facts, resolved};
use ringfence_world::plans::person;
use ringfence_world::{Manner, World};

fn a_fence(plan: Option<FrozenPlan>) -> Input {
    Input::Fence {
        operation_id: OperationId(Uuid::from_u128(0xfe)),
        plan,
        reason: "no heartbeat".to_owned(),
        actor: person("anna"),
        heeds_safeguards: false,
    }
}

fn told(decision: &Decision) -> Vec<(TaskKind, String)> {
    let jobs = decision.effects.iter().filter_map(|effect| match effect {
        Effect::Dispatch(dispatch) => Some((dispatch.job.kind(), dispatch.job.by())),
        Effect::Event(_) | Effect::Note(_) => None,
    });
    jobs.collect()
}

/// A world in which every device obeys at once and shows it, and no watchdog strikes.
fn honest(mut setting: Setting) -> World {
    setting
        .manners
        .values_mut()
        .for_each(|manner| *manner = Manner::Honest);
    setting.lands_ms = 0;
    setting.policy.self_fencing_timeout_s = None;
    setting.policy.restarts = 0;
    setting.policy.fencing.automatic = false;
    setting.policy.auto_rejoin = false;
    setting.world()
}

proptest! {
    #[test]
    fn a_dry_run_shows_the_answer_to_the_request(setting in setting(), actions in history(Truthfulness::Any), has_plan in any::<bool>()) {
        let world = live_through(setting.world(), &actions);
        let facts = facts(&world.plan);
        for (_, moment, _) in decisions(&world) {
            let (state, now) = (&moment.before, moment.now);
            let request = a_fence(has_plan.then(|| world.plan.clone()));
            let preview = Explanation::new(state, request.clone(), &facts, now).fence;
            match decide(state, request, now) {
                Err(refusal) => prop_assert_eq!(preview.answer, Err(refusal)),
                Ok(decision) => {
                    prop_assert_eq!(&preview.answer, &Ok(decision.answer.clone()));
                    prop_assert_eq!(&preview.superseded, &decision.superseded);
                    prop_assert_eq!(&preview.gates_after, &gates(&decision.state, now));
                    prop_assert_eq!(preview.begins_with, told(&decision));
                }
            }
        }
    }

    /// While the host's failure state is that of the fence's beginning.
    #[test]
    fn the_gates_once_fenced_are_those_of_the_explanation(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        let facts = facts(&world.plan);
        let mut expected = BTreeMap::new();
        for (_, moment, decision) in decisions(&world) {
            if let (Input::Fence { .. }, Reply::Started(_)) = (&moment.input, &decision.answer) {
                let preview = Explanation::new(&moment.before, moment.input.clone(), &facts, moment.now).fence;
                let told = (decision.state.host.failure_state, preview.gates_once_fenced.unwrap());
                expected.insert(decision.state.host.generation, told);
            }
            let host = &decision.state.host;
            let is_new = moment.before.host.current_fence().is_none() && host.current_fence().is_some();
            let Some((seen, told)) = expected.get(&host.generation).filter(|_| is_new) else { continue };
            if *seen == host.failure_state && host.good_fence().is_some() {
                let gates = gates(&decision.state, moment.now);
                prop_assert_eq!(gates.evacuate.allowed, told.evacuate.allowed);
                prop_assert_eq!(gates.schedule.allowed, told.schedule.allowed);
                prop_assert_eq!(gates.generation, told.generation);
            }
        }
    }

    /// If every device obeys, a set that can be completed without a person is completed, and without such a set a person is asked.
    #[test]
    fn a_set_that_can_be_completed_is_completed_if_all_devices_obey(setting in setting()) {
        let mut world = honest(setting);
        drop(world.see(FailureState::Unreachable));
        let request = a_fence(Some(world.plan.clone()));
        let facts = facts(&world.plan);
        let sets = Explanation::new(&world.state, request, &facts, world.now).sets;
        let alone = sets.iter().any(|set| set.can_be_completed() && !set.needs_person());
        prop_assert!(matches!(world.fence(), Ok(Reply::Started(_))));
        for _ in 0..20 {
            world.work_off();
            world.pass(10_000);
        }
        prop_assert_eq!(world.is_fenced(), alone, "{:?}", sets);
    }

    /// The proofs without hindrances are those that the plan can win if only some zones have workers.
    #[test]
    fn proofs_without_hindrances_are_those_that_served_zones_can_win(setting in setting(), unserved in proptest::collection::vec(any::<bool>(), 12)) {
        let mut plan = setting.plan.clone();
        let methods = plan.stages.iter_mut().flat_map(|stage| &mut stage.tasks).flat_map(|task| task.levels.iter_mut().flatten());
        for (method, is_unserved) in methods.zip(&unserved) {
            method.zone = if *is_unserved { "there" } else { "here" }.to_owned();
        }
        let known = |method: &FrozenMethod| MethodFacts { is_served: Some(method.zone == "here"), ..MethodFacts::default() };
        let facts = Facts {
            methods: plan.methods().map(|method| (method.name.clone(), known(method))).collect(),
            sufficient_sets: ProofKind::ALL[..3].iter().map(|kind| SufficientSet::from([*kind])).collect(),
            plan: Some(resolved(&plan)),
            ..Facts::default()
        };
        let world = setting.world();
        let sets = Explanation::new(&world.state, a_fence(Some(plan.clone())), &facts, world.now).sets;
        let won = sets.iter().filter(|set| set.can_be_completed()).flat_map(|set| &set.proofs);
        let won: SufficientSet = won.map(|proof| proof.kind).collect();
        let provable: SufficientSet = plan.provable(|method| method.zone == "here").into_keys().collect();
        prop_assert_eq!(won, provable);
    }
}
