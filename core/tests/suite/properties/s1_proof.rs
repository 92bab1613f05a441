//! S1: FENCED only if, for this host and this generation, every task of one sufficient set was observed done after it was
//! commanded, or the self-fencing timeout ran out, or an authorised person confirmed that generation.

use proptest::prelude::*;
use ringfence_core::*;

use super::deeds::{Customs, act, history, live_through};
use super::facts::{decisions, events, has_event, proven};
use super::settings::setting;
use ringfence_world::World;

proptest! {
    #[test]
    fn s1_proof(setting in setting(), deeds in history(Customs::Any)) {
        let world = live_through(setting.world(), &deeds);
        for (at, moment, decision) in decisions(&world) {
            let (before, after) = (&moment.before.host, &decision.state.host);
            let is_new = after.fencing_state() == FencingState::Fenced
                && (before.fencing_state() != FencingState::Fenced || fenced_generation(&before) != fenced_generation(&after));
            prop_assert_eq!(is_new, has_event(decision, EventKind::HostFenced), "FENCED is an event, always and only");
            for event in events(decision).filter(|event| event.kind == EventKind::HostFenced) {
                let id: OperationId = event.data["operation_id"].as_str().unwrap().parse().unwrap();
                let proven = proven(&world, at, id);
                let suffices = world.plan.sufficient_sets.iter().any(|set| set.is_subset(&proven));
                prop_assert!(suffices, "only {proven:?} was proven");
                prop_assert_eq!(event.data["generation"].as_u64(), fenced_generation(&after).map(|g| u64::from(g.0)));
            }
        }
    }

    /// The worst that can happen, looked for in the world itself.
    #[test]
    fn s1_no_host_is_called_fenced_while_its_workloads_can_run_and_write(
        setting in setting(),
        deeds in history(Customs::Truthful),
    ) {
        let mut world = setting.world();
        for deed in &deeds {
            act(&mut world, deed);
            let host = &world.state.host;
            let is_said = host.fencing_state() == FencingState::Fenced && host.fenced_generation == Some(host.generation);
            if is_said || world.gates().evacuate.allowed {
                prop_assert!(is_so(&world), "after {deed:?}: {:#?}", world.log);
            }
        }
    }
}

/// What one of the plan's sets stands for is really so.
fn is_so(world: &World) -> bool {
    let mut sets = world.plan.sufficient_sets.iter();
    sets.any(|set| set.iter().all(|kind| world.site.holds(*kind)))
}
