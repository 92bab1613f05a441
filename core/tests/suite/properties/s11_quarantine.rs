//! S11: a host that was fenced too often lately is not taken back before a person asks for it.

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans::{self, power_plan};

use super::facts::{decisions, has_event};
use crate::scenarios::boot;

const POLICY: QuarantinePolicy = QuarantinePolicy {
    fences: 2,
    within_s: 3_600,
};

/// What happens to one host that its segment fences, and takes back, by itself.
#[derive(Clone, Debug)]
enum Action {
    FallSilent,
    ComeBack,
    Work,
    Pass(u32),
    Fence,
    Cancel,
    Rejoin,
    /// A program asks for it.
    RejoinByProgram,
}

fn action() -> impl Strategy<Value = Action> {
    let a_while = prop_oneof![4 => 500..70_000_u32, 1 => 70_000..3_000_000_u32];
    prop_oneof![
        4 => Just(Action::FallSilent),
        4 => Just(Action::ComeBack),
        8 => Just(Action::Work),
        8 => a_while.prop_map(Action::Pass),
        1 => Just(Action::Fence),
        1 => Just(Action::Cancel),
        1 => Just(Action::Rejoin),
        2 => Just(Action::RejoinByProgram),
    ]
}

fn act(world: &mut World, action: &Action) {
    match *action {
        Action::FallSilent => drop(world.see(FailureState::Unreachable)),
        Action::ComeBack => {
            let name = format!("boot-{}", world.ids);
            let new = boot(&name, world.now);
            drop(world.say("monitor", FailureState::Up, 0, Some(new)));
        }
        Action::Work => world.work_off(),
        Action::Pass(milliseconds) => world.pass(i64::from(milliseconds)),
        Action::Fence => drop(world.fence()),
        Action::Cancel if world.state.operation.is_some() => drop(world.cancel()),
        Action::Cancel => {}
        Action::Rejoin => drop(world.rejoin(false)),
        Action::RejoinByProgram => drop(world.rejoin_for_program()),
    }
}

fn rejoin(state: &HostState) -> Option<OperationId> {
    let live = state.operation.as_ref().filter(|live| live.status.is_live());
    live.filter(|live| live.kind() == OperationKind::Rejoin)
        .map(|live| live.id)
}

proptest! {
    #[test]
    fn s11_a_host_in_quarantine_is_taken_back_by_a_person_alone(
        actions in proptest::collection::vec(action(), 20..200),
    ) {
        let policy = SegmentPolicy {
            auto_rejoin: true,
            quarantine: Some(POLICY),
            fencing: FencingPolicy { automatic: true, after_s: 0, ..FencingPolicy::default() },
            ..plans::policy()
        };
        let mut world = World::new(power_plan(), policy);
        world.restarts = false;
        for action in &actions {
            act(&mut world, action);
        }
        let mut fenced_at: Vec<Timestamp> = Vec::new();
        let mut is_in_quarantine = false;
        for (_, moment, decision) in decisions(&world) {
            let is_asked = matches!(moment.input, Input::Rejoin { heeds_safeguards: false, .. } | Input::BeginAnew { .. });
            if is_asked && rejoin(&decision.state).is_some() && is_in_quarantine {
                (is_in_quarantine, fenced_at) = (false, Vec::new());
            }
            let is_new = rejoin(&decision.state) != rejoin(&moment.before) && rejoin(&decision.state).is_some();
            prop_assert!(!is_new || !is_in_quarantine, "taken back by itself after {fenced_at:?}");
            if has_event(decision, EventKind::HostFenced) {
                fenced_at.push(moment.now);
                let since = moment.now - TimeDelta::seconds(i64::from(POLICY.within_s));
                let lately = fenced_at.iter().filter(|at| **at > since).count();
                is_in_quarantine |= lately >= POLICY.fences as usize;
            }
        }
    }
}
