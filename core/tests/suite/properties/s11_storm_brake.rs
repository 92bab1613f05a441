//! S11: automatic fencing stops and asks when too much fails at once; it starts only for a silence that no earlier fence has answered.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Truthfulness, history, live_through};
use super::facts::{decisions, fenced_generation, has_event, has_note, is_suspended};
use super::settings::setting;
use ringfence_world::Moment;

fn limits_hold(policy: &FencingPolicy, around: &Neighbourhood) -> bool {
    let share = around.out_of_service * 100 <= around.hosts * u64::from(policy.at_most_percent);
    let is_small = around.out_of_service <= 1 || (around.out_of_service == 2 && around.hosts > 2);
    around.lately <= u64::from(policy.at_most) && (share || is_small)
}

fn is_free(state: &HostState) -> bool {
    let gave_up = |live: &Operation| {
        live.kind() == OperationKind::Rejoin && live.status == OperationStatus::NeedsOperator
    };
    state.operation.as_ref().is_none_or(gave_up)
}

/// Whether a fence begins that is not merely held for a program, or a person ends one.
fn answers(moment: &Moment, decision: &Decision) -> bool {
    const BEGINS: [EventKind; 2] = [EventKind::OperationReleased, EventKind::OperationRestarted];
    let is_fence = |live: Option<&Operation>| live.is_some_and(|live| live.kind() == OperationKind::Fence);
    match (&moment.input, &decision.answer) {
        (Input::Fence { heeds_safeguards, .. }, Reply::Started(_)) => !heeds_safeguards,
        (_, Reply::Started(_)) => true,
        (Input::Cancel { actor, .. }, Reply::Done) => {
            actor.name == "anna" && is_fence(moment.before.operation.as_ref())
        }
        _ => {
            let begins = BEGINS.into_iter().any(|kind| has_event(decision, kind));
            begins && is_fence(decision.state.operation.as_ref())
        }
    }
}

fn sends_for(decision: &Decision, id: OperationId) -> bool {
    let sent = |effect: &Effect| matches!(effect, Effect::Dispatch(sent) if sent.attempt.operation_id == id);
    decision.effects.iter().any(sent)
}

proptest! {
    #[test]
    fn s11_a_held_operation_does_nothing_until_a_person_releases_it(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        let mut held = BTreeSet::new();
        for (_, moment, decision) in decisions(&world) {
            match (&moment.input, &decision.answer) {
                // Of a host that is suspended, that is asked later.
                (Input::AutoFence { around, .. }, Reply::Started(id))
                    if !limits_hold(&moment.before.policy.fencing, around) && !is_suspended(moment) => drop(held.insert(*id)),
                (Input::Retry { operation_id: id, .. }, _) | (Input::Fence { heeds_safeguards: false, .. }, Reply::Joined(id)) => drop(held.remove(id)),
                (Input::Confirm { .. }, Reply::Done) => held.clear(),
                _ => {}
            }
            for id in &held {
                prop_assert!(!sends_for(decision, *id), "{id} is held");
                let is_its = decision.state.operation.as_ref().is_some_and(|live| live.id == *id);
                prop_assert!(!is_its || fenced_generation(&decision.state.host) != Some(decision.state.host.generation));
            }
        }
    }

    #[test]
    fn s11_only_an_unanswered_silence_begins_an_automatic_fence(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        let mut is_answered = false;
        for (_, moment, decision) in decisions(&world) {
            let host = &moment.before.host;
            let cause = decision.state.operation.as_ref().and_then(Operation::fence).map(|fence| fence.cause);
            let is_for_silence = cause == Some(Cause::Silence);
            if let (Input::AutoFence { .. }, Reply::Started(_), true) = (&moment.input, &decision.answer, is_for_silence) {
                let policy = &moment.before.policy.fencing;
                prop_assert!(policy.automatic && is_free(&moment.before) && !is_answered);
                prop_assert_eq!(host.failure_state, FailureState::Unreachable);
                let silent_for = moment.now - host.failure_since.unwrap().min(moment.now);
                prop_assert!(silent_for >= TimeDelta::seconds(i64::from(policy.after_s)));
            }
            is_answered |= answers(moment, decision) && decision.state.host.failure_state == FailureState::Unreachable;
            // A sign of life that ended a proof also ended the silence before it, whatever is reported now.
            let is_life = matches!(&moment.input, Input::FailureState { report, .. }
                if report.state == FailureState::Up || has_note(decision, "fence.proof_ended"));
            is_answered &= !is_life;
        }
    }

    #[test]
    fn s11_a_host_that_answers_is_fenced_for_a_condition_that_its_segment_names_and_once_for_each(
        setting in setting(),
        actions in history(Truthfulness::Any),
    ) {
        let world = live_through(setting.world(), &actions);
        let mut sick_since: Option<Timestamp> = None;
        for (_, moment, decision) in decisions(&world) {
            // By a clock that was set back, it counts from then on.
            sick_since = sick_since.map(|since| since.min(moment.now));
            if let Input::Conditions { conditions, .. } = &moment.input {
                let is_sick = conditions.iter().any(|one| one.status == ConditionStatus::True);
                sick_since = is_sick.then(|| sick_since.unwrap_or(moment.now));
            }
            let begun = decision.state.operation.as_ref().filter(|_| matches!(decision.answer, Reply::Started(_)));
            let is_for_condition = begun.and_then(Operation::fence).is_some_and(|fence| fence.cause == Cause::Condition);
            if is_for_condition {
                let policy = &moment.before.policy;
                let rule = policy.conditions.iter().find(|rule| rule.action == ConditionAction::Fence);
                prop_assert!(policy.fencing.automatic && moment.before.host.failure_state == FailureState::Up);
                prop_assert!(rule.is_some(), "no rule says so");
                let stood = sick_since.map(|since| moment.now - since.min(moment.now));
                let has_to = TimeDelta::seconds(i64::from(rule.unwrap().for_s));
                prop_assert!(stood.is_some_and(|stood| stood >= has_to), "it stood for {stood:?}");
            }
            // What has begun since it came has answered it.
            if matches!(decision.answer, Reply::Started(_)) && decision.state.host.generation != moment.before.host.generation {
                sick_since = None;
            }
        }
    }
}
