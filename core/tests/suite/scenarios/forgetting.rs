//! A database that is a cache of records, and vanishes: another engine begins with the record of the host alone.

use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans::*;

use super::on_nova::{automatic, evacuating, fenced as fenced_on_nova, manual, on_nova};
use super::{comes_back, lost, lost_under, old_boot, reboots};

fn fenced() -> World {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work_off();
    assert!(world.gates().evacuate.allowed);
    world.take_log();
    world
}

#[test]
fn fenced_and_its_proofs_are_not_forgotten_and_no_gate_is_open_before_the_host_is_seen_silent() {
    let mut world = fenced();
    let fence = world.state.host.fence.clone();
    world.forget();
    assert_eq!(world.state.host.fence, fence);
    assert_eq!(world.state.host.generation, Generation(1));
    assert_eq!(world.state.host.failure_state, FailureState::Unknown);
    let gates = world.gates();
    assert!(!gates.evacuate.allowed && !gates.schedule.allowed);
    world.see(FailureState::Unreachable).unwrap();
    assert!(world.gates().evacuate.allowed);
}

/// The search found it: power was read as off a moment before the host was heard by a source whose clock is behind, and was taken for off
/// since then.
#[test]
fn how_late_a_source_reports_is_not_known_to_an_engine_that_has_forgotten() {
    let mut world = fenced();
    world.forget();
    world.pass(1_000);
    let observed_at = world.now - chrono::TimeDelta::seconds(2);
    let alive = Report {
        state: FailureState::Up,
        source: "monitor".to_owned(),
        observed_at,
        last_seen_at: None,
        silent_since: None,
        boot: None,
    };
    world.report(alive).unwrap();
    assert_eq!(world.state.host.sources.alive_by(), Some(world.now));
}

#[test]
fn a_fence_that_was_under_way_begins_anew_by_the_plan_that_was_frozen_for_it() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.plan = plan(Vec::new());
    world.forget();
    world.expect_last("0.0 send 1 power.off bmc");
    assert_eq!(world.state.host.generation, Generation(2));
    world.work(0);
    assert!(world.is_fenced());
}

#[test]
fn what_a_forgotten_engine_has_allowed_is_waited_for() {
    let mut world = fenced();
    world.pass(10_000);
    world.rejoin(false).unwrap();
    let on = world.sent.len() - 1;
    let on = world.deliver(on, "worker-1").unwrap();
    world.forget();
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    let is_off = |sent: &Dispatch| sent.job.kind() == FencingKind::PowerOff;
    assert!(!world.sent.iter().any(is_off), "an on may be under way");
    world.pass(5_000);
    world.command(on);
    assert!(world.site.is_powered());
    world.pass(60_000);
    assert!(world.sent.iter().any(is_off));
    assert_eq!(world.violation, None);
}

#[test]
fn a_boot_that_was_cut_off_is_known_as_the_old_one_by_an_engine_that_has_forgotten() {
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    world.work_off();
    world.pass(10_000);
    comes_back(&mut world);
    world.forget();
    comes_back(&mut world);
    assert_eq!(old_boot(&world), Some(OldBoot::CutOff));
    world.pass(20_000);
    reboots(&mut world);
    assert_eq!(old_boot(&world), None);
}

#[test]
fn a_source_that_has_heard_the_host_and_reports_no_more_keeps_silence_from_proving_anything() {
    let policy = SegmentPolicy {
        self_fencing_timeout_s: Some(20),
        ..policy()
    };
    let mut world = lost_under(plan(Vec::new()), policy);
    world.say("probe", FailureState::Up, 0, None).unwrap();
    world.forget();
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    world.stays_silent(60);
    assert!(!world.is_fenced(), "the probe may hear the host");
    assert_eq!(world.violation, None);
}

#[test]
fn a_rejoin_waits_for_the_moves_that_a_forgotten_engine_has_allowed() {
    let mut world = fenced();
    world.state.host.backend = Backend::Kubernetes;
    world.state.host.cloud = Some("east".to_owned());
    let moving = InFlight {
        attempt: AttemptId {
            operation_id: world.live_id(),
            number: 3,
        },
        generation: Generation(1),
        kind: StepKind::Move.into(),
        method: None,
        claim_id: None,
        until: world.now + chrono::TimeDelta::seconds(20),
        only_looks: false,
        lasts_ms: Some(20_000),
    };
    world.state.host.in_flight.push(moving);
    world.forget();
    let clean_up = TaskKind::Step(StepKind::CleanUp);
    let host = &world.state.host;
    assert!(
        host.opposite_in_flight(clean_up, world.now + chrono::TimeDelta::seconds(19))
            .is_some()
    );
    assert!(
        host.opposite_in_flight(clean_up, world.now + chrono::TimeDelta::seconds(81))
            .is_none()
    );
}

fn live_kind(world: &World) -> Option<OperationKind> {
    let mut live = world
        .state
        .operation
        .iter()
        .filter(|operation| operation.status.is_live());
    live.next().map(Operation::kind)
}

#[test]
fn an_evacuation_goes_on_under_the_next_engine_once_the_host_is_seen_silent() {
    let mut world = evacuating(2, manual());
    world.work(4);
    world.take_log();
    world.forget();
    world.work_off();
    assert_eq!(live_kind(&world), Some(OperationKind::Evacuation));
    assert_eq!(
        world.cloud.on("compute2"),
        ["web-1"],
        "nothing has seen the host yet"
    );
    world.see(FailureState::Unreachable).unwrap();
    world.work_off();
    assert_eq!(world.cloud.on("compute2"), ["web-1", "web-2"]);
    world.expect_last("0.0 operation.succeeded: 1 of 1 workloads moved");
}

#[test]
fn an_evacuation_that_was_forgotten_ends_where_the_host_is_seen_up() {
    let mut world = fenced_on_nova(1, manual());
    world.evacuate().unwrap();
    world.forget();
    world.site.restore_power();
    world.pass(10_000);
    comes_back(&mut world);
    world.work_off();
    assert!(world.cloud.started.is_empty());
    assert_ne!(live_kind(&world), Some(OperationKind::Evacuation));
    assert_eq!(world.violation, None);
}

#[test]
fn an_evacuation_whose_host_is_never_seen_asks_a_person_in_the_end() {
    let mut world = fenced_on_nova(1, manual());
    world.evacuate().unwrap();
    world.forget();
    world.work_off();
    for _ in 0..61 {
        world.pass(60_000);
    }
    let operation = world.state.operation.as_ref().unwrap();
    assert_eq!(
        operation.status,
        OperationStatus::NeedsOperator,
        "{}",
        operation.detail
    );
    assert!(world.cloud.started.is_empty());
}

#[test]
fn a_proven_fence_goes_on_with_the_power_that_it_had_left_to_switch_on() {
    let mut world = lost(reboot_plan());
    world.fence().unwrap();
    world.work(0);
    assert!(world.is_fenced());
    let fence = world.state.host.fence.clone();
    world.take_log();
    world.forget();
    world.tick();
    world.work_off();
    assert!(world.site.is_powered());
    let host = &world.state.host;
    assert_eq!(host.generation, Generation(1), "it was not fenced anew");
    assert_eq!(
        host.fence.as_ref().map(|fence| fence.at),
        fence.map(|fence| fence.at)
    );
    world.expect_last("0.0 operation.succeeded: FENCED, proven by power.off");
}

#[test]
fn power_that_was_on_its_way_back_is_not_switched_off_anew() {
    let mut world = lost(reboot_plan());
    world.fence().unwrap();
    world.work(0);
    let on = world.sent.len() - 1;
    let on = world.deliver(on, "worker-1").unwrap();
    world.command(on);
    world.forget();
    world.pass(120_000);
    world.work_off();
    assert!(world.site.is_powered());
    let is_off = |sent: &Dispatch| sent.job.kind() == FencingKind::PowerOff;
    assert!(!world.sent.iter().any(is_off));
    assert_eq!(live_kind(&world), None);
}

#[test]
fn an_evacuation_that_was_forgotten_switches_the_power_on_at_its_end() {
    let mut world = on_nova(reboot_plan(), 1, automatic());
    world.fence().unwrap();
    world.work(0);
    world.pass(3_000);
    assert_eq!(live_kind(&world), Some(OperationKind::Evacuation));
    world.forget();
    world.work_off();
    assert!(!world.site.is_powered(), "the workload is still to be moved");
    world.see(FailureState::Unreachable).unwrap();
    world.work_off();
    assert_eq!(world.cloud.on("compute2"), ["web-1"]);
    assert!(world.site.is_powered());
    assert_eq!(world.violation, None);
}

#[test]
fn a_cluster_is_told_again_at_once_what_a_forgotten_engine_had_told_it() {
    let mut world = on_nova(power_plan(), 1, manual());
    world.state.host.backend = Backend::Kubernetes;
    world.fence().unwrap();
    world.work_off();
    world.evacuate().unwrap();
    let moving = |world: &World| {
        let mut sent = world.sent.iter();
        sent.position(|sent| sent.job.kind() == StepKind::Move)
    };
    while moving(&world).is_none() {
        let next = world.sent.len() - 1;
        world.work(next);
    }
    let at = moving(&world).unwrap();
    world.deliver(at, "worker-1").unwrap();
    world.forget();
    world.see(FailureState::Unreachable).unwrap();
    world.work_off();
    assert_eq!(world.cloud.on("compute2"), ["web-1"]);
    assert_eq!(live_kind(&world), None);
}
