//! S4: one live operation per host. A result counts only if it matches (host, generation, task, attempt); any other goes on
//! record and changes nothing.

use std::collections::BTreeSet;

use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Truthfulness, history, live_through};
use super::facts::{Grant, decisions, events, fenced_generation, grants, live_after};
use super::record::Record;
use super::settings::setting;

/// Applied fencing without the time until which it may have been taken: every worker that stops sets this time.
fn what_stands(state: &HostState) -> Vec<(FencingKind, &FrozenMethod, AttemptId)> {
    let standing = state.host.applied.fencing.iter();
    standing.map(|s| (s.kind, &s.method, s.attempt)).collect()
}

proptest! {
    #[test]
    fn s4_one_at_a_time(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        let record = Record::of(&world);
        let mut live = BTreeSet::new();
        for (at, moment, decision) in decisions(&world) {
            let before = live.clone();
            live_after(&mut live, decision);
            prop_assert!(live.len() <= 1, "{live:?}");
            let shown = decision.state.operation.iter().filter(|o| o.status.is_live()).map(|o| o.id);
            prop_assert_eq!(shown.collect::<BTreeSet<_>>(), live.clone());
            let begun: Vec<_> = events(decision).filter(|e| e.kind == EventKind::OperationStarted).collect();
            if !begun.is_empty() {
                prop_assert_eq!(begun.len(), 1);
                let is_evacuation = begun[0].data["kind"] == "evacuation";
                let known = moment.before.host.generation;
                let next = if is_evacuation { known } else { known.next() };
                prop_assert_eq!(decision.state.host.generation, next);
            } else {
                prop_assert_eq!(decision.state.host.generation, moment.before.host.generation);
            }
            if let Input::Fence { .. } = &moment.input {
                let running = moment.before.operation.as_ref().filter(|o| o.kind() == OperationKind::Fence);
                match (&decision.answer, running) {
                    (Reply::Joined(id), Some(operation)) => prop_assert_eq!(*id, operation.id),
                    (Reply::Started(_), None) | (Reply::AlreadySo, _) => {}
                    // The task was proven, and its proof has ended.
                    (Reply::Started(_), Some(operation)) => {
                        prop_assert_eq!(fenced_generation(&moment.before.host), Some(operation.generation));
                        prop_assert!(!record.suffices(&record.standing(at, operation.generation)));
                    }
                    other => prop_assert!(false, "{other:?} after {before:?}"),
                }
            }
        }
    }

    #[test]
    fn s4_a_result_that_does_not_match_changes_nothing(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        let grants = grants(&world);
        for (at, moment, decision) in decisions(&world) {
            let Input::Result(result) = &moment.input else { continue };
            // The claim's id decides; a worker's name beside it changes nothing.
            let claim = |g: &Grant| Claim { worker: result.claim.worker.clone(), ..g.claim.clone() };
            let grant = grants.iter().find(|g| g.at < at && claim(g) == result.claim);
            let tick = decide(&moment.before, Input::tick(), moment.now).unwrap();
            if grant.is_none() {
                prop_assert!(matches!(decision.answer, Reply::Ignored(_)));
                prop_assert_eq!(&decision.state, &tick.state, "the result has changed the state");
                let is_record = |effect: &Effect| matches!(effect, Effect::Note(note) if note.action == "result.ignored");
                let (record, others): (Vec<_>, Vec<_>) = decision.effects.iter().cloned().partition(is_record);
                prop_assert_eq!(record.len(), 1);
                prop_assert_eq!(others, tick.effects);
            }
            let live = moment.before.operation.as_ref().map(|o| o.id);
            if live != Some(result.claim.attempt.operation_id) {
                prop_assert!(matches!(decision.answer, Reply::Ignored(_)));
                prop_assert_eq!(what_stands(&decision.state), what_stands(&tick.state));
            }
        }
    }

    #[test]
    fn s4_five_equal_requests_are_one_operation(setting in setting(), actions in history(Truthfulness::Any)) {
        let mut world = live_through(setting.world(), &actions);
        let started = (0..5).filter(|_| matches!(world.fence(), Ok(Reply::Started(_)))).count();
        prop_assert!(started <= 1);
    }
}
