//! S1: FENCED only if, for this host and this generation, every task of one sufficient set was observed done after it was
//! commanded, or the host's own watchdog has struck, or an authorised person confirmed that generation; and only when what the
//! storage had accepted has landed.

use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Truthfulness, act, history, live_through};
use super::facts::{decisions, events, fenced_generation, has_event};
use super::record::Record;
use super::settings::setting;

proptest! {
    #[test]
    fn s1_proof(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        let record = Record::of(&world);
        for (at, moment, decision) in decisions(&world) {
            let (before, after) = (&moment.before.host, &decision.state.host);
            let is_new = after.fence.is_some() && fenced_generation(before) != fenced_generation(after);
            prop_assert_eq!(is_new, has_event(decision, EventKind::HostFenced), "a host turns FENCED exactly with the event");
            for event in events(decision).filter(|event| event.kind == EventKind::HostFenced) {
                let generation = fenced_generation(after).unwrap();
                prop_assert_eq!(event.data["generation"].as_u64(), Some(u64::from(generation.0)));
                let proven = record.settled(at, generation);
                prop_assert!(record.suffices(&proven), "only {proven:?} was proven: {:#?}", world.log);
            }
        }
    }

    /// The judge is the physical world.
    #[test]
    fn s1_no_host_is_called_fenced_while_its_workloads_can_run_and_write(
        setting in setting(),
        actions in history(Truthfulness::Truthful),
    ) {
        let mut world = setting.world();
        for action in &actions {
            act(&mut world, action);
            prop_assert_eq!(world.violation, None, "after {:?}: {:#?}", action, world.log);
        }
    }
}
