//! What is given back, one after the other, until the host is UNFENCED.

use ringfence_core::*;
use ringfence_world::Manner;
use ringfence_world::plans::*;

use super::super::{comes_back, lost_under, reboots};
use super::{cut_off, off};

#[test]
fn a_rejoin_after_a_fence_by_power_switches_on_and_waits_for_the_host() {
    let mut world = off();
    world.pass(60_000);
    world.rejoin(false).unwrap();
    assert!(
        !world.gates().evacuate.allowed,
        "the host may come back from now on"
    );
    world.work(1);
    world.pass(90_000);
    comes_back(&mut world);
    world.expect(&[
        "60.0 operation.started rejoin 2",
        "60.0 send 1 power.on bmc",
        "60.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 2",
        "150.0 host.failure_state UP",
        "150.0 host.unfenced 2",
        "150.0 operation.succeeded: the host was taken back",
    ]);
    assert!(world.gates().schedule.allowed);
}

#[test]
fn the_network_waits_for_storage_and_unfenced_waits_for_both() {
    let mut world = cut_off();
    world.pass(15_000);
    reboots(&mut world);
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    world.rejoin(false).unwrap();
    world.work_off();
    world.expect(&[
        "20.0 host.failure_state UP",
        "20.0 operation.started rejoin 2",
        "20.0 send 1 storage.unfence ceph",
        "20.0 note fence.proof_ended: a worker was allowed to carry out a storage.unfence of generation 2",
        "20.0 operation.needs_operator: storage.unfence failed: every level failed; last ceph: refused",
    ]);
    assert!(world.is_fenced());
    world.site.manners.clear();
    world.retry().unwrap();
    world.work_off();
    assert!(!world.is_fenced());
}

#[test]
fn a_host_that_falls_silent_again_is_not_taken_back() {
    let mut world = cut_off();
    world.pass(15_000);
    reboots(&mut world);
    world.rejoin(false).unwrap();
    world.take_log();
    world.work(2);
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    world.work_off();
    assert!(world.is_fenced());
    world.pass(600_000);
    world.expect(&[
        "20.0 note fence.proof_ended: a worker was allowed to carry out a storage.unfence of generation 2",
        "20.0 send 2 network.unfence switch",
        "21.0 host.failure_state UNREACHABLE",
        "21.0 note fence.proof_ended: a worker was allowed to carry out a network.unfence of generation 2",
        "621.0 operation.needs_operator: the host is UNREACHABLE, not UP",
    ]);
    assert!(!world.gates().evacuate.allowed, "it has its storage again");
    assert!(matches!(world.fence(), Ok(Reply::Started(_))));
}

#[test]
fn a_host_is_taken_back_automatically_if_the_segment_says_so() {
    let policy = SegmentPolicy {
        auto_rejoin: true,
        ..ringfence_world::plans::policy()
    };
    let mut world = lost_under(reboot_plan(), policy);
    world.fence().unwrap();
    world.work(0);
    let on = world.deliver(1, "worker-1").unwrap();
    world.command(on);
    world.pass(6_000);
    // The host is UP before the worker has reported; no second report comes.
    comes_back(&mut world);
    world.take_log();
    world.complete(on);
    world.expect(&[
        "6.0 operation.succeeded: FENCED, proven by power.off",
        "6.0 operation.started rejoin 2",
        "6.0 host.unfenced 2",
        "6.0 operation.succeeded: the host was taken back",
    ]);
}

#[test]
fn a_cancelled_rejoin_does_not_begin_again_automatically() {
    let policy = SegmentPolicy {
        auto_rejoin: true,
        ..ringfence_world::plans::policy()
    };
    let mut world = lost_under(cut_off_plan(), policy);
    world.fence().unwrap();
    world.work_off();
    world.pass(1_000);
    comes_back(&mut world);
    world.cancel().unwrap();
    world.take_log();
    world.pass(1_000);
    comes_back(&mut world);
    world.expect(&[]);
}
