//! S10: a person's word is explicit, attributed, names the generation, and is refused for a host that is seen UP unless
//! overridden by an admin with a reason.

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Action, Truthfulness, history, live_through, say};
use super::facts::{decisions, events};
use super::record::Record;
use super::settings::setting;

/// Histories with more confirmations than usual.
fn talk() -> impl Strategy<Value = Vec<Action>> {
    (
        history(Truthfulness::Any),
        proptest::collection::vec(say(), 1..30),
    )
        .prop_map(|(actions, words)| {
            let mut words = words.into_iter();
            actions
                .into_iter()
                .flat_map(|action| [Some(action), words.next()])
                .flatten()
                .collect()
        })
}

proptest! {
    #[test]
    fn s10_a_persons_word(setting in setting(), actions in talk()) {
        let world = live_through(setting.world(), &actions);
        let record = Record::of(&world);
        for (at, moment, decision) in decisions(&world) {
            let words = events(decision).filter(|event| {
                event.kind == EventKind::OperationProof && event.data["proof"]["kind"] == "operator"
            });
            for event in words {
                let Input::Confirm { generation, said_at, actor, reason, override_up, .. } = &moment.input else {
                    prop_assert!(false, "no accepted confirmation is in the record");
                    continue;
                };
                let host = &moment.before.host;
                prop_assert_eq!(*generation, host.generation);
                prop_assert_eq!(event.data["proof"]["source"].as_str(), Some(actor.name.as_str()));
                let detail = event.data["proof"]["detail"].as_str().unwrap();
                prop_assert!(detail.starts_with(reason.as_str()));
                if record.failure_state(at) == FailureState::Up {
                    prop_assert!(*override_up && actor.is_admin);
                    prop_assert!(detail.contains("UP"), "the proof does not mention the override");
                }
                prop_assert!(*said_at + TimeDelta::minutes(10) >= moment.now, "the word was too old");
                let is_before_set = moment.before.clock_set_at.is_some_and(|set_at| set_at >= *said_at);
                prop_assert!(!is_before_set, "how old the word was is not known");
                prop_assert!(*override_up || !record.was_heard_since(*said_at, at), "the host was alive since");
                let is_undoing = |f: &InFlight| f.until > moment.now && f.kind.releases();
                prop_assert!(!host.in_flight.iter().any(is_undoing), "the proof may be undone at this moment");
            }
        }
    }

    #[test]
    fn s10_a_refused_confirmation_changes_nothing(setting in setting(), actions in talk()) {
        let world = live_through(setting.world(), &actions);
        for pair in world.trace.windows(2) {
            if let (Input::Confirm { .. }, Err(_)) = (&pair[0].input, &pair[0].said) {
                // What is suspended beside the host is not the decision's.
                let after = HostState { shared: pair[0].before.shared.clone(), ..pair[1].before.clone() };
                prop_assert_eq!(&pair[0].before, &after);
            }
        }
    }
}
