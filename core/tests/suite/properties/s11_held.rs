//! S11: no fence that no person asked for begins on a host that a condition spares, and none for silence on a host that is not seen UNREACHABLE.

use proptest::prelude::*;
use ringfence_core::*;
use ringfence_world::{Moment, World};

use super::actions::{Action, SICKNESS, Truthfulness, history, live_through};
use super::facts::decisions;
use super::settings::setting;

/// The live operation that a person wants by this input.
fn wanted(moment: &Moment, decision: &Decision) -> Option<OperationId> {
    match (&moment.input, &decision.answer) {
        (Input::Fence { heeds_safeguards, .. }, _) if *heeds_safeguards => None,
        (Input::Retry { .. } | Input::Fence { .. } | Input::Confirm { .. }, _) => {
            decision.state.operation.as_ref().map(|live| live.id)
        }
        _ => None,
    }
}

/// The moments at which a fence begins that no person has wanted.
fn beginnings(world: &World) -> Vec<(&Moment, &Decision, &Operation)> {
    let mut by_persons = Vec::new();
    let mut begun: Vec<(&Moment, &Decision, &Operation)> = Vec::new();
    let mut last = None;
    for (_, moment, decision) in decisions(world) {
        by_persons.extend(wanted(moment, decision));
        let live = decision.state.operation.as_ref();
        let goes_on = matches!(moment.input, Input::BeginAnew { .. });
        if goes_on && last.is_some_and(|last| by_persons.contains(&last)) {
            by_persons.extend(live.map(|live| live.id));
        }
        last = live.map(|live| live.id).or(last);
        let is_its =
            |live: &&Operation| live.kind() == OperationKind::Fence && !by_persons.contains(&live.id);
        let Some(live) = live.filter(is_its) else { continue };
        // Its first task may have a delay. It begins once, however often it stands still after that.
        let has_begun = live.status == OperationStatus::Running || live.attempts().next().is_some();
        let is_told = begun.iter().any(|(_, _, told)| told.id == live.id);
        if has_begun && !is_told {
            begun.push((moment, decision, live));
        }
    }
    begun
}

/// When the detector's word came that stood at this moment.
fn sick_since(world: &World, until: &Moment) -> Option<Timestamp> {
    let mut since = None;
    for (_, moment, _) in decisions(world) {
        if let Input::Conditions { conditions, .. } = &moment.input {
            let is_sick = conditions
                .iter()
                .any(|said| said.name == SICKNESS && said.status == ConditionStatus::True);
            since = is_sick.then(|| since.unwrap_or(moment.now));
        }
        if std::ptr::eq(moment, until) {
            break;
        }
    }
    since
}

fn automatic(at_once: Option<u32>) -> FencingPolicy {
    FencingPolicy {
        automatic: true,
        after_s: 10,
        at_once,
        ..FencingPolicy::default()
    }
}

proptest! {
    #[test]
    fn s11_no_fence_that_no_person_asked_for_begins_on_a_host_that_a_condition_spares(
        setting in setting(),
        for_s in 0..30_u32,
        mut actions in history(Truthfulness::Truthful),
        sick_at in any::<proptest::sample::Index>(),
    ) {
        actions.insert(sick_at.index(actions.len()), Action::Ail(true));
        let mut world = setting.world();
        world.state.policy.fencing = automatic(None);
        world.state.policy.conditions = vec![ConditionRule {
            condition: SICKNESS.to_owned(),
            status: ConditionStatus::True,
            for_s,
            action: ConditionAction::Spare,
        }];
        let world = live_through(world, &actions);
        for (moment, _, live) in beginnings(&world) {
            let since = sick_since(&world, moment);
            let is_spared = since.is_some_and(|since| (moment.now - since).num_seconds() >= i64::from(for_s));
            prop_assert!(!is_spared, "fence {} begins, and the host has been sick since {since:?}", live.id);
        }
    }

    #[test]
    fn s11_no_fence_for_silence_begins_on_a_host_that_is_not_seen_unreachable(
        setting in setting(),
        mut actions in history(Truthfulness::Any),
        forgotten_at in any::<proptest::sample::Index>(),
        over_at in any::<proptest::sample::Index>(),
    ) {
        let mut world = setting.world();
        world.state.policy.fencing = automatic(Some(1));
        actions.insert(forgotten_at.index(actions.len()), Action::ForgetSource(2));
        actions.insert(over_at.index(actions.len()), Action::OthersFail(0));
        // Another fence is under way when the host falls silent.
        let silent = [FailureState::Up, FailureState::Unreachable].map(|state| Action::Report { state, age_s: 0, boot: None });
        let actions = [vec![Action::OthersFail(1)], silent.to_vec(), vec![Action::Pass(11_000)], actions, vec![Action::Pass(10_000)]].concat();
        let world = live_through(world, &actions);
        for (_, decision, live) in beginnings(&world) {
            if live.fence().is_some_and(|fence| fence.cause == Cause::Silence) {
                prop_assert_eq!(decision.state.host.failure_state, FailureState::Unreachable);
            }
        }
    }
}
