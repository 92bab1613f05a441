//! S3: the evacuate gate opens only after FENCED has been committed, and only while the failure state is UNREACHABLE. The
//! schedule gate is open only for UP and UNFENCED.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Truthfulness, history, live_through};
use super::facts::{decisions, fenced_generation, has_event};
use super::record::Record;
use super::settings::{plain_setting, setting};

proptest! {
    #[test]
    fn s3_fence_before_recovery(
        setting in setting(),
        actions in history(Truthfulness::Any),
        later_ms in 0..100_000_i64,
    ) {
        let world = live_through(setting.world(), &actions);
        let record = Record::of(&world);
        let mut was_committed = None;
        for (at, moment, decision) in decisions(&world) {
            for state in [&moment.before, &decision.state] {
                let host = &state.host;
                let gates = gates(state, moment.now + TimeDelta::milliseconds(later_ms));
                prop_assert_eq!(gates.generation, host.generation);
                if gates.evacuate.allowed {
                    prop_assert_eq!(host.fencing_state(), FencingState::Fenced);
                    prop_assert_eq!(host.failure_state, FailureState::Unreachable);
                    prop_assert_eq!(fenced_generation(host), Some(host.generation), "a rejoin has begun since the fence");
                }
                if gates.schedule.allowed {
                    prop_assert_eq!(host.fencing_state(), FencingState::Unfenced);
                    prop_assert_eq!(host.failure_state, FailureState::Up);
                    prop_assert!(host.applied.fencing.iter().all(|s| s.kind == FencingKind::PowerOff), "storage or network is still cut off");
                }
                prop_assert!(!(gates.evacuate.allowed && gates.schedule.allowed));
            }
            if has_event(decision, EventKind::HostFenced) {
                was_committed = fenced_generation(&decision.state.host);
            }
            if gates(&decision.state, moment.now).evacuate.allowed {
                prop_assert_eq!(was_committed, Some(decision.state.host.generation));
                prop_assert_eq!(record.failure_state(at), FailureState::Unreachable, "by the sources' reports");
            }
        }
    }
}

proptest! {
    #[test]
    fn s3_a_workload_is_started_elsewhere_once_and_only_while_it_cannot_run_on_its_host(
        setting in plain_setting(),
        actions in history(Truthfulness::Truthful),
    ) {
        let world = live_through(setting.world(), &actions);
        let mut started = BTreeSet::new();
        for start in &world.cloud.started {
            prop_assert!(start.was_safe, "{} could run: {:#?}", start.id, world.log);
            prop_assert!(started.insert(&start.id), "{} was started twice", start.id);
        }
        prop_assert_eq!(world.violation, None, "{:#?}", world.log);
    }

    #[test]
    fn s3_no_worker_may_start_a_workload_elsewhere_while_the_gate_is_closed(
        setting in setting(),
        actions in history(Truthfulness::Any),
    ) {
        let world = live_through(setting.world(), &actions);
        for (_, moment, decision) in decisions(&world) {
            let is_move = matches!(&moment.input, Input::Claim(claim) if claim.kind == StepKind::Move);
            // A repeated claim gets its first answer.
            let is_new = decision.effects.iter().any(|e| matches!(e, Effect::Event(e) if e.kind == EventKind::WorkloadMoving));
            if is_move && is_new {
                prop_assert!(gates(&moment.before, moment.now).evacuate.allowed, "{:#?}", world.log);
            }
        }
    }
}
