//! An explanation: what it says of a fence is what a fence then comes to.

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
    }
}

fn told(decision: &Decision) -> Vec<(TaskKind, String)> {
    let jobs = decision.effects.iter().filter_map(|effect| match effect {
        Effect::Dispatch(dispatch) => Some((dispatch.job.kind(), dispatch.job.by())),
        Effect::Event(_) | Effect::Note(_) => None,
    });
    jobs.collect()
}

/// A world in which every device does at once what it is told and shows it, and no watchdog strikes.
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
    fn a_dry_run_says_what_the_request_is_answered(setting in setting(), actions in history(Truthfulness::Any), has_plan in any::<bool>()) {
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

    /// As long as the host is seen as it was seen when the fence began.
    #[test]
    fn the_gates_once_fenced_are_those_that_were_told(setting in setting(), actions in history(Truthfulness::Any)) {
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

    /// Where every device is well, a set that can be completed without a person is completed, and without such a set a person is asked.
    #[test]
    fn a_set_that_can_be_completed_is_completed_where_all_devices_are_well(setting in setting()) {
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

    /// The proofs that nothing keeps from being won are those that the plan can win where only some zones have workers.
    #[test]
    fn what_an_unserved_zone_keeps_from_being_won_is_what_the_plan_cannot_prove(setting in setting(), unserved in proptest::collection::vec(any::<bool>(), 12)) {
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
