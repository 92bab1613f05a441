//! Devices that lie, workers that fall silent, and tries that are made again.

use ringfence_core::*;
use ringfence_world::Manner;
use ringfence_world::plans::*;

use super::super::{lost, lost_under};

#[test]
fn a_bmc_that_reports_success_and_stays_on_is_tried_again_and_proves_nothing() {
    let mut world = lost(power_plan());
    world.site.manners.insert("bmc".to_owned(), Manner::Lies);
    world.fence().unwrap();
    for attempt in 0..3 {
        world.work(attempt);
        world.pass(1_000);
    }
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "1.0 send 2 power.off bmc",
        "2.0 send 3 power.off bmc",
        "2.0 operation.needs_operator: no sufficient set was completed; failed: power.off (every level failed; last \
         bmc: unknown)",
    ]);
    assert!(!world.gates().evacuate.allowed);
}

#[test]
fn a_fence_without_workers_needs_an_operator() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.pass(300_000);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "15.0 send 2 power.off bmc",
        "30.0 send 3 power.off bmc",
        "45.0 send 4 power.off bmc",
        "60.0 operation.needs_operator: no sufficient set was completed; failed: power.off (every level failed; last \
         bmc: unknown, no worker claimed it in time)",
    ]);
    assert_eq!(world.wake_at, None);
}

#[test]
fn the_task_of_a_dead_worker_continues_with_another_worker() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    let dead = world.deliver(0, "worker-1").unwrap();
    world.pass(11_000);
    world.work(1);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "11.0 send 2 power.off bmc",
        "11.0 operation.proof power.off",
        "11.0 host.fenced 1",
        "11.0 operation.succeeded: FENCED, proven by power.off",
    ]);
    // It was only silent; what it says now is too late, and known to be so.
    assert_eq!(world.complete(dead), Reply::Ignored("its operation has ended"));
    world.expect(&["11.0 note result.ignored: its operation has ended"]);
}

#[test]
fn a_worker_that_renews_its_lease_keeps_its_attempt() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    let job = world.deliver(0, "worker-1").unwrap();
    for _ in 0..2 {
        world.pass(9_000);
        let claim = world.jobs[job].claim.clone();
        world.give(Input::Renew(claim)).unwrap();
    }
    world.command(job);
    world.complete(job);
    assert!(world.is_fenced());
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn waiting_for_a_busy_device_does_not_use_up_the_methods_time() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    for _ in 0..20 {
        world.pass(10_000);
        let dispatch = world.sent[0].clone();
        let claim = world.claim_for(&dispatch, "worker-1");
        world.give(Input::DeviceBusy(claim)).unwrap();
    }
    let dispatch = world.sent[0].clone();
    let claim = world.claim_for(&dispatch, "worker-1");
    let answer = world.give(Input::Claim(claim)).unwrap();
    assert_eq!(
        answer,
        Reply::Granted {
            budget_ms: 20_000,
            lease_ms: 10_000
        }
    );
    assert_eq!(world.sent.len(), 1);
}

#[test]
fn a_device_that_stays_busy_for_ten_minutes_is_given_up() {
    let mut world = lost(plan(vec![vec![task(
        FencingKind::PowerOff,
        &[&["shared"], &["pdu"]],
    )]]));
    world.fence().unwrap();
    let dispatch = world.sent[0].clone();
    for _ in 0..59 {
        world.pass(10_000);
        let claim = world.claim_for(&dispatch, "worker-1");
        world.give(Input::DeviceBusy(claim)).unwrap();
    }
    world.pass(10_000);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off shared",
        "600.0 send 2 power.off pdu",
    ]);
}

#[test]
fn an_engine_that_was_away_for_an_hour_has_used_up_no_methods_time() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.pass_unseen(3_600_000);
    world.tick();
    world.work(1);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "3600.0 send 2 power.off bmc",
        "3600.0 operation.proof power.off",
        "3600.0 host.fenced 1",
        "3600.0 operation.succeeded: FENCED, proven by power.off",
    ]);
}

#[test]
fn failed_fences_restart_automatically_as_often_as_the_segment_says() {
    let policy = SegmentPolicy {
        restarts: 1,
        restart_delay_s: 30,
        ..ringfence_world::plans::policy()
    };
    let mut world = lost_under(power_plan(), policy);
    world.site.manners.insert("bmc".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    world.work(0);
    world.pass(30_000);
    world.work(1);
    world.pass(3_600_000);
    let failed = "no sufficient set was completed; failed: power.off (every level failed; last bmc: refused)";
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        &format!("0.0 operation.needs_operator: {failed}"),
        "30.0 operation.restarted: started again by itself, as the segment says",
        "30.0 send 2 power.off bmc",
        &format!("30.0 operation.needs_operator: {failed}"),
    ]);
}
