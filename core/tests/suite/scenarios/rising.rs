//! A host that was proven to have stopped, and that runs again.

use ringfence_core::*;

use super::{expect, lost};
use ringfence_world::World;
use ringfence_world::plans::*;

/// FENCED by power, seen UP since, and silent again.
fn up_and_gone_again() -> World {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work(0);
    assert!(world.gates().evacuate.allowed);
    world.take_log();
    world.pass(60_000);
    world.site.restore_power();
    world.see(FailureState::Up).unwrap();
    world.pass(60_000);
    world.see(FailureState::Unreachable).unwrap();
    world
}

#[test]
fn what_proved_that_it_had_stopped_opens_nothing_any_more() {
    let mut world = up_and_gone_again();
    expect(
        &mut world,
        &[
            "60.0 host.failure_state UP",
            "60.0 note fence.proof_spent: the host was seen UP, so that it runs again",
            "120.0 host.failure_state UNREACHABLE",
        ],
    );
    assert!(world.is_fenced(), "nothing was given back");
    let gate = world.gates().evacuate;
    assert!(!gate.allowed);
    assert!(gate.reason.contains("fence it again"), "{}", gate.reason);
}

#[test]
fn it_is_fenced_again_with_a_proof_of_its_own() {
    let mut world = up_and_gone_again();
    world.take_log();
    assert!(matches!(world.fence(), Ok(Answer::Started(_))));
    assert!(!world.gates().evacuate.allowed);
    world.work(1);
    expect(
        &mut world,
        &[
            "120.0 operation.started fence 2",
            "120.0 send 1 power.off bmc",
            "120.0 operation.proof power.off",
            "120.0 host.fenced 2",
            "120.0 operation.succeeded: FENCED, proven by power.off",
        ],
    );
    assert!(world.gates().evacuate.allowed);
    assert_eq!(world.fence(), Ok(Answer::AlreadySo));
}

#[test]
fn a_person_can_prove_it_again_too() {
    let mut world = up_and_gone_again();
    assert_eq!(world.confirm(1, person("anna"), false), Ok(Answer::Done));
    assert!(world.gates().evacuate.allowed);
    assert_eq!(world.confirm(2, person("anna"), false), Ok(Answer::AlreadySo));
}

#[test]
fn the_same_boot_as_before_says_that_the_device_may_lie() {
    let mut world = lost(power_plan());
    world.see_boot(FailureState::Unreachable, Some("a")).unwrap();
    world.fence().unwrap();
    world.work(0);
    world.pass(1_000);
    world.take_log();
    world.see_boot(FailureState::Up, Some("a")).unwrap();
    expect(
        &mut world,
        &[
            "1.0 host.failure_state UP",
            "1.0 note fence.proof_spent: the host was seen UP, in the boot from before the fence: what proved it may not tell \
             the truth",
        ],
    );
}

#[test]
fn a_report_from_before_the_fence_spends_nothing() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.pass(5_000);
    world.work(0);
    let old = Input::FailureState {
        operation_id: OperationId(world.next_id()),
        state: FailureState::Up,
        source: "slow monitor".to_owned(),
        observed_at: world.now - chrono::TimeDelta::seconds(2),
        boot: None,
    };
    world.give(old).unwrap();
    assert!(!world.gates().evacuate.allowed, "it is seen UP");
    world.see(FailureState::Unreachable).unwrap();
    assert!(world.gates().evacuate.allowed);
}

#[test]
fn storage_and_network_stay_cut_off_whether_it_runs_or_not() {
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    world.work_off();
    world.pass(60_000);
    world.see(FailureState::Up).unwrap();
    assert!(!world.gates().evacuate.allowed);
    world.see(FailureState::Unreachable).unwrap();
    assert!(world.gates().evacuate.allowed);
    assert_eq!(world.fence(), Ok(Answer::AlreadySo));
}

#[test]
fn a_fence_that_only_adds_to_spent_proofs_makes_way() {
    let mut world = lost(plan(vec![vec![
        task(TaskKind::PowerOff, &[&["bmc"]]),
        task(TaskKind::StorageFence, &[&["ceph"]]),
    ]]));
    world.fence().unwrap();
    world.work(0);
    world.pass(1_000);
    world.site.restore_power();
    world.see(FailureState::Up).unwrap();
    assert_eq!(world.fence().unwrap_err().code(), "host.up");
    world.see(FailureState::Unreachable).unwrap();
    world.take_log();
    world.fence().unwrap();
    expect(
        &mut world,
        &[
            "1.0 operation.succeeded: FENCED, proven by power.off",
            "1.0 operation.started fence 2",
            "1.0 send 1 power.off bmc",
            "1.0 send 2 storage.fence ceph",
        ],
    );
}

#[test]
fn without_a_plan_only_a_new_fence_is_refused() {
    let mut world = lost(power_plan());
    let unplanned = |world: &mut World| Input::Fence {
        operation_id: OperationId(world.next_id()),
        plan: None,
        reason: "no heartbeat".to_owned(),
        actor: person("anna"),
    };
    let input = unplanned(&mut world);
    assert_eq!(world.give(input), Err(Refusal::PlanMissing));
    world.fence().unwrap();
    let input = unplanned(&mut world);
    assert!(matches!(world.give(input), Ok(Answer::Joined(_))));
    world.work(0);
    let input = unplanned(&mut world);
    assert_eq!(world.give(input), Ok(Answer::AlreadySo));
}
