//! A host that was proven to have stopped, and runs again.

use ringfence_core::*;

use super::{comes_back, lost, old_boot};
use ringfence_world::Manner;
use ringfence_world::World;
use ringfence_world::plans::*;

/// A host that is FENCED by power, was seen UP since, and is silent again.
fn up_and_gone_again() -> World {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work(0);
    assert!(world.gates().evacuate.allowed);
    world.take_log();
    world.pass(60_000);
    world.site.restore_power();
    world.pass(5_000);
    comes_back(&mut world);
    world.pass(60_000);
    world.see(FailureState::Unreachable).unwrap();
    world
}

#[test]
fn a_proof_that_the_host_had_stopped_opens_no_gate_after_a_sign_of_life() {
    let mut world = up_and_gone_again();
    world.expect(&[
        "65.0 note fence.proof_ended: monitor saw the host UP at 2030-01-01T12:01:05Z",
        "65.0 host.failure_state UP",
        "125.0 host.failure_state UNREACHABLE",
    ]);
    assert!(world.is_fenced(), "nothing was given back");
    let gate = world.gates().evacuate;
    assert!(!gate.allowed);
    assert!(gate.reason.contains("fence the host again"), "{}", gate.reason);
}

#[test]
fn a_host_that_ran_again_is_fenced_again_with_a_new_proof() {
    let mut world = up_and_gone_again();
    world.take_log();
    assert!(matches!(world.fence(), Ok(Reply::Started(_))));
    assert!(!world.gates().evacuate.allowed);
    world.work(1);
    world.expect(&[
        "125.0 operation.started fence 2",
        "125.0 send 1 power.off bmc",
        "125.0 operation.proof power.off",
        "125.0 host.fenced 2",
        "125.0 operation.succeeded: FENCED, proven by power.off",
    ]);
    assert!(world.gates().evacuate.allowed);
    assert_eq!(world.fence(), Ok(Reply::AlreadySo));
}

#[test]
fn a_person_can_confirm_the_new_fence_too() {
    let mut world = up_and_gone_again();
    world.site.plug(false);
    assert_eq!(world.confirm(1, person("anna"), false), Ok(Reply::Done));
    assert!(world.gates().evacuate.allowed);
    assert_eq!(world.confirm(2, person("anna"), false), Ok(Reply::AlreadySo));
}

#[test]
fn a_boot_that_outlived_its_power_off_needs_a_person() {
    let mut world = lost(power_plan());
    world.site.manners.insert("bmc".to_owned(), Manner::Ghost);
    world.fence().unwrap();
    world.work(0);
    world.pass(6_000);
    world.take_log();
    comes_back(&mut world);
    assert_eq!(
        world.take_log(),
        [
            "6.0 note fence.proof_ended: monitor saw the host UP at 2030-01-01T12:00:06Z",
            "6.0 host.failure_state UP",
        ],
    );
    assert_eq!(old_boot(&world), Some(OldBoot::OutlivedItsStop));
    world.rejoin(false).unwrap();
    world.work_off();
    world.pass(600_000);
    world.expect_last("606.0 operation.needs_operator: the host runs a boot from before it was proven to have stopped: what proved that may \
         not tell the truth");
}

#[test]
fn a_report_from_before_the_fence_ends_no_proof() {
    let mut world = lost(power_plan());
    world.say("slow monitor", FailureState::Unknown, 0, None).unwrap();
    world.fence().unwrap();
    world.pass(5_000);
    world.work(0);
    world.say("slow monitor", FailureState::Up, 2_000, None).unwrap();
    assert!(!world.gates().evacuate.allowed, "the host is seen UP");
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    assert!(
        !world.gates().evacuate.allowed,
        "the monitor had missed that sign of life"
    );
    world
        .say("slow monitor", FailureState::Unreachable, 0, None)
        .unwrap();
    assert!(world.gates().evacuate.allowed);
    assert_eq!(world.violation, None);
}

#[test]
fn a_source_with_a_slow_clock_may_have_seen_the_host_later_than_it_reports() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.pass(5_000);
    world.work(0);
    world.say("late clock", FailureState::Up, 2_000, None).unwrap();
    world
        .say("late clock", FailureState::Unreachable, 2_000, None)
        .unwrap();
    assert_eq!(world.state.host.failure_state, FailureState::Unreachable);
    let gate = world.gates().evacuate;
    assert!(
        gate.reason.contains("late clock saw the host UP"),
        "{}",
        gate.reason
    );
}

#[test]
fn a_sign_of_life_within_clock_error_of_a_reading_ends_its_proof() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.pass(5_000);
    world.work(0);
    world.say("monitor", FailureState::Up, 1_100, None).unwrap();
    assert!(
        world.state.host.good_fence().is_some(),
        "the sign of life came before the reading"
    );
    world.say("monitor", FailureState::Up, 900, None).unwrap();
    assert!(world.state.host.good_fence().is_none());
}

#[test]
fn a_silent_sources_last_sign_counts_for_two_minutes_against_a_source_that_missed_it() {
    let mut world = lost(power_plan());
    world.say("slow monitor", FailureState::Unknown, 0, None).unwrap();
    world.fence().unwrap();
    world.pass(5_000);
    world.work(0);
    world.say("slow monitor", FailureState::Up, 2_000, None).unwrap();
    world.stays_silent(110);
    assert!(!world.gates().evacuate.allowed);
    world.stays_silent(10);
    assert!(world.gates().evacuate.allowed);
}

#[test]
fn a_late_report_of_a_sign_of_life_ends_an_older_proof() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work(0);
    world.pass(60_000);
    world.see(FailureState::Unreachable).unwrap();
    assert!(world.gates().evacuate.allowed);
    world.say("monitor", FailureState::Up, 30_000, None).unwrap();
    assert_eq!(world.state.host.failure_state, FailureState::Unreachable);
    let gate = world.gates().evacuate;
    assert!(!gate.allowed);
    assert!(gate.reason.contains("monitor saw the host UP"), "{}", gate.reason);
}

#[test]
fn storage_and_network_stay_cut_off_after_a_sign_of_life() {
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    world.work_off();
    world.pass(60_000);
    comes_back(&mut world);
    assert!(!world.gates().evacuate.allowed);
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    assert!(world.gates().evacuate.allowed);
    assert_eq!(world.fence(), Ok(Reply::AlreadySo));
}

#[test]
fn a_fence_whose_proofs_have_ended_is_superseded_by_a_new_fence() {
    let mut world = lost(plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::StorageFence, &[&["ceph"]]),
    ]]));
    world.fence().unwrap();
    world.work(0);
    world.site.restore_power();
    world.pass(5_000);
    comes_back(&mut world);
    assert_eq!(world.fence().unwrap_err().code(), "host.up");
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    world.take_log();
    world.fence().unwrap();
    world.expect(&[
        "6.0 operation.succeeded: FENCED, proven by power.off",
        "6.0 operation.started fence 2",
        "6.0 send 1 power.off bmc",
        "6.0 send 2 storage.fence ceph",
    ]);
}

#[test]
fn a_missing_plan_refuses_only_a_new_fence() {
    let mut world = lost(power_plan());
    let unplanned = |world: &mut World| Input::Fence {
        operation_id: OperationId(world.next_id()),
        plan: None,
        reason: "no heartbeat".to_owned(),
        actor: person("anna"),
        heeds_safeguards: false,
    };
    let input = unplanned(&mut world);
    assert_eq!(world.give(input), Err(Refusal::PlanMissing));
    world.fence().unwrap();
    let input = unplanned(&mut world);
    assert!(matches!(world.give(input), Ok(Reply::Joined(_))));
    world.work(0);
    let input = unplanned(&mut world);
    assert_eq!(world.give(input), Ok(Reply::AlreadySo));
}
