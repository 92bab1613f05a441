//! S3: the evacuate gate opens only after FENCED has been committed, and only while the failure state is UNREACHABLE. The
//! schedule gate is open only for UP and UNFENCED.

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;

use super::deeds::{Customs, history, live_through};
use super::facts::decisions;
use super::settings::setting;

proptest! {
    #[test]
    fn s3_fence_before_recovery(
        setting in setting(),
        deeds in history(Customs::Any),
        later_ms in 0..100_000_i64,
    ) {
        let world = live_through(setting.world(), &deeds);
        let mut was_committed = None;
        for (_, moment, decision) in decisions(&world) {
            for state in [&moment.before, &decision.state] {
                let host = &state.host;
                let gates = gates(state, moment.now + TimeDelta::milliseconds(later_ms));
                prop_assert_eq!(gates.generation, host.generation);
                if gates.evacuate.allowed {
                    prop_assert_eq!(host.fencing_state, FencingState::Fenced);
                    prop_assert_eq!(host.failure_state, FailureState::Unreachable);
                    prop_assert_eq!(host.fenced_generation, Some(host.generation), "no rejoin has begun since");
                }
                if gates.schedule.allowed {
                    prop_assert_eq!(host.fencing_state, FencingState::Unfenced);
                    prop_assert_eq!(host.failure_state, FailureState::Up);
                    prop_assert!(host.standing.iter().all(|s| s.kind == TaskKind::PowerOff), "nothing is cut off");
                }
                prop_assert!(!(gates.evacuate.allowed && gates.schedule.allowed));
            }
            if super::facts::has_event(decision, EventKind::HostFenced) {
                was_committed = decision.state.host.fenced_generation;
            }
            if gates(&decision.state, moment.now).evacuate.allowed {
                prop_assert_eq!(was_committed, Some(decision.state.host.generation));
            }
        }
    }
}
