//! Starting a FENCED host's workloads elsewhere.

use ringfence_core::*;

use super::expect;
use crate::cloud::Cloud;
use crate::plans::*;
use crate::world::World;

fn on_nova(plan: FrozenPlan, servers: usize, policy: EvacuationPolicy) -> World {
    let policy = SegmentPolicy {
        evacuation: policy,
        ..SegmentPolicy::default()
    };
    let mut world = World::new(plan, policy);
    world.state.host.backend = Backend::Nova;
    world.state.host.cloud = Some("east".to_owned());
    world.cloud = Cloud::with(servers);
    world.see(FailureState::Unreachable).unwrap();
    world.take_log();
    world
}

/// Power is off, and the backend was told.
fn fenced(servers: usize, policy: EvacuationPolicy) -> World {
    let mut world = on_nova(power_plan(), servers, policy);
    world.fence().unwrap();
    world.work_off();
    world.take_log();
    world
}

fn manual() -> EvacuationPolicy {
    EvacuationPolicy::default()
}

fn automatic() -> EvacuationPolicy {
    EvacuationPolicy {
        automatic: true,
        ..EvacuationPolicy::default()
    }
}

#[test]
fn the_backend_is_told_once_the_host_is_fenced_and_never_before() {
    let mut world = on_nova(power_plan(), 2, manual());
    world.fence().unwrap();
    assert!(!world.cloud.forced_down);
    world.work_off();
    assert!(world.cloud.forced_down);
    expect(
        &mut world,
        &[
            "0.0 operation.started fence 1",
            "0.0 send 1 power.off bmc",
            "0.0 operation.proof power.off",
            "0.0 host.fenced 1",
            "0.0 send 2 workloads.force-down nova:east",
            "0.0 operation.succeeded: FENCED, proven by power.off",
        ],
    );
}

#[test]
fn the_backend_is_told_while_a_slow_device_is_still_being_asked() {
    let both = plan(vec![vec![
        task(TaskKind::PowerOff, &[&["bmc"]]),
        task(TaskKind::NetworkFence, &[&["switch"]]),
    ]]);
    let mut world = on_nova(both, 2, manual());
    world.fence().unwrap();
    world.work(0);
    assert!(world.is_fenced());
    expect(
        &mut world,
        &[
            "0.0 operation.started fence 1",
            "0.0 send 1 power.off bmc",
            "0.0 send 2 network.fence switch",
            "0.0 operation.proof power.off",
            "0.0 host.fenced 1",
            "0.0 send 3 workloads.force-down nova:east",
        ],
    );
}

#[test]
fn a_fence_whose_backend_is_away_is_a_fence_all_the_same() {
    let mut world = on_nova(power_plan(), 2, manual());
    world.cloud.is_away = true;
    world.fence().unwrap();
    for _ in 0..40 {
        world.work_off();
        world.pass(10_000);
    }
    assert!(world.is_fenced());
    let log = world.take_log();
    assert_eq!(
        log.last().unwrap(),
        "50.0 operation.succeeded: FENCED, proven by power.off; workloads.force-down failed"
    );
}

#[test]
fn every_workload_is_started_elsewhere_and_the_backend_is_asked_what_is_left() {
    let mut world = fenced(2, manual());
    world.evacuate().unwrap();
    world.work_off();
    expect(
        &mut world,
        &[
            "0.0 operation.started evacuation 1",
            "0.0 send 1 workloads.force-down nova:east",
            "0.0 send 2 workloads.list nova:east",
            "0.0 send 3 workloads.move nova:east",
            "0.0 send 4 workloads.move nova:east",
            "0.0 workload.moving web-1",
            "0.0 workload.moved web-1 to compute2",
            "0.0 workload.moving web-2",
            "0.0 workload.moved web-2 to compute2",
            "0.0 send 5 workloads.list nova:east",
            "0.0 operation.succeeded: 2 of 2 workloads moved",
        ],
    );
    assert_eq!(world.cloud.on("compute2"), ["web-1", "web-2"]);
}

#[test]
fn a_closed_gate_is_told_with_its_reason() {
    let mut world = on_nova(power_plan(), 1, manual());
    let refusal = world.evacuate().unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the evacuate gate is closed: the host is not FENCED"
    );
    world.fence().unwrap();
    assert_eq!(world.evacuate().unwrap_err().code(), "gate.closed");
    world.work_off();
    world.see(FailureState::Unknown).unwrap();
    assert_eq!(
        world.evacuate().unwrap_err().to_string(),
        "the evacuate gate is closed: the host is UNKNOWN, not UNREACHABLE"
    );
}

#[test]
fn a_host_whose_backend_nobody_speaks_to_cannot_be_evacuated() {
    let mut world = fenced(1, manual());
    world.state.host.cloud = None;
    assert_eq!(world.evacuate().unwrap_err().code(), "backend.missing");
}

#[test]
fn a_second_request_joins_the_first() {
    let mut world = fenced(1, manual());
    let Answer::Started(id) = world.evacuate().unwrap() else {
        panic!("it starts")
    };
    assert_eq!(world.evacuate().unwrap(), Answer::Joined(id));
}

#[test]
fn the_most_important_go_first_and_few_are_on_their_way_at_once() {
    let policy = EvacuationPolicy {
        at_once: 1,
        ..manual()
    };
    let mut world = fenced(0, policy);
    world.cloud.add("a", &[]);
    world.cloud.add("b", &[("evacuation_priority", "-5")]);
    world.cloud.add("c", &[("evacuation_priority", "100")]);
    world.evacuate().unwrap();
    world.work_off();
    let moved: Vec<String> = world.take_log();
    let moved: Vec<&str> = moved
        .iter()
        .filter_map(|line| line.split("workload.").nth(1))
        .collect();
    assert_eq!(
        moved,
        [
            "moving c",
            "moved c to compute2",
            "moving a",
            "moved a to compute2",
            "moving b",
            "moved b to compute2"
        ]
    );
}

#[test]
fn what_its_owner_or_the_segment_wants_left_is_left() {
    let policy = EvacuationPolicy {
        stopped: false,
        ..manual()
    };
    let mut world = fenced(1, policy);
    world.cloud.add("db", &[("HA_Enabled", "False")]);
    world.cloud.add("test", &[]);
    world.cloud.server("test").workload.state = WorkloadState::Stopped;
    world.evacuate().unwrap();
    world.work_off();
    let log = world.take_log();
    assert_eq!(
        log.last().unwrap(),
        "0.0 operation.succeeded: 1 of 1 workloads moved, 2 left where they are"
    );
    assert_eq!(world.cloud.on("compute1"), ["db", "test"]);
}

#[test]
fn a_move_that_fails_is_tried_again_and_then_told() {
    let policy = EvacuationPolicy {
        retries: 1,
        ..manual()
    };
    let mut world = fenced(2, policy);
    world.cloud.server("web-1").fails = 1;
    world.cloud.server("web-2").fails = 9;
    world.evacuate().unwrap();
    for _ in 0..3 {
        world.work_off();
        world.pass(1_000);
    }
    let log = world.take_log();
    assert_eq!(
        log.last().unwrap(),
        "1.0 operation.needs_operator: 1 of 2 workloads moved; not moved: web-2 (every level failed; last nova:east: unknown)"
    );
    world.cloud.server("web-2").fails = 0;
    world.retry().unwrap();
    world.work_off();
    let log = world.take_log();
    assert_eq!(
        log.last().unwrap(),
        "3.0 operation.succeeded: 2 of 2 workloads moved"
    );
}

#[test]
fn a_spare_host_is_opened_when_there_is_no_room() {
    let policy = EvacuationPolicy {
        spare_hosts: vec!["spare-1".to_owned(), "spare-2".to_owned()],
        ..manual()
    };
    let mut world = fenced(1, policy);
    world.cloud.open.clear();
    world.evacuate().unwrap();
    world.work_off();
    expect(
        &mut world,
        &[
            "0.0 operation.started evacuation 1",
            "0.0 send 1 workloads.force-down nova:east",
            "0.0 send 2 workloads.list nova:east",
            "0.0 send 3 workloads.move nova:east",
            "0.0 workload.moving web-1",
            "0.0 workload.not_moved web-1",
            "0.0 send 4 workloads.list nova:east",
            "0.0 send 5 workloads.add-spare nova:east",
            "0.0 send 6 workloads.move nova:east",
            "0.0 workload.moving web-1",
            "0.0 workload.moved web-1 to spare-1",
            "0.0 send 7 workloads.list nova:east",
            "0.0 operation.succeeded: 1 of 1 workloads moved",
        ],
    );
}

#[test]
fn a_workload_that_appears_in_the_middle_is_moved_too() {
    let mut world = fenced(1, manual());
    world.evacuate().unwrap();
    world.work(2);
    world.work(3);
    world.cloud.add("late", &[]);
    world.work_off();
    let log = world.take_log();
    assert_eq!(
        log.last().unwrap(),
        "0.0 operation.succeeded: 2 of 2 workloads moved"
    );
}

#[test]
fn an_evacuation_begins_by_itself_when_the_fence_is_over() {
    let mut world = on_nova(power_plan(), 1, automatic());
    world.fence().unwrap();
    world.work_off();
    world.take_log();
    world.pass(1);
    world.work_off();
    let log = world.take_log();
    assert_eq!(log[0], "0.0 operation.started evacuation 1");
    assert_eq!(
        log.last().unwrap(),
        "0.0 operation.succeeded: 1 of 1 workloads moved"
    );
    world.pass(600_000);
    assert_eq!(world.take_log(), Vec::<String>::new(), "once for each fence");
}

/// It would start what it had before.
#[test]
fn a_host_has_power_again_when_its_workloads_are_elsewhere_and_not_before() {
    let mut world = on_nova(reboot_plan(), 1, automatic());
    world.fence().unwrap();
    world.work_off();
    world.pass(1);
    world.work_off();
    expect(
        &mut world,
        &[
            "0.0 operation.started fence 1",
            "0.0 send 1 power.off bmc",
            "0.0 operation.proof power.off",
            "0.0 host.fenced 1",
            "0.0 send 2 workloads.force-down nova:east",
            "0.0 operation.succeeded: FENCED, proven by power.off",
            "0.0 operation.started evacuation 1",
            "0.0 send 1 workloads.force-down nova:east",
            "0.0 send 2 workloads.list nova:east",
            "0.0 send 3 workloads.move nova:east",
            "0.0 workload.moving web-1",
            "0.0 workload.moved web-1 to compute2",
            "0.0 send 4 workloads.list nova:east",
            "0.0 send 5 power.on bmc",
            "0.0 operation.succeeded: 1 of 1 workloads moved",
        ],
    );
    assert!(world.cloud.started.iter().all(|start| start.was_safe));
    assert!(world.site.is_powered());
}

#[test]
fn a_host_whose_workloads_cannot_be_moved_stays_off_until_a_person_has_looked() {
    let policy = EvacuationPolicy {
        retries: 0,
        ..automatic()
    };
    let mut world = on_nova(reboot_plan(), 1, policy);
    world.cloud.server("web-1").fails = 1;
    world.fence().unwrap();
    world.work_off();
    world.pass(1);
    world.work_off();
    let log = world.take_log();
    assert!(
        log.last()
            .unwrap()
            .contains("operation.needs_operator: 0 of 1 workloads moved"),
        "{log:?}"
    );
    assert!(!world.site.is_powered());
    world.retry().unwrap();
    world.work_off();
    let log = world.take_log();
    assert_eq!(
        log.last().unwrap(),
        "0.0 operation.succeeded: 1 of 1 workloads moved"
    );
    assert!(world.site.is_powered());
    assert!(world.cloud.started.iter().all(|start| start.was_safe));
}

#[test]
fn a_host_whose_workloads_nobody_moves_has_power_again_with_its_fence() {
    let mut world = on_nova(reboot_plan(), 1, manual());
    world.fence().unwrap();
    world.work_off();
    assert!(world.site.is_powered());
}

/// Nobody knows what has become of the only workload but what the worker says.
fn with_a_move_that_ends(report: MoveReport) -> World {
    let mut world = fenced(1, manual());
    world.evacuate().unwrap();
    world.work(2);
    world.work(3);
    let job = world.deliver(4, "worker-1").unwrap();
    let at = world.finish(job).unwrap();
    let result = &mut world.results[at];
    (result.outcome, result.observation) = (Outcome::Unknown, None);
    result.finding = Some(Finding::Move(report));
    world.deliver_result(at);
    world
}

#[test]
fn what_a_backend_has_not_answered_is_waited_for_before_it_is_asked_again() {
    let mut world = with_a_move_that_ends(MoveReport {
        unanswered: true,
        ..MoveReport::default()
    });
    world.pass(119_999);
    assert_eq!(world.sent.len(), 5, "a second request would wreck the first");
    world.pass(1);
    assert_eq!(world.sent.len(), 6);
    world.work_off();
    let log = world.take_log();
    assert_eq!(
        log.last().unwrap(),
        "120.0 operation.succeeded: 1 of 1 workloads moved"
    );
}

#[test]
fn a_move_to_a_host_that_is_dead_is_not_waited_for_by_the_next_try() {
    let mut world = with_a_move_that_ends(MoveReport {
        given_up: Some(7),
        ..MoveReport::default()
    });
    assert_eq!(world.sent[4].method.parameters.get("given_up"), None);
    world.pass(1_000);
    let given_up = world.sent[5].method.parameters.get("given_up");
    assert_eq!(given_up.map(String::as_str), Some("7"));
}

#[test]
fn an_evacuation_does_not_wait_for_a_device_that_hangs_and_goes_on_with_it() {
    let both = plan(vec![vec![
        task(TaskKind::PowerOff, &[&["bmc"]]),
        task(TaskKind::StorageFence, &[&["ceph"]]),
        task(TaskKind::NetworkFence, &[&["switch"]]),
    ]]);
    let mut world = on_nova(both, 1, automatic());
    world.fence().unwrap();
    let hung = world.deliver(0, "worker-1").unwrap();
    world.work(1);
    world.work(2);
    world.work_off();
    world.take_log();
    assert!(world.state.host.needs_boot);
    world.pass(3_000);
    world.work_off();
    expect(
        &mut world,
        &[
            "3.0 operation.succeeded: FENCED, proven by storage.fence, network.fence",
            "3.0 operation.started evacuation 1",
            "3.0 send 1 power.off bmc",
            "3.0 send 2 workloads.force-down nova:east",
            "3.0 operation.proof power.off",
            "3.0 send 3 workloads.list nova:east",
            "3.0 send 4 workloads.move nova:east",
            "3.0 workload.moving web-1",
            "3.0 workload.moved web-1 to compute2",
            "3.0 send 5 workloads.list nova:east",
            "3.0 operation.succeeded: 1 of 1 workloads moved",
        ],
    );
    assert!(!world.state.host.needs_boot, "it was seen off after all");
    assert!(world.command(hung), "the first attempt is at it still");
}

#[test]
fn a_host_that_comes_back_ends_its_evacuation_and_what_is_on_its_way_arrives() {
    let policy = EvacuationPolicy {
        at_once: 1,
        ..manual()
    };
    let mut world = fenced(3, policy);
    world.evacuate().unwrap();
    world.work(2);
    world.work(3);
    world.work(4);
    let job = world.deliver(5, "worker-1").unwrap();
    world.take_log();
    world.see(FailureState::Up).unwrap();
    assert!(world.command(job));
    let result = world.finish(job).unwrap();
    world.deliver_result(result);
    expect(
        &mut world,
        &[
            "0.0 host.failure_state UP",
            "0.0 note fence.proof_spent: the host was seen UP, so that it runs again",
            "0.0 workload.moved web-2 to compute2",
            "0.0 operation.cancelled: the host is back; 2 of 3 workloads moved",
        ],
    );
    assert_eq!(world.cloud.on("compute1"), ["web-3"]);
}

#[test]
fn nothing_begins_while_nobody_can_tell_whether_the_host_is_silent() {
    let policy = EvacuationPolicy {
        at_once: 1,
        ..manual()
    };
    let mut world = fenced(2, policy);
    world.evacuate().unwrap();
    world.work(2);
    world.work(3);
    world.see(FailureState::Unknown).unwrap();
    world.take_log();
    let refused = world.deliver(4, "worker-1").unwrap_err();
    assert_eq!(
        refused.to_string().split(": ").last(),
        Some("the evacuate gate is closed")
    );
    world.pass(100_000);
    assert_eq!(world.cloud.started.len(), 0);
    world.see(FailureState::Unreachable).unwrap();
    world.work_off();
    let log = world.take_log();
    assert_eq!(
        log.last().unwrap(),
        "100.0 operation.succeeded: 2 of 2 workloads moved"
    );
}

#[test]
fn a_gate_that_stays_closed_needs_an_operator_at_last() {
    let mut world = fenced(1, manual());
    world.evacuate().unwrap();
    world.work(2);
    world.work(3);
    world.see(FailureState::Unknown).unwrap();
    world.pass(3_700_000);
    let log = world.take_log();
    assert_eq!(
        log.last().unwrap(),
        "3600.0 operation.needs_operator: the gate has been closed for 3600 s: the host is UNKNOWN, not UNREACHABLE"
    );
}

#[test]
fn the_way_back_waits_for_a_worker_that_may_still_be_starting_a_workload_elsewhere() {
    let mut world = fenced(1, manual());
    world.evacuate().unwrap();
    world.work(2);
    world.work(3);
    let job = world.deliver(4, "worker-1").unwrap();
    world.cancel().unwrap();
    world.take_log();
    world.rejoin(false).unwrap();
    expect(&mut world, &["0.0 operation.started rejoin 2"]);
    assert!(world.command(job));
    let result = world.finish(job).unwrap();
    world.deliver_result(result);
    let log = world.take_log();
    assert_eq!(log.last().unwrap(), "0.0 send 1 power.on bmc");
}

#[test]
fn a_host_is_taken_back_in_its_backends_order() {
    let mut world = fenced(1, manual());
    world.evacuate().unwrap();
    world.work_off();
    world.take_log();
    world.rejoin(false).unwrap();
    world.work_off();
    world.pass(5_000);
    world.see_boot(FailureState::Up, Some("new")).unwrap();
    world.work_off();
    expect(
        &mut world,
        &[
            "0.0 operation.started rejoin 2",
            "0.0 send 1 power.on bmc",
            "5.0 host.failure_state UP",
            "5.0 send 2 workloads.clean-up nova:east",
            "5.0 send 3 workloads.force-up nova:east",
            "5.0 host.unfenced 2",
            "5.0 send 4 workloads.start nova:east",
            "5.0 operation.succeeded: the host was taken back",
        ],
    );
    assert!(!world.cloud.forced_down);
}

#[test]
fn a_host_whose_workloads_cannot_be_started_is_taken_back_and_asks_a_person() {
    let mut world = fenced(1, manual());
    world.rejoin(false).unwrap();
    world.work_off();
    world.see_boot(FailureState::Up, Some("new")).unwrap();
    let before = world.sent.len();
    world.work(before - 1);
    world.work(before);
    assert!(!world.is_fenced());
    world.cloud.is_away = true;
    world.pass(1_200_000);
    for _ in 0..40 {
        let last = world.sent.len() - 1;
        if world.deliver(last, "worker-1").is_ok() {
            let result = world.finish(world.jobs.len() - 1).unwrap();
            world.deliver_result(result);
        }
        world.pass(2_000);
    }
    let rejoin = world.state.operation.clone().unwrap();
    assert_eq!(rejoin.status, OperationStatus::NeedsOperator);
    assert!(
        rejoin
            .detail
            .starts_with("the host was taken back, but workloads.start failed: "),
        "{}",
        rejoin.detail
    );
    assert!(world.gates().schedule.allowed, "it is UNFENCED and UP");
    world.cloud.is_away = false;
    world.retry().unwrap();
    world.work_off();
    assert!(world.state.operation.is_none());
}

#[test]
fn nobody_takes_a_workload_up_while_a_silent_worker_may_still_be_at_it() {
    let mut world = fenced(1, manual());
    world.evacuate().unwrap();
    world.work(2);
    world.work(3);
    world.deliver(4, "worker-1").unwrap();
    world.take_log();
    world.pass(60_000);
    assert_eq!(world.sent.len(), 5, "its lease has run out, and its time has not");
    world.pass(243_000);
    assert_eq!(world.sent.len(), 6);
    world.work(5);
    assert_eq!(world.cloud.started.len(), 1);
}

#[test]
fn a_second_evacuation_waits_for_the_workers_of_the_first() {
    let mut world = fenced(1, manual());
    world.evacuate().unwrap();
    world.work(2);
    world.work(3);
    let job = world.deliver(4, "worker-1").unwrap();
    world.cancel().unwrap();
    world.evacuate().unwrap();
    world.work(5);
    world.work(6);
    assert_eq!(world.sent.len(), 7, "nothing is moved yet");
    let result = world.finish(job).unwrap();
    world.deliver_result(result);
    assert_eq!(world.sent.len(), 8);
}

#[test]
fn a_host_with_more_workloads_than_can_be_told_is_not_called_empty() {
    let mut world = fenced(0, manual());
    for number in 0..MAX_LISTED {
        world
            .cloud
            .add(&format!("stays-{number}"), &[("HA_Enabled", "no")]);
    }
    world.evacuate().unwrap();
    world.work_off();
    let log = world.take_log();
    assert_eq!(
        log.last().unwrap(),
        "0.0 operation.needs_operator: 0 of 0 workloads moved, 256 left where they are; 256 workloads stay on the host, and what is \
         beyond them was not seen"
    );
}

#[test]
fn a_workload_takes_along_what_its_own_cloud_has_taken_from_it() {
    let by = |kind: TaskKind, driver: Driver, cloud: &str, host: &str| {
        let mut task = task(kind, &[&[driver.as_str()]]);
        task.levels[0][0].driver = driver;
        let place = [("cloud", cloud), ("host", host)];
        let place = place.map(|(name, value)| (name.to_owned(), value.to_owned()));
        task.levels[0][0].parameters.extend(place);
        task
    };
    let cut_off = plan(vec![vec![
        by(TaskKind::StorageFence, Driver::Cinder, "west", "compute1"),
        by(TaskKind::NetworkFence, Driver::Neutron, "east", "compute1.rack"),
        task(TaskKind::PowerOff, &[&["bmc"]]),
    ]]);
    let mut world = on_nova(cut_off, 1, manual());
    world.fence().unwrap();
    world.work_off();
    world.evacuate().unwrap();
    world.work_off();
    let sent = world
        .sent
        .iter()
        .find(|sent| sent.kind == TaskKind::WorkloadsMove);
    let parameters = &sent.unwrap().method.parameters;
    assert_eq!(parameters["host"], "compute1");
    assert_eq!(parameters["ports_of"], "compute1.rack", "as neutron calls it");
    assert!(
        !parameters.contains_key("volumes_of"),
        "those are another cloud's"
    );
}

#[test]
fn the_backend_believes_a_host_again_before_it_is_asked_to_connect_anything_there() {
    let both = plan(vec![vec![
        task(TaskKind::PowerOff, &[&["bmc"]]),
        task(TaskKind::StorageFence, &[&["ceph"]]),
    ]]);
    let mut world = on_nova(both, 0, manual());
    world.fence().unwrap();
    world.work_off();
    world.rejoin(false).unwrap();
    world.work_off();
    world.pass(5_000);
    world.see_boot(FailureState::Up, Some("new")).unwrap();
    world.work_off();
    let sent: Vec<TaskKind> = world.sent.iter().map(|sent| sent.kind).collect();
    let at = |kind| sent.iter().position(|sent| *sent == kind).unwrap();
    assert!(
        at(TaskKind::WorkloadsForceUp) < at(TaskKind::StorageUnfence),
        "{sent:?}"
    );
    assert!(
        at(TaskKind::StorageUnfence) < at(TaskKind::WorkloadsStart),
        "{sent:?}"
    );
}
