//! S11: on a host that a condition spares, no fence begins that no person asked for.

use proptest::prelude::*;
use ringfence_core::*;
use ringfence_world::Moment;

use super::actions::{SICKNESS, Truthfulness, history, live_through};
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

/// When the detector's word came that still stands.
fn sick_since(moment: &Moment, known: Option<Timestamp>) -> Option<Timestamp> {
    let Input::Conditions { conditions, .. } = &moment.input else {
        return known;
    };
    let said = conditions.iter().find(|said| said.name == SICKNESS);
    match said.map(|said| said.status) {
        Some(ConditionStatus::True) => known.or(Some(moment.now)),
        Some(_) => None,
        None => known,
    }
}

fn spares_after_s(state: &HostState) -> Option<i64> {
    let rule = state.policy.conditions.first()?;
    (rule.action == ConditionAction::Spare).then_some(i64::from(rule.for_s))
}

proptest! {
    #[test]
    fn s11_no_fence_that_no_person_asked_for_begins_on_a_host_that_a_condition_spares(
        setting in setting(),
        actions in history(Truthfulness::Truthful),
    ) {
        let world = live_through(setting.world(), &actions);
        let mut by_persons = Vec::new();
        let mut since = None;
        for (_, moment, decision) in decisions(&world) {
            by_persons.extend(wanted(moment, decision));
            since = sick_since(moment, since);
            let spares = spares_after_s(&decision.state);
            let is_spared = spares.zip(since).is_some_and(|(for_s, since)| (moment.now - since).num_seconds() >= for_s);
            let live = decision.state.operation.as_ref();
            let Some(live) = live.filter(|live| live.kind() == OperationKind::Fence && !by_persons.contains(&live.id)) else {
                continue;
            };
            let had_begun = moment.before.operation.as_ref().is_some_and(|known| known.id == live.id && known.attempts().next().is_some());
            let begins = !had_begun && live.attempts().next().is_some();
            prop_assert!(!(begins && is_spared), "fence {} begins", live.id);
        }
    }
}
