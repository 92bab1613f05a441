//! A host that is heard, before its fence or during it.

use ringfence_core::*;
use ringfence_world::Manner;
use ringfence_world::plans::*;

use super::super::{comes_back, lost, lost_under};

#[test]
fn five_equal_requests_are_one_operation() {
    let mut world = lost(power_plan());
    let Reply::Started(id) = world.fence().unwrap() else {
        panic!("the first request begins the fence");
    };
    for _ in 0..4 {
        assert_eq!(world.fence(), Ok(Reply::Joined(id)));
    }
    world.work(0);
    assert_eq!(world.fence(), Ok(Reply::AlreadySo));
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn a_host_that_is_seen_up_is_not_fenced() {
    let mut world = lost(power_plan());
    world.see(FailureState::Up).unwrap();
    let refusal = world.fence().unwrap_err();
    assert_eq!(refusal.code(), "host.up");
    assert_eq!(world.state.operation, None);
}

#[test]
fn a_heartbeat_before_the_first_claim_stops_the_fence() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.see(FailureState::Up).unwrap();
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "0.0 host.failure_state UP",
        "0.0 operation.cancelled: the host was seen UP before anything was done to it",
    ]);
    assert!(
        world.deliver(0, "worker-1").is_err(),
        "no worker may claim an attempt of a cancelled fence"
    );
    assert!(world.gates().schedule.allowed);
}

#[test]
fn a_heartbeat_in_the_middle_of_an_off_does_not_stop_it() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    let job = world.deliver(0, "worker-1").unwrap();
    world.pass(1_000);
    comes_back(&mut world);
    assert!(!world.gates().evacuate.allowed);
    world.pass(1_000);
    world.command(job);
    world.complete(job);
    assert!(world.is_fenced());
    assert!(
        !world.gates().evacuate.allowed,
        "the host is not proven to have stopped"
    );
    assert!(!world.gates().schedule.allowed);
    world.pass(1_000);
    world.see(FailureState::Unreachable).unwrap();
    assert!(world.gates().evacuate.allowed);
    assert_eq!(world.violation, None);
}

#[test]
fn power_that_was_read_as_off_before_the_host_was_heard_is_read_again() {
    let mut world = lost(power_plan());
    world.site.manners.insert("bmc".to_owned(), Manner::Ghost);
    world.fence().unwrap();
    let job = world.deliver(0, "worker-1").unwrap();
    world.command(job);
    let result = world.finish(job).unwrap();
    world.pass(1_000);
    comes_back(&mut world);
    world.take_log();
    world.deliver_result(result);
    assert!(!world.is_fenced());
    world.pass(1_000);
    world.expect(&["2.0 send 2 power.off bmc"]);
    world.site.manners.clear();
    world.work(1);
    assert!(world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn a_device_whose_off_is_contradicted_every_time_is_given_up() {
    let mut both = plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::StorageFence, &[&["ceph"]]),
    ]]);
    both.sufficient_sets = vec![[ProofKind::PowerOff, ProofKind::StorageFence].into()];
    let mut world = lost(both);
    world.site.manners.insert("bmc".to_owned(), Manner::Ghost);
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    for index in [0, 2, 3, 4] {
        world.work(index);
        world.pass(1_500);
        comes_back(&mut world);
        world.pass(1_500);
    }
    world.work(1);
    assert!(!world.is_fenced());
    world.expect_last("12.0 operation.needs_operator: no sufficient set was completed; failed: power.off (the host was seen UP each time \
         after it had been read as off); storage.fence (every level failed; last ceph: refused)");
    assert_eq!(world.violation, None);
}

#[test]
fn a_proof_counts_once_accepted_writes_have_landed() {
    let policy = SegmentPolicy {
        settle_s: 5,
        ..ringfence_world::plans::policy()
    };
    let mut world = lost_under(power_plan(), policy);
    world.site.lands_ms = 5_000;
    world.fence().unwrap();
    world.pass(1_000);
    world.work(0);
    world.pass(10_000);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "1.0 operation.proof power.off",
        "6.0 host.fenced 1",
        "6.0 operation.succeeded: FENCED, proven by power.off",
    ]);
    assert!(world.gates().evacuate.allowed);
}

#[test]
fn a_sign_of_life_ends_a_proof_that_has_not_settled_yet() {
    let policy = SegmentPolicy {
        settle_s: 5,
        ..ringfence_world::plans::policy()
    };
    let mut world = lost_under(power_plan(), policy);
    world.site.manners.insert("bmc".to_owned(), Manner::Ghost);
    world.fence().unwrap();
    world.work(0);
    world.pass(4_000);
    comes_back(&mut world);
    world.take_log();
    world.pass(10_000);
    assert!(!world.is_fenced());
    assert!(!world.gates().evacuate.allowed);
    assert_eq!(world.violation, None);
}
