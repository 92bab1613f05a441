//! S13: silence counts only while it is watched: from report to report with a bounded gap, by sources that would have heard.

use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Action, Truthfulness, history, live_through};
use super::facts::{decisions, events};
use super::record::Record;
use super::settings::{Setting, setting};

/// Histories with more reports than usual.
fn vigil() -> impl Strategy<Value = Vec<Action>> {
    let watch = (1..20_u8).prop_map(Action::Watch);
    (
        history(Truthfulness::Any),
        proptest::collection::vec(watch, 1..10),
    )
        .prop_map(|(actions, watches)| {
            let mut watches = watches.into_iter();
            actions
                .into_iter()
                .flat_map(|action| [Some(action), watches.next()])
                .flatten()
                .collect()
        })
}

fn with_watchdog(mut setting: Setting) -> Setting {
    setting.policy.self_fencing_timeout_s.get_or_insert(30);
    setting
}

proptest! {
    #[test]
    fn s13_silence_is_watched(setting in setting().prop_map(with_watchdog), actions in vigil()) {
        let world = live_through(setting.world(), &actions);
        let record = Record::of(&world);
        for (at, _, decision) in decisions(&world) {
            let mut proofs = events(decision).filter(|event| event.kind == EventKind::OperationProof);
            if proofs.any(|event| event.data["proof"]["kind"] == "self-fencing") {
                let generation = decision.state.host.generation;
                prop_assert!(record.standing(at, generation).contains(&ProofKind::SelfFencing), "{:#?}", world.log);
            }
        }
    }
}
