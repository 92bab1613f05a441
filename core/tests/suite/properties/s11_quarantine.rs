//! S11: a host that was fenced too often lately is not taken back before a person asks for it.

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Truthfulness, history, live_through};
use super::facts::{decisions, has_event};
use super::settings::setting;

fn rejoin(state: &HostState) -> Option<OperationId> {
    let live = state.operation.as_ref().filter(|live| live.status.is_live());
    live.filter(|live| live.kind() == OperationKind::Rejoin)
        .map(|live| live.id)
}

proptest! {
    #[test]
    fn s11_a_host_in_quarantine_is_taken_back_by_a_person_alone(setting in setting(), actions in history(Truthfulness::Any)) {
        let mut world = setting.world();
        let policy = QuarantinePolicy { fences: 2, within_s: 90_000 };
        world.state.policy.quarantine = Some(policy);
        world.state.policy.auto_rejoin = true;
        let world = live_through(world, &actions);
        let mut fenced_at: Vec<Timestamp> = Vec::new();
        let mut is_in_quarantine = false;
        for (_, moment, decision) in decisions(&world) {
            let is_asked = matches!(moment.input, Input::Rejoin { .. } | Input::BeginAnew { .. });
            if is_asked && rejoin(&decision.state).is_some() && is_in_quarantine {
                (is_in_quarantine, fenced_at) = (false, Vec::new());
            }
            let is_new = rejoin(&decision.state) != rejoin(&moment.before) && rejoin(&decision.state).is_some();
            prop_assert!(!is_new || !is_in_quarantine, "taken back by itself after {fenced_at:?}");
            if has_event(decision, EventKind::HostFenced) {
                fenced_at.push(moment.now);
                let since = moment.now - TimeDelta::seconds(i64::from(policy.within_s));
                let lately = fenced_at.iter().filter(|at| **at > since).count();
                is_in_quarantine |= lately >= policy.fences as usize;
            }
        }
    }
}
