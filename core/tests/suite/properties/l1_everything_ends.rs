//! L1: every operation reaches `succeeded`, `needs_operator` or `cancelled`, and says why.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use proptest::prelude::*;
use ringfence_core::*;

use super::actions::{Truthfulness, history, live_through};
use super::facts::decisions;
use super::settings::{methods, setting};
use ringfence_world::World;

/// More ticks than any operation with these settings needs.
const MAX_TICKS: usize = 2_000;

proptest! {
    #[test]
    fn l1_everything_ends(setting in setting(), actions in history(Truthfulness::Any)) {
        let mut world = live_through(setting.world(), &actions);
        // A message in a queue that moves waits as long as the queue moves.
        world.line_moves(false);
        // The fences of other hosts end.
        world.others.under_way = 0;
        // No person leaves anything suspended for ever.
        SuspensionScope::ALL.iter().for_each(|scope| world.resume(*scope));
        // Conditions that spare the host end.
        let sources: BTreeSet<String> = world.state.host.conditions.iter().map(|(source, ..)| source.to_owned()).collect();
        for source in sources {
            let _ = world.give(Input::Conditions { source, conditions: Vec::new(), over: None });
        }
        world.tick();
        let began_at = world.now;
        let mut ticks = 0;
        while is_running(&world.state) || is_held(&world.state) || has_restarts(&world.state) {
            let wake_at = world.wake_at;
            prop_assert!(wake_at.is_some(), "stranded: {:#?}", world.state.operation);
            prop_assert!(wake_at > Some(world.now), "the wake time does not advance");
            world.now = wake_at.unwrap();
            world.tick();
            ticks += 1;
            prop_assert!(ticks < MAX_TICKS, "the operation does not end: {:#?}", world.state.operation);
        }
        prop_assert!(world.now - began_at <= longest(&world), "took {}", world.now - began_at);
    }

    #[test]
    fn l1_a_running_operation_always_has_a_wake_time(setting in setting(), actions in history(Truthfulness::Any)) {
        let world = live_through(setting.world(), &actions);
        for (_, _, decision) in decisions(&world) {
            prop_assert!(decision.wake_at.is_some() || !(is_running(&decision.state) || is_held(&decision.state)));
            for operation in decision.superseded.iter().chain(decision.state.operation.iter()) {
                let is_over = !matches!(operation.status, OperationStatus::Running | OperationStatus::Held);
                prop_assert!(!is_over || !operation.detail.is_empty(), "the ended operation has no detail");
                prop_assert_eq!(operation.finished_at.is_some(), !operation.status.is_live());
                let open = operation.attempts().any(Attempt::is_open);
                prop_assert!(operation.status.is_live() || !open, "the ended operation has an open attempt");
            }
        }
    }
}

fn is_running(state: &HostState) -> bool {
    state
        .operation
        .as_ref()
        .is_some_and(|o| o.status == OperationStatus::Running)
}

/// Whether a fence is held of a host that is silent. Where that is not known, it waits until it is.
fn is_held(state: &HostState) -> bool {
    let live = state.operation.as_ref();
    live.is_some_and(|o| o.status == OperationStatus::Held && o.paused.is_none())
        && state.host.failure_state != FailureState::Unknown
}

fn has_restarts(state: &HostState) -> bool {
    state.operation.as_ref().is_some_and(|o| o.restart_at.is_some())
}

/// The sum of the longest durations of a fence, its evacuation and its rejoin.
fn longest(world: &World) -> TimeDelta {
    // The gate may be closed for an hour; then every server is moved with every spare host, and five other tasks follow.
    let servers = u32::try_from(world.cloud.servers.len()).unwrap();
    let spares = u32::try_from(world.state.policy.evacuation.spare_hosts.len()).unwrap();
    let evacuation = 2 * 3_600 + (servers * (spares + 1) + 5) * 2 * 1_500;
    let policy = &world.state.policy;
    let of_method = |m: &FrozenMethod| 2 * (m.times.timeout_s + 600) + (m.times.retries + 1) * 700;
    let stages: u32 = world.plan.stages.iter().map(|stage| stage.delay_s).sum();
    // The longest durations of a worker that fell silent, and of its device.
    let given_up = 302 + 3_600;
    let round = stages + methods(&world.plan).map(of_method).sum::<u32>() + given_up + policy.settle_s;
    let waits =
        2 * policy.self_fencing_timeout_s.unwrap_or(0) + policy.rejoin_wait_s + policy.restart_delay_s;
    TimeDelta::seconds(2 * i64::from((policy.restarts + 1) * (round + waits + evacuation)))
}
