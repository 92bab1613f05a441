//! Which proofs are enough, and what goes on after them.

use ringfence_core::*;
use ringfence_world::plans::*;

use super::super::{lost, old_boot};

#[test]
fn power_alone_suffices() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.pass(1_000);
    world.work(0);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "1.0 operation.proof power.off",
        "1.0 host.fenced 1",
        "1.0 operation.succeeded: FENCED, proven by power.off",
    ]);
    assert!(world.gates().evacuate.allowed);
    assert!(!world.gates().schedule.allowed);
    assert_eq!(world.wake_at, None);
}

#[test]
fn storage_and_network_suffice_without_power() {
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    world.work(1);
    assert!(!world.is_fenced(), "the network alone is not enough");
    world.work(0);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 storage.fence ceph",
        "0.0 send 2 network.fence switch",
        "0.0 operation.proof network.fence",
        "0.0 operation.proof storage.fence",
        "0.0 host.fenced 1",
        "0.0 operation.succeeded: FENCED, proven by storage.fence, network.fence",
    ]);
    assert_eq!(old_boot(&world), Some(OldBoot::CutOff));
    assert!(world.site.running, "the host runs without storage and network");
}

#[test]
fn other_tasks_continue_after_the_first_success() {
    let mut world = lost(plan(vec![vec![
        task(FencingKind::StorageFence, &[&["ceph"]]),
        task(FencingKind::NetworkFence, &[&["switch"]]),
        task(FencingKind::PowerOff, &[&["bmc"]]),
    ]]));
    world.fence().unwrap();
    world.work(0);
    world.work(1);
    assert!(world.is_fenced());
    assert_eq!(old_boot(&world), Some(OldBoot::CutOff));
    world.take_log();
    world.pass(2_000);
    world.work(2);
    world.expect(&[
        "2.0 operation.proof power.off",
        "2.0 operation.succeeded: FENCED, proven by power.off, storage.fence, network.fence",
    ]);
    assert_eq!(
        old_boot(&world),
        None,
        "a host that was seen off has forgotten everything"
    );
}

#[test]
fn both_power_supplies_are_off_before_either_is_on() {
    let mut world = lost(plan(vec![
        vec![task(FencingKind::PowerOff, &[&["left", "right"]])],
        vec![task(FencingKind::PowerOn, &[])],
    ]));
    world.fence().unwrap();
    world.work(0);
    assert!(!world.is_fenced(), "one of two feeds keeps the host alive");
    world.work(1);
    world.work_off();
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off left",
        "0.0 send 2 power.off right",
        "0.0 operation.proof power.off",
        "0.0 host.fenced 1",
        "0.0 send 3 power.on left",
        "0.0 send 4 power.on right",
        "0.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 1",
        "0.0 operation.succeeded: FENCED, proven by power.off",
    ]);
    assert!(
        world.state.host.applied.fencing.is_empty(),
        "the power is on again"
    );
}

#[test]
fn a_level_without_devices_proves_nothing() {
    let mut empty = power_plan();
    empty.stages[0].tasks[0].levels = vec![Vec::new()];
    let mut world = lost(empty);
    world.fence().unwrap();
    assert!(!world.is_fenced());
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 operation.needs_operator: no sufficient set was completed; failed: power.off (every level failed)",
    ]);
}
