//! S2: a timeout, a killed worker, an unparsable answer or an unreachable device is never a success, and never a reason to
//! change a state.

use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Action, Truthfulness, history, live_through};
use super::facts::{decisions, has_event};
use super::settings::{Setting, setting};
use ringfence_world::Manner;
use ringfence_world::World;
use ringfence_world::plans::cut_off_plan;

/// Histories with all faults, and without a person's help.
fn misfortunes() -> impl Strategy<Value = Vec<Action>> {
    history(Truthfulness::Any).prop_map(|mut actions| {
        actions.retain(|action| {
            !matches!(
                action,
                Action::Say { .. } | Action::PullAndSay | Action::Release { .. } | Action::PowerReturns
            )
        });
        actions
    })
}

fn without_success(mut setting: Setting) -> Setting {
    let obeys = |manner: &Manner| matches!(manner, Manner::Honest | Manner::Slow(_) | Manner::Stale(_));
    for manner in setting.manners.values_mut().filter(|manner| obeys(manner)) {
        *manner = Manner::Silent;
    }
    setting.policy.self_fencing_timeout_s = None;
    setting
}

proptest! {
    #[test]
    fn s2_unknown_is_unknown(setting in setting().prop_map(without_success), actions in misfortunes()) {
        let world = live_through(setting.world(), &actions);
        for (_, _, decision) in decisions(&world) {
            prop_assert_eq!(decision.state.host.fencing_state(), FencingState::Unfenced);
            prop_assert!(!has_event(decision, EventKind::OperationProof));
        }
    }

    #[test]
    fn s2_a_silent_release_does_not_end_applied_fencing(
        manners in proptest::collection::vec(proptest::sample::select(vec![Manner::Silent, Manner::Lies, Manner::Refuses]), 2),
        actions in misfortunes(),
    ) {
        let mut world = World::new(cut_off_plan(), ringfence_world::plans::policy());
        world.fence().unwrap();
        world.work_off();
        prop_assert!(world.is_fenced());
        world.site.manners = ["ceph", "switch"].map(str::to_owned).into_iter().zip(manners).collect();
        let before = world.trace.len();
        let world = live_through(world, &actions);
        for (_, _, decision) in decisions(&world).skip(before) {
            prop_assert_eq!(decision.state.host.fencing_state(), FencingState::Fenced);
            prop_assert_eq!(decision.state.host.applied.fencing.len(), 2);
        }
    }
}
