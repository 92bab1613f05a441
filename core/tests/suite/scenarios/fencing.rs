//! From the request for a fence to FENCED.

use ringfence_core::*;

use super::{comes_back, lost, lost_under, old_boot};
use ringfence_world::Manner;
use ringfence_world::plans::*;

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
fn a_failed_level_is_followed_by_the_next() {
    let mut world = lost(plan(vec![vec![task(
        FencingKind::PowerOff,
        &[&["bmc"], &["pdu"]],
    )]]));
    world.site.manners.insert("bmc".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    world.work_off();
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "0.0 send 2 power.off pdu",
        "0.0 operation.proof power.off",
        "0.0 host.fenced 1",
        "0.0 operation.succeeded: FENCED, proven by power.off",
    ]);
}

#[test]
fn a_late_success_of_a_former_level_proves_nothing() {
    let mut world = lost(plan(vec![vec![task(
        FencingKind::PowerOff,
        &[&["left", "right"], &["bmc"]],
    )]]));
    world.site.manners.insert("right".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    let left = world.deliver(0, "worker-1").unwrap();
    world.work(1);
    world.command(left);
    world.complete(left);
    assert!(!world.is_fenced());
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off left",
        "0.0 send 2 power.off right",
        "0.0 send 3 power.off bmc",
    ]);
    world.work(2);
    assert!(world.is_fenced());
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
fn a_reboot_fences_at_the_off_and_the_gate_closes_when_the_on_is_claimed() {
    let mut world = lost(reboot_plan());
    world.fence().unwrap();
    world.work(0);
    assert!(world.gates().evacuate.allowed);
    world.site.manners.insert("bmc".to_owned(), Manner::Refuses);
    world.pass(1_000);
    world.work(1);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "0.0 operation.proof power.off",
        "0.0 host.fenced 1",
        "0.0 send 2 power.on bmc",
        "1.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 1",
        "1.0 host.left_off: every level failed; last bmc: refused",
        "1.0 operation.succeeded: FENCED, proven by power.off; the host may stay off: power.on failed (every level failed; last bmc: refused)",
    ]);
    assert!(world.is_fenced(), "nothing was taken back");
    assert!(
        !world.gates().evacuate.allowed,
        "a worker may have switched the power on"
    );
}

#[test]
fn power_does_not_come_back_before_the_host_is_fenced() {
    let mut reboot = reboot_plan();
    reboot.stages[0]
        .tasks
        .push(task(FencingKind::StorageFence, &[&["ceph"]]));
    reboot.sufficient_sets = vec![[ProofKind::PowerOff, ProofKind::StorageFence].into()];
    let mut world = lost(reboot);
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    world.work_off();
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "0.0 send 2 storage.fence ceph",
        "0.0 operation.proof power.off",
        "0.0 operation.needs_operator: no sufficient set was completed; failed: storage.fence (every level failed; last \
         ceph: refused)",
    ]);
    // A stranger switches it on meanwhile: the old observation must not complete the set.
    world.pass(60_000);
    world.site.restore_power();
    world.pass(60_000);
    world.site.manners.clear();
    world.retry().unwrap();
    let storage = world
        .sent
        .iter()
        .rposition(|d| d.job.kind() == FencingKind::StorageFence)
        .unwrap();
    world.work(storage);
    assert!(!world.is_fenced(), "the power must be read again");
    world.work_off();
    world.expect(&[
        "120.0 note operation.retry",
        "120.0 note fence.proof_ended: the fence was started again",
        "120.0 operation.restarted: tried again by anna: mended",
        "120.0 send 3 power.off bmc",
        "120.0 send 4 storage.fence ceph",
        "120.0 operation.proof storage.fence",
        "120.0 operation.proof power.off",
        "120.0 host.fenced 1",
    ]);
    // What was read as off may be the doing of the first command, and the second one may come yet.
    world.pass(10_000);
    world.work_off();
    world.expect(&[
        "130.0 send 5 power.on bmc",
        "130.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 1",
        "130.0 operation.succeeded: FENCED, proven by power.off, storage.fence",
    ]);
}

#[test]
fn a_stage_waits_for_the_one_before_and_for_its_delay() {
    let mut staged = plan(vec![
        vec![task(FencingKind::StorageFence, &[&["ceph"]])],
        vec![task(FencingKind::PowerOff, &[&["bmc"]])],
    ]);
    staged.stages[1].delay_s = 5;
    let mut world = lost(staged);
    world.fence().unwrap();
    world.pass(2_000);
    world.work(0);
    world.pass(10_000);
    world.work(1);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 storage.fence ceph",
        "2.0 operation.proof storage.fence",
        "7.0 send 2 power.off bmc",
        "12.0 operation.proof power.off",
        "12.0 host.fenced 1",
        "12.0 operation.succeeded: FENCED, proven by power.off, storage.fence",
    ]);
}

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
    assert!(world.deliver(0, "worker-1").is_err(), "nobody may act any more");
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

#[test]
fn a_task_done_by_an_untrusted_method_proves_nothing() {
    let mut world = lost(cut_off_plan());
    world.site.manners.insert("switch".to_owned(), Manner::OnPaper);
    world.fence().unwrap();
    world.work(0);
    world.work(1);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 storage.fence ceph",
        "0.0 send 2 network.fence switch",
        "0.0 operation.proof storage.fence",
        "0.0 operation.needs_operator: no sufficient set was completed; done, which proves nothing: network.fence",
    ]);
    assert!(!world.is_fenced());
    let standing: Vec<_> = world.state.host.applied.fencing.iter().map(|s| s.kind).collect();
    assert_eq!(
        standing,
        [FencingKind::StorageFence, FencingKind::NetworkFence],
        "both devices must be released"
    );
}

#[test]
fn a_worker_cannot_prove_by_an_untrusted_method() {
    let mut ports = task(FencingKind::NetworkFence, &[&["ports"]]);
    ports.levels[0][0].can_prove = false;
    let both = |ports: FrozenTask| plan(vec![vec![task(FencingKind::StorageFence, &[&["ceph"]]), ports]]);
    let mut world = lost(both(ports.clone()));
    world.fence().unwrap();
    world.work(0);
    world.work(1);
    assert!(!world.is_fenced());

    ports.levels[0][0].can_prove = true;
    let mut world = lost(both(ports));
    world.fence().unwrap();
    world.work(0);
    world.work(1);
    assert!(world.is_fenced());
}

#[test]
fn a_task_that_was_done_without_proof_is_done_by_the_next_level_too() {
    let plan = plan(vec![vec![
        task(FencingKind::StorageFence, &[&["ceph"]]),
        task(FencingKind::NetworkFence, &[&["cloud"], &["fabric"]]),
    ]]);
    let mut world = lost(plan);
    world.site.manners.insert("cloud".to_owned(), Manner::OnPaper);
    world.fence().unwrap();
    world.work_off();
    assert!(world.is_fenced());
    let methods: Vec<String> = world.sent.iter().map(|sent| sent.job.by()).collect();
    assert_eq!(methods, ["ceph", "cloud", "fabric"]);
    let standing = world
        .state
        .host
        .applied
        .fencing
        .iter()
        .map(|s| s.method.name.as_str());
    assert_eq!(
        standing.collect::<Vec<_>>(),
        ["ceph", "cloud", "fabric"],
        "every device is released"
    );
}

#[test]
fn a_retry_repeats_a_task_that_was_done_without_proof() {
    let mut world = lost(cut_off_plan());
    world.site.manners.insert("switch".to_owned(), Manner::OnPaper);
    world.fence().unwrap();
    world.work_off();
    assert!(!world.is_fenced());
    world.site.manners.remove("switch");
    world.retry().unwrap();
    world.work_off();
    assert!(world.is_fenced());
}
