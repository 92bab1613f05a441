//! S6: every message may arrive twice, late, or out of order. The histories have late messages in any order; here every input comes
//! twice.

use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Truthfulness, history, live_through};
use super::facts::{decisions, events};
use super::settings::setting;

fn live(state: &HostState) -> Option<&Operation> {
    state
        .operation
        .as_ref()
        .filter(|operation| operation.status.is_live())
}

proptest! {
    #[test]
    fn s6_idempotent(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        for (_, moment, decision) in decisions(&world) {
            // A second retry is a new request, not a repeated message.
            if matches!(moment.input, Input::Retry { .. }) {
                continue;
            }
            let after = HostState { operation: live(&decision.state).cloned(), ..decision.state.clone() };
            // It has joined what ended in that moment: asked again, it is a new request.
            if matches!(decision.answer, Reply::Joined(id) if live(&after).is_none_or(|live| live.id != id)) {
                continue;
            }
            let Ok(again) = decide(&after, moment.input.clone(), moment.now) else { continue };
            prop_assert_eq!(events(&again).count(), 0, "{:?}", again.effects);
            let sends = again.effects.iter().any(|effect| matches!(effect, Effect::Dispatch(_)));
            prop_assert!(!sends, "{:?}", again.effects);
            prop_assert_eq!(&again.state, &after);
            // The first decision may set a wake time that the second drops, but never a wake time that is too late.
            match (decision.wake_at, again.wake_at) {
                (Some(first), Some(second)) => prop_assert!(first <= second),
                (first, second) => prop_assert!(second.is_none(), "{first:?}, then {second:?}"),
            }
        }
    }

    /// Equal inputs give equal decisions, and nothing happens before the wake time.
    #[test]
    fn s6_time_alone_changes_nothing_before_it_is_due(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        for (_, moment, decision) in decisions(&world) {
            let again = decide(&moment.before, moment.input.clone(), moment.now);
            prop_assert_eq!(again.as_ref(), Ok(decision));
            let Some(wake_at) = decision.wake_at else { continue };
            let after = HostState { operation: live(&decision.state).cloned(), ..decision.state.clone() };
            let early = wake_at - chrono::TimeDelta::milliseconds(1);
            if early > moment.now {
                let tick = decide(&after, Input::tick(), early).unwrap();
                prop_assert_eq!(&tick.effects, &Vec::new());
                prop_assert_eq!(&tick.state, &after);
            }
        }
    }
}
