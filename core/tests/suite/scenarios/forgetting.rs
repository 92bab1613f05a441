//! A database that is a cache of records, and vanishes: another engine begins with the record of the host alone.

use ringfence_core::*;
use ringfence_world::World;
use ringfence_world::plans::*;

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
