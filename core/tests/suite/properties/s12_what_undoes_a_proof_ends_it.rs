//! S12: what undoes a proof ends it when it is claimed, and a sign of life observed after it ends every proof that says that the host
//! had stopped, whenever it arrives and from whichever source; a cut of storage and network stays a cut. A gate never rests on a proof
//! that something may have undone.

use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Truthfulness, history, live_through};
use super::facts::{decisions, fenced_generation};
use super::record::Record;
use super::settings::setting;

proptest! {
    #[test]
    fn s12_an_open_gate_rests_on_proofs_that_have_not_ended(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        let record = Record::of(&world);
        for (at, moment, decision) in decisions(&world) {
            if gates(&decision.state, moment.now).evacuate.allowed {
                let generation = fenced_generation(&decision.state.host).expect("an open evacuate gate has a fence");
                let standing = record.standing(at, generation);
                prop_assert!(record.suffices(&standing), "only {standing:?} still stands: {:#?}", world.log);
            }
        }
    }

    #[test]
    fn s12_a_proof_that_has_ended_never_comes_back(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        for (_, moment, decision) in decisions(&world) {
            let (Some(before), Some(after)) = (&moment.before.host.fence, &decision.state.host.fence) else { continue };
            if before.generation != after.generation {
                continue;
            }
            for ended in before.proofs.iter().filter(|proof| proof.ended.is_some()) {
                let now = after.proofs.iter().find(|proof| proof.kind == ended.kind);
                let now = now.expect("a proof is kept as long as its fence");
                let is_won_anew = now.operation_id != ended.operation_id || now.read_at > ended.read_at;
                prop_assert!(now.ended.is_some() || is_won_anew, "{ended:?} came back as {now:?}");
            }
        }
    }

    /// The judge is the physical world.
    #[test]
    fn s12_no_gate_is_open_over_a_host_that_can_run_and_write(setting in setting(), actions in history(Truthfulness::Truthful)) {
        let world = live_through(setting.world(), &actions);
        prop_assert_eq!(world.violation, None, "{:#?}", world.log);
    }
}
