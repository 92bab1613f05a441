//! Taking hosts back.

use ringfence_core::*;

use super::{expect, lost, lost_under};
use ringfence_world::Manner;
use ringfence_world::World;
use ringfence_world::plans::*;

/// FENCED by power.
fn off() -> World {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work(0);
    world.take_log();
    world
}

/// FENCED by storage and network, with the boot "a" on record.
fn cut_off() -> World {
    let mut world = lost(cut_off_plan());
    world.see_boot(FailureState::Unreachable, Some("a")).unwrap();
    world.fence().unwrap();
    world.work_off();
    world.take_log();
    world
}

#[test]
fn after_power_it_is_switched_on_and_waited_for() {
    let mut world = off();
    world.pass(60_000);
    world.rejoin(false).unwrap();
    assert!(!world.gates().evacuate.allowed, "from now on it may come back");
    world.work(1);
    world.pass(90_000);
    world.see(FailureState::Up).unwrap();
    expect(
        &mut world,
        &[
            "60.0 operation.started rejoin 2",
            "60.0 send 1 power.on bmc",
            "150.0 host.failure_state UP",
            "150.0 host.unfenced 2",
            "150.0 operation.succeeded: the host was taken back",
        ],
    );
    assert!(world.gates().schedule.allowed);
}

#[test]
fn a_heartbeat_from_before_the_fence_does_not_bring_it_back() {
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
    world.rejoin(false).unwrap();
    world.work(1);
    assert!(world.is_fenced());
    world.see(FailureState::Up).unwrap();
    assert!(!world.is_fenced());
}

#[test]
fn after_storage_and_network_it_needs_a_newer_boot() {
    let mut world = cut_off();
    world.pass(10_000);
    world.see_boot(FailureState::Up, Some("a")).unwrap();
    world.rejoin(false).unwrap();
    world.pass(20_000);
    expect(
        &mut world,
        &["10.0 host.failure_state UP", "10.0 operation.started rejoin 2"],
    );
    world.see_boot(FailureState::Up, Some("b")).unwrap();
    world.work_off();
    expect(
        &mut world,
        &[
            "30.0 send 1 storage.unfence ceph",
            "30.0 send 2 network.unfence switch",
            "30.0 host.unfenced 2",
            "30.0 operation.succeeded: the host was taken back",
        ],
    );
    assert!(world.gates().schedule.allowed);
}

#[test]
fn without_a_newer_boot_it_ends_with_a_person_whose_word_is_enough() {
    let mut world = cut_off();
    world.pass(1_000);
    world.see_boot(FailureState::Up, Some("a")).unwrap();
    world.rejoin(false).unwrap();
    world.pass(600_000);
    assert_eq!(
        world.take_log().last().unwrap(),
        "601.0 operation.needs_operator: the host was fenced by storage or network alone and has shown no boot newer than \
         the fence"
    );
    let id = world.live_id();
    assert_eq!(world.rejoin(true), Ok(Answer::Joined(id)));
    world.retry().unwrap();
    world.work_off();
    assert!(!world.is_fenced());
}

#[test]
fn another_boot_that_is_older_than_the_fence_is_not_a_newer_one() {
    let mut world = cut_off();
    world.pass(10_000);
    let fenced_at = world.state.host.fenced_at.unwrap();
    let report = |world: &mut World, booted_at: Timestamp| Input::FailureState {
        operation_id: OperationId(world.next_id()),
        state: FailureState::Up,
        source: "monitor".to_owned(),
        observed_at: world.now,
        boot: Some(Boot {
            id: Some("b".to_owned()),
            booted_at: Some(booted_at),
            observed_at: world.now,
        }),
    };
    let before = report(&mut world, fenced_at - chrono::TimeDelta::minutes(5));
    world.give(before).unwrap();
    world.rejoin(false).unwrap();
    assert!(world.sent.iter().all(|d| d.kind != TaskKind::StorageUnfence));
    let ahead = world.now + chrono::TimeDelta::hours(1);
    let wrong_clock = report(&mut world, ahead);
    world.give(wrong_clock).unwrap();
    assert!(world.sent.iter().all(|d| d.kind != TaskKind::StorageUnfence));
    let after = report(&mut world, fenced_at + chrono::TimeDelta::seconds(5));
    world.give(after).unwrap();
    assert!(world.sent.iter().any(|d| d.kind == TaskKind::StorageUnfence));
}

#[test]
fn the_network_waits_for_storage_and_unfenced_waits_for_both() {
    let mut world = cut_off();
    world.pass(1_000);
    world.see_boot(FailureState::Up, Some("b")).unwrap();
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    world.rejoin(false).unwrap();
    world.work_off();
    expect(
        &mut world,
        &[
            "1.0 host.failure_state UP",
            "1.0 operation.started rejoin 2",
            "1.0 send 1 storage.unfence ceph",
            "1.0 operation.needs_operator: storage.unfence failed: every level failed; last ceph: refused",
        ],
    );
    assert!(world.is_fenced());
    world.site.manners.clear();
    world.retry().unwrap();
    world.work_off();
    assert!(!world.is_fenced());
}

#[test]
fn a_host_that_has_gone_again_is_not_taken_back() {
    let mut world = cut_off();
    world.pass(1_000);
    world.see_boot(FailureState::Up, Some("b")).unwrap();
    world.rejoin(false).unwrap();
    world.work(2);
    world.see(FailureState::Unreachable).unwrap();
    world.work_off();
    assert!(world.is_fenced());
    world.pass(600_000);
    expect(
        &mut world,
        &[
            "1.0 host.failure_state UP",
            "1.0 operation.started rejoin 2",
            "1.0 send 1 storage.unfence ceph",
            "1.0 send 2 network.unfence switch",
            "1.0 host.failure_state UNREACHABLE",
            "601.0 operation.needs_operator: the host is UNREACHABLE, not UP",
        ],
    );
    assert!(!world.gates().evacuate.allowed, "it has its storage again");
    assert!(matches!(world.fence(), Ok(Answer::Started(_))));
}

#[test]
fn the_watchdog_is_waited_for_unless_the_host_was_booted_anew() {
    let policy = SegmentPolicy {
        self_fencing_timeout_s: Some(120),
        ..ringfence_world::plans::policy()
    };
    let fenced = || {
        let mut world = lost_under(power_plan(), policy.clone());
        world.see_boot(FailureState::Unreachable, Some("a")).unwrap();
        world.fence().unwrap();
        world.work(0);
        world.take_log();
        world.pass(10_000);
        world
    };
    let mut world = fenced();
    world.rejoin(false).unwrap();
    world.work(1);
    world.see_boot(FailureState::Up, None).unwrap();
    world.pass(200_000);
    expect(
        &mut world,
        &[
            "10.0 operation.started rejoin 2",
            "10.0 send 1 power.on bmc",
            "10.0 host.failure_state UP",
            "120.0 host.unfenced 2",
            "120.0 operation.succeeded: the host was taken back",
        ],
    );
    let mut world = fenced();
    world.rejoin(false).unwrap();
    world.work(1);
    world.see_boot(FailureState::Up, Some("b")).unwrap();
    assert!(!world.is_fenced());
}

#[test]
fn a_rejoin_overtaken_by_a_fence_holds_the_off_until_the_on_is_over() {
    let mut world = off();
    world.pass(10_000);
    world.rejoin(false).unwrap();
    let on = world.deliver(1, "worker-1").unwrap();
    world.fence().unwrap();
    assert!(world.is_fenced(), "FENCED is not dropped");
    assert!(
        !world.gates().evacuate.allowed,
        "but it does not hold for this generation"
    );
    world.pass(5_000);
    world.command(on);
    assert!(world.site.is_powered());
    let result = world.finish(on).unwrap();
    world.deliver_result(result);
    expect(
        &mut world,
        &[
            "10.0 operation.started rejoin 2",
            "10.0 send 1 power.on bmc",
            "10.0 operation.cancelled: superseded by a fence of generation 3",
            "10.0 operation.started fence 3",
            "15.0 note result.ignored: it is of another operation or generation",
            "15.0 send 1 power.off bmc",
        ],
    );
    world.work(2);
    assert!(!world.site.is_powered());
    assert!(world.gates().evacuate.allowed);
}

#[test]
fn an_on_whose_worker_is_silent_holds_the_off_until_its_deadline() {
    let mut world = off();
    world.rejoin(false).unwrap();
    let on = world.deliver(1, "worker-1").unwrap();
    world.fence().unwrap();
    world.pass(19_999);
    world.command(on);
    world.pass(3_000);
    assert!(!world.command(on), "its time is up");
    expect(
        &mut world,
        &[
            "0.0 operation.started rejoin 2",
            "0.0 send 1 power.on bmc",
            "0.0 operation.cancelled: superseded by a fence of generation 3",
            "0.0 operation.started fence 3",
            "22.0 send 1 power.off bmc",
        ],
    );
    world.work(2);
    assert!(world.gates().evacuate.allowed);
}

#[test]
fn a_rejoin_that_is_cancelled_leaves_the_host_fenced_and_the_gate_shut() {
    let mut world = off();
    world.rejoin(false).unwrap();
    world.work(1);
    world.cancel().unwrap();
    assert!(world.is_fenced());
    assert!(!world.gates().evacuate.allowed);
    assert!(
        matches!(world.fence(), Ok(Answer::Started(_))),
        "it can be fenced again"
    );
}

#[test]
fn where_the_segment_says_so_it_comes_back_without_being_asked() {
    let policy = SegmentPolicy {
        auto_rejoin: true,
        ..ringfence_world::plans::policy()
    };
    let mut world = lost_under(reboot_plan(), policy);
    world.fence().unwrap();
    world.work(0);
    let on = world.deliver(1, "worker-1").unwrap();
    world.pass(1_000);
    world.command(on);
    // It is back before the worker has said so; nobody reports it a second time.
    world.see(FailureState::Up).unwrap();
    world.take_log();
    let result = world.finish(on).unwrap();
    world.deliver_result(result);
    expect(
        &mut world,
        &[
            "1.0 operation.succeeded: FENCED, proven by power.off",
            "1.0 operation.started rejoin 2",
            "1.0 host.unfenced 2",
            "1.0 operation.succeeded: the host was taken back",
        ],
    );
}

#[test]
fn a_rejoin_that_a_person_cancelled_does_not_begin_again_by_itself() {
    let policy = SegmentPolicy {
        auto_rejoin: true,
        ..ringfence_world::plans::policy()
    };
    let mut world = lost_under(cut_off_plan(), policy);
    world.fence().unwrap();
    world.work_off();
    world.pass(1_000);
    world.see(FailureState::Up).unwrap();
    world.cancel().unwrap();
    world.take_log();
    world.see(FailureState::Up).unwrap();
    expect(&mut world, &[]);
}

#[test]
fn a_method_that_was_edited_between_two_fences_is_given_back_in_both_forms() {
    let mut world = lost(plan(vec![vec![task(TaskKind::StorageFence, &[&["ceph"]])]]));
    world.fence().unwrap();
    world.work(0);
    world.cancel().unwrap();
    let edited = &mut world.plan.stages[0].tasks[0].levels[0][0];
    edited
        .parameters
        .insert("device".to_owned(), "another".to_owned());
    world.fence().unwrap();
    world.work(1);
    assert_eq!(world.state.host.standing.len(), 2);
    world.cancel().unwrap();
    world.see(FailureState::Up).unwrap();
    world.rejoin(false).unwrap();
    let devices: Vec<_> = world.sent[2..]
        .iter()
        .map(|d| d.method.parameters["device"].as_str())
        .collect();
    assert_eq!(devices, ["ceph", "another"]);
    world.work(2);
    assert!(!world.gates().schedule.allowed, "half of it still stands");
    world.work(3);
    assert!(world.state.host.standing.is_empty());
}

#[test]
fn a_host_from_which_nothing_was_taken_is_not_rejoined() {
    let mut world = lost(power_plan());
    assert_eq!(world.rejoin(false), Ok(Answer::AlreadySo));
    world.fence().unwrap();
    assert_eq!(world.rejoin(false).unwrap_err().code(), "operation.live");
}

#[test]
fn a_device_that_said_no_has_taken_nothing() {
    let mut world = lost(cut_off_plan());
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    world.work_off();
    let standing: Vec<_> = world.state.host.standing.iter().map(|s| s.kind).collect();
    assert_eq!(standing, [TaskKind::NetworkFence]);
}

#[test]
fn a_no_after_an_attempt_of_which_nothing_is_known_proves_nothing() {
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    world.deliver(0, "worker-1").unwrap();
    world.pass(11_000);
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    let again = world
        .sent
        .iter()
        .rposition(|d| d.kind == TaskKind::StorageFence)
        .unwrap();
    world.work(again);
    assert_eq!(
        world.state.host.standing.len(),
        1,
        "the first one may have cut it off"
    );
}

#[test]
fn whoever_takes_a_fenced_host_back_does_not_wait_for_what_the_fence_still_tries() {
    let mut world = lost(plan(vec![vec![
        task(TaskKind::PowerOff, &[&["bmc"]]),
        task(TaskKind::StorageFence, &[&["ceph"]]),
    ]]));
    world.fence().unwrap();
    world.work(0);
    let storage = world.deliver(1, "worker-1").unwrap();
    world.take_log();
    world.rejoin(false).unwrap();
    world.work(2);
    world.see(FailureState::Up).unwrap();
    expect(
        &mut world,
        &[
            "0.0 operation.succeeded: FENCED, proven by power.off",
            "0.0 operation.started rejoin 2",
            "0.0 send 1 power.on bmc",
            "0.0 host.failure_state UP",
        ],
    );
    world.pass(19_000);
    assert!(world.command(storage), "the old worker is still at it");
    world.pass(3_000);
    world.work(3);
    expect(
        &mut world,
        &[
            "22.0 send 2 storage.unfence ceph",
            "22.0 host.unfenced 2",
            "22.0 operation.succeeded: the host was taken back",
        ],
    );
}

/// FENCED by storage and network; the switch was thrown away since, and the rejoin waits for a person because of that.
fn without_its_switch() -> World {
    let mut world = cut_off();
    world.site.manners.insert("switch".to_owned(), Manner::Refuses);
    world.pass(1_000);
    world.see_boot(FailureState::Up, Some("b")).unwrap();
    world.rejoin(false).unwrap();
    world.work_off();
    assert_eq!(
        world.take_log().last().unwrap(),
        "1.0 operation.needs_operator: network.unfence failed: every level failed; last switch: refused"
    );
    world
}

#[test]
fn what_no_device_can_give_back_an_admin_can_say_was_given_back() {
    let mut world = without_its_switch();
    assert_eq!(world.given_back(2, &["switch"], admin("anna")), Ok(Answer::Done));
    expect(
        &mut world,
        &[
            "1.0 note standing.given_back",
            "1.0 operation.restarted: given back by hand, says anna: the switch was thrown away",
            "1.0 host.unfenced 2",
            "1.0 operation.succeeded: the host was taken back",
        ],
    );
    assert!(world.gates().schedule.allowed);
}

#[test]
fn that_word_needs_an_admin_the_generation_and_the_name_of_what_stands() {
    let mut world = without_its_switch();
    let refusals = [
        world.given_back(2, &["switch"], person("otto")),
        world.given_back(1, &["switch"], admin("anna")),
        world.given_back(2, &["ceph"], admin("anna")),
        world.given_back(2, &["switch", "bmc"], admin("anna")),
    ];
    let codes = refusals.map(|refusal| refusal.unwrap_err().code());
    assert_eq!(
        codes,
        [
            "forbidden",
            "generation.stale",
            "standing.unknown",
            "standing.unknown"
        ]
    );
    assert!(world.is_fenced());
    expect(&mut world, &[]);
}

#[test]
fn nobody_gives_back_what_a_fence_rests_on() {
    let mut world = cut_off();
    let refusal = world.given_back(1, &["switch"], admin("anna")).unwrap_err();
    assert!(refusal.to_string().contains("begin a rejoin first"), "{refusal}");
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    world.work(0);
    let refusal = world.given_back(1, &["ceph"], admin("anna")).unwrap_err();
    assert_eq!(refusal.code(), "operation.live");
}

#[test]
fn what_may_still_be_taken_is_not_given_back() {
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    let storage = world.deliver(0, "worker-1").unwrap();
    world.cancel().unwrap();
    let refusal = world.given_back(1, &["ceph"], admin("anna")).unwrap_err();
    assert_eq!(refusal.code(), "host.fencing");
    let result = world.finish(storage).unwrap();
    world.deliver_result(result);
    assert_eq!(world.given_back(1, &["ceph"], admin("anna")), Ok(Answer::Done));
    world.see(FailureState::Up).unwrap();
    assert!(world.gates().schedule.allowed, "nothing stands any more");
}

#[test]
fn a_device_beside_the_one_that_is_gone_is_still_given_back_by_itself() {
    let mut world = lost(plan(vec![vec![task(
        TaskKind::StorageFence,
        &[&["array-a", "array-b"]],
    )]]));
    world.fence().unwrap();
    world.work_off();
    world.cancel().unwrap();
    world.see(FailureState::Up).unwrap();
    world.rejoin(false).unwrap();
    world.take_log();
    world.given_back(2, &["array-b"], admin("anna")).unwrap();
    assert!(!world.gates().schedule.allowed, "the other still stands");
    world.work_off();
    expect(
        &mut world,
        &[
            "0.0 note standing.given_back",
            "0.0 operation.succeeded: the host was taken back",
        ],
    );
}
