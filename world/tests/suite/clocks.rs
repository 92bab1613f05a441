//! Clocks that are set.

use chrono::TimeDelta;
use ringfence_core::{FailureState, SegmentPolicy};
use ringfence_world::plans::{cut_off_plan, person, plan, policy, power_plan};

use crate::{is_open, lost, work};

const DAY_S: i64 = 86_400;

fn set_clock(world: &mut ringfence_world::World, seconds: i64) {
    world.move_clock(seconds);
    world.state.clock_set_at = Some(world.now);
}

#[test]
fn after_a_clock_was_set_back_no_operation_waits_for_the_former_time() {
    let mut world = lost(
        power_plan(),
        SegmentPolicy {
            restarts: 1,
            restart_delay_s: 30,
            ..policy()
        },
    );
    world.fence().unwrap();
    world.pass(5_000);
    set_clock(&mut world, -DAY_S);
    world.tick();
    assert!(world.wake_at.unwrap() <= world.now + TimeDelta::seconds(15));
    world.see(FailureState::Unreachable).unwrap();
    // A claim of the ten seconds after that may be one of the former time.
    world.pass(11_500);
    world.work_off();
    assert!(is_open(&world));
}

#[test]
fn power_that_was_read_for_a_claim_from_before_the_clock_was_set_is_read_again() {
    for seconds in [-40, 40] {
        let mut world = lost(power_plan(), policy());
        world.fence().unwrap();
        let job = world.deliver(0, "worker-1").unwrap();
        assert!(world.command(job));
        world.pass(2_500);
        let off = world.finish(job).unwrap();
        world.site.restore_power();
        world.pass(6_000);
        set_clock(&mut world, seconds);
        world.see(FailureState::Up).unwrap();
        world.told_boot = world.site.boot;
        world.told_alive_at = world.real;
        world.pass(4_000);
        world.deliver_result(off);
        assert!(!world.is_fenced() && !is_open(&world), "it runs since");
        let operation = world.state.operation.as_ref().unwrap();
        assert!(operation.status.is_live(), "{}", operation.detail);
        world.pass(12_000);
        world.work_off();
        assert!(world.is_fenced());
        assert_eq!(world.violation, None);
    }
}

#[test]
fn a_sign_of_life_from_before_the_clock_was_set_back_ends_a_proof_whatever_its_date() {
    let mut world = lost(power_plan(), policy());
    world.fence().unwrap();
    work(&mut world);
    assert!(is_open(&world));
    world.pass(1_000);
    world.site.restore_power();
    world.pass(8_000);
    set_clock(&mut world, -15);
    // The source heard it 4 s ago: its date is one of before the reading, by the clock of then.
    world.say("monitor", FailureState::Up, 4_000, None).unwrap();
    world.told_boot = world.site.boot;
    world.told_alive_at = world.real;
    world.pass(60_000);
    world.see(FailureState::Unreachable).unwrap();
    assert!(!is_open(&world), "it ran after it had been read as off");
}

#[test]
fn after_a_clock_was_set_back_a_sources_reports_count_at_once() {
    let mut world = lost(power_plan(), policy());
    set_clock(&mut world, -3_600);
    world.tick();
    world.see(FailureState::Up).unwrap();
    assert_eq!(world.state.host.failure_state, FailureState::Up);
}

#[test]
fn a_clock_set_forward_does_not_end_the_self_fencing_timeout() {
    let policy = SegmentPolicy {
        self_fencing_timeout_s: Some(60),
        ..policy()
    };
    let mut world = lost(plan(Vec::new()), policy);
    world.fence().unwrap();
    world.stays_silent(20);
    set_clock(&mut world, 600);
    world.see(FailureState::Unreachable).unwrap();
    assert!(!world.is_fenced());
    world.stays_silent(65);
    assert!(world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn a_small_step_of_the_clock_does_not_shorten_the_silence() {
    let policy = SegmentPolicy {
        self_fencing_timeout_s: Some(60),
        ..policy()
    };
    let mut world = lost(plan(Vec::new()), policy);
    world.fence().unwrap();
    world.stays_silent(20);
    set_clock(&mut world, 25);
    world.stays_silent(25);
    assert!(!world.is_fenced(), "only 45 s have passed");
    world.stays_silent(40);
    assert!(world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn a_sign_of_life_within_clock_error_counts_as_after_the_reading() {
    let mut world = lost(power_plan(), policy());
    world.fence().unwrap();
    work(&mut world);
    world.pass(5_000);
    world.say("monitor", FailureState::Up, 7_000, None).unwrap();
    assert!(is_open(&world), "the sign came two seconds before the reading");
    world.say("monitor", FailureState::Up, 5_500, None).unwrap();
    assert!(!is_open(&world), "the sign came half a second before the reading");
}

#[test]
fn a_clock_set_forward_does_not_settle_a_proof() {
    let mut world = lost(
        power_plan(),
        SegmentPolicy {
            settle_s: 5,
            ..policy()
        },
    );
    world.site.lands_ms = 4_000;
    world.site.plug(false);
    world.confirm(0, person("anna"), false).unwrap();
    set_clock(&mut world, DAY_S);
    world.tick();
    assert!(!world.is_fenced());
    world.pass(5_000);
    assert!(world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn a_source_whose_clock_is_behind_has_heard_the_host_later_than_it_reports() {
    let mut world = lost(power_plan(), policy());
    // The source's clock is ten seconds behind.
    for _ in 0..3 {
        let said = world.say("probe", FailureState::Unreachable, 10_000, None);
        said.unwrap();
        world.pass(1_000);
    }
    world.fence().unwrap();
    work(&mut world);
    world.site.restore_power();
    world.pass(6_000);
    world.say("probe", FailureState::Up, 10_000, None).unwrap();
    assert!(!is_open(&world));
}

/// The worker that has claimed the first off falls silent.
fn an_off_under_way() -> ringfence_world::World {
    let mut world = lost(power_plan(), policy());
    world.fence().unwrap();
    world.deliver(0, "worker-1").unwrap();
    world
}

#[test]
fn an_attempt_under_way_when_the_clock_was_set_is_waited_for_its_own_time() {
    for seconds in [-DAY_S, -60, 60, DAY_S] {
        let mut world = an_off_under_way();
        set_clock(&mut world, seconds);
        world.tick();
        // The attempt's deadline, the time to stop the worker, and the time of its device: 32 s.
        world.pass(31_000);
        world.tick();
        assert!(!world.state.host.in_flight.is_empty(), "{seconds} s");
        world.pass(3_000);
        world.tick();
        assert!(world.state.host.in_flight.is_empty(), "{seconds} s");
        assert_eq!(world.violation, None);
    }
}

#[test]
fn after_a_clock_was_set_back_a_host_switched_off_before_is_taken_back_at_once() {
    let mut world = lost(power_plan(), policy());
    world.fence().unwrap();
    work(&mut world);
    assert!(is_open(&world));
    set_clock(&mut world, -7_200);
    world.tick();
    world.rejoin(false).unwrap();
    world.pass(1_000);
    work(&mut world);
    world.pass(10_000);
    world.see(FailureState::Up).unwrap();
    world.pass(1_000);
    world.tick();
    assert!(!world.is_fenced(), "{}", world.log.join("\n"));
    assert_eq!(world.violation, None);
}

#[test]
fn a_sign_of_life_from_before_the_clock_was_set_forward_does_not_take_back_a_host() {
    let mut world = lost(power_plan(), policy());
    world.fence().unwrap();
    world.pass(3_000);
    work(&mut world);
    set_clock(&mut world, 60);
    // The host was heard a second before the off; its source's clock is already set.
    world.pass(1_000);
    world.say("monitor", FailureState::Up, 2_000, None).unwrap();
    world.rejoin(false).unwrap();
    // No worker switches the host on.
    world.pass(80_000);
    assert!(world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn a_boot_seen_before_the_clock_was_set_forward_does_not_count_as_replaced_after_the_cut() {
    let mut world = lost(cut_off_plan(), policy());
    let seen = |id: &str| {
        Some(ringfence_core::Boot {
            id: Some(id.to_owned()),
            booted_at: None,
        })
    };
    world.site.crash(true);
    world.pass(8_000);
    // The boot that is cut off runs.
    world.fence().unwrap();
    world.work_off();
    set_clock(&mut world, 60);
    world.pass(1_000);
    // The boot before it was heard ten seconds ago; its source's clock is already set.
    world.say("monitor", FailureState::Up, 10_000, seen("a")).unwrap();
    world.pass(20_000);
    world.site.link("monitor", true);
    world.told_boot = world.site.boot;
    world.told_alive_at = world.real;
    world.say("monitor", FailureState::Up, 0, seen("b")).unwrap();
    world.rejoin(false).unwrap();
    world.work_off();
    assert!(world.is_fenced());
    assert_eq!(world.violation, None);
}
