//! Starting a FENCED host's workloads elsewhere.

use ringfence_core::*;

use super::on_nova::{automatic, evacuating, fenced, manual, on_nova};
use super::weaker::in_cluster;
use ringfence_world::World;
use ringfence_world::plans::*;

#[test]
fn the_host_is_marked_down_once_it_is_fenced_and_not_before() {
    let mut world = on_nova(power_plan(), 2, manual());
    world.fence().unwrap();
    assert!(!world.cloud.forced_down);
    world.work_off();
    assert!(world.cloud.forced_down);
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "0.0 operation.proof power.off",
        "0.0 host.fenced 1",
        "0.0 send 2 workloads.mark-down nova:east",
        "0.0 operation.succeeded: FENCED, proven by power.off",
    ]);
}

#[test]
fn the_host_is_marked_down_while_a_slow_device_is_still_being_fenced() {
    let both = plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::NetworkFence, &[&["switch"]]),
    ]]);
    let mut world = on_nova(both, 2, manual());
    world.fence().unwrap();
    world.work(0);
    assert!(world.is_fenced());
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "0.0 send 2 network.fence switch",
        "0.0 operation.proof power.off",
        "0.0 host.fenced 1",
        "0.0 send 3 workloads.mark-down nova:east",
    ]);
}

#[test]
fn a_fence_succeeds_although_the_backend_is_away() {
    let mut world = on_nova(power_plan(), 2, manual());
    world.cloud.is_away = true;
    world.fence().unwrap();
    for _ in 0..3_700 {
        world.work_off();
        world.pass(1_000);
    }
    assert!(world.is_fenced());
    let log = world.take_log();
    let told = "operation.succeeded: FENCED, proven by power.off; workloads.mark-down failed";
    assert!(log.last().unwrap().ends_with(told), "{log:#?}");
}

#[test]
fn every_workload_is_moved_and_the_backend_is_asked_for_the_rest() {
    let mut world = fenced(2, manual());
    world.evacuate().unwrap();
    world.work_off();
    world.expect(&[
        "0.0 operation.started evacuation 1",
        "0.0 send 1 workloads.mark-down nova:east",
        "0.0 send 2 workloads.list nova:east",
        "0.0 send 3 workloads.move nova:east",
        "0.0 send 4 workloads.move nova:east",
        "0.0 workload.moving web-1",
        "0.0 workload.moved web-1 to compute2",
        "0.0 workload.moving web-2",
        "0.0 workload.moved web-2 to compute2",
        "0.0 send 5 workloads.list nova:east",
        "0.0 operation.succeeded: 2 of 2 workloads moved",
    ]);
    assert_eq!(world.cloud.on("compute2"), ["web-1", "web-2"]);
}

#[test]
fn a_closed_gate_refuses_an_evacuation_with_its_reason() {
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
fn a_host_without_a_platform_cannot_be_evacuated() {
    let mut world = fenced(1, manual());
    world.state.host.cloud = None;
    assert_eq!(world.evacuate().unwrap_err().code(), "backend.missing");
}

#[test]
fn a_second_request_joins_the_first() {
    let mut world = fenced(1, manual());
    let Reply::Started(id) = world.evacuate().unwrap() else {
        panic!("it starts")
    };
    assert_eq!(world.evacuate().unwrap(), Reply::Joined(id));
}

#[test]
fn workloads_with_the_highest_priority_move_first_and_few_at_once() {
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
fn so_many_moves_begin_within_a_second_as_the_segment_says() {
    let policy = EvacuationPolicy {
        per_second: 2,
        ..manual()
    };
    let mut world = fenced(5, policy);
    world.evacuate().unwrap();
    world.work_off();
    let begun = |world: &mut World| {
        let log = world.take_log();
        log.iter().filter(|line| line.contains("workload.moving")).count()
    };
    assert_eq!(begun(&mut world), 2);
    for (milliseconds_later, more) in [(999, 0), (1, 2), (1000, 1)] {
        world.pass(milliseconds_later);
        world.work_off();
        assert_eq!(begun(&mut world), more, "{milliseconds_later}");
    }
    assert!(world.cloud.on("compute1").is_empty());
}

#[test]
fn moves_wait_until_it_is_their_turn_among_those_of_all_hosts() {
    let policy = EvacuationPolicy {
        in_segment: Some(MoveLimits {
            at_once: Some(2),
            per_minute: None,
        }),
        ..manual()
    };
    let mut world = fenced(4, policy);
    world.evacuate().unwrap();
    world.work_off();
    world.pass(10_000);
    world.work_off();
    assert_eq!(world.cloud.on("compute1").len(), 4, "no turn was given");
    let told = |world: &World| world.state.operation.as_ref().unwrap().told();
    assert_eq!(told(&world), "waiting: 4 workloads wait for their turn");
    world.give(Input::BeginMoves { at_most: 1 }).unwrap();
    let first = told(&world);
    assert!(
        first.starts_with("waiting: workloads.move of web-1")
            && first.ends_with("; 3 workloads wait for their turn"),
        "{first}"
    );
    world.work_off();
    assert_eq!(world.cloud.on("compute1").len(), 3, "a turn is for once");
    // The segment bounds nothing any more.
    world.state.policy.evacuation.in_segment = None;
    world.pass(5_000);
    world.work_off();
    assert!(world.cloud.on("compute1").is_empty());
}

#[test]
fn moves_that_began_before_the_clock_was_set_back_hold_no_other_up() {
    let policy = EvacuationPolicy {
        per_second: 1,
        ..manual()
    };
    let mut world = fenced(2, policy);
    world.evacuate().unwrap();
    world.work_off();
    world.move_clock(-3_600);
    world.tick();
    world.see(FailureState::Unreachable).unwrap();
    world.pass(1_000);
    world.work_off();
    assert!(world.cloud.on("compute1").is_empty());
}

#[test]
fn a_platform_is_told_of_disruption_budgets_before_it_is_asked_to_let_anything_go() {
    for asked in [false, true] {
        let mut world = in_cluster(vec![task(FencingKind::PowerOff, &[&["bmc"]])], 0);
        world.state.policy.evacuation.disruption_budgets = asked;
        world.fence().unwrap();
        let steps = |world: &World| {
            let tasks = world.state.operation.iter().flat_map(Operation::tasks);
            let steps = tasks.filter_map(Task::as_step);
            steps.map(|task| task.step.clone()).collect::<Vec<WorkloadStep>>()
        };
        assert!(steps(&world).contains(&WorkloadStep::Isolate { one_by_one: asked }));
        world.work_off();
        let sent = world.sent.len();
        world.evacuate().unwrap();
        // It is told, and lists its workloads.
        world.work(sent);
        world.work(sent + 1);
        let asks = steps(&world).into_iter().filter_map(|step| match step {
            WorkloadStep::Move(step) => Some(step.disruption_budgets),
            _ => None,
        });
        let asks: Vec<bool> = asks.collect();
        assert!(
            !asks.is_empty() && asks.iter().all(|one| *one == asked),
            "{asks:?}"
        );
    }
}

#[test]
fn workloads_that_owner_or_segment_opt_out_are_left() {
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
    world.expect_last("0.0 operation.succeeded: 1 of 1 workloads moved, 2 left where they are");
    assert_eq!(world.cloud.on("compute1"), ["db", "test"]);
}

#[test]
fn a_failed_move_is_repeated_and_then_reported() {
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
    world.expect_last("1.0 operation.needs_operator: 1 of 2 workloads moved; not moved: web-2 (every level failed; last nova:east: unknown)");
    world.cloud.server("web-2").fails = 0;
    world.retry().unwrap();
    world.work_off();
    world.expect_last("3.0 operation.succeeded: 2 of 2 workloads moved");
}

/// What the pages advise for pods whose only copy is on the dead node: look again after an hour.
#[test]
fn an_evacuation_with_a_workload_that_stays_begins_again_after_the_segments_hour() {
    let policy = EvacuationPolicy {
        retries: 0,
        ..manual()
    };
    let mut world = on_nova(power_plan(), 2, policy);
    world.state.policy.restarts = 2;
    world.state.policy.restart_delay_s = 3600;
    world.fence().unwrap();
    world.work_off();
    world.cloud.server("web-2").fails = 2;
    world.evacuate().unwrap();
    world.work_off();
    let stays = "1 of 2 workloads moved; not moved: web-2 (every level failed; last nova:east: unknown)";
    world.expect_last(&format!("0.0 operation.needs_operator: {stays}"));
    let sent = world.sent.len();
    world.pass(3_599_999);
    assert_eq!(world.sent.len(), sent, "it waits for its hour");
    world.pass(1);
    world.work_off();
    world.expect_last(&format!("3600.0 operation.needs_operator: {stays}"));
    world.pass(3_600_000);
    world.work_off();
    world.expect_last("7200.0 operation.succeeded: 2 of 2 workloads moved");
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
    world.expect(&[
        "0.0 operation.started evacuation 1",
        "0.0 send 1 workloads.mark-down nova:east",
        "0.0 send 2 workloads.list nova:east",
        "0.0 send 3 workloads.move nova:east",
        "0.0 workload.moving web-1",
        "0.0 workload.not_moved web-1",
        "0.0 send 4 workloads.list nova:east",
        "0.0 send 5 workloads.add-capacity nova:east",
        "0.0 send 6 workloads.move nova:east",
        "0.0 workload.moving web-1",
        "0.0 workload.moved web-1 to spare-1",
        "0.0 send 7 workloads.list nova:east",
        "0.0 operation.succeeded: 1 of 1 workloads moved",
    ]);
}

#[test]
fn a_workload_that_appears_in_the_middle_is_moved_too() {
    let mut world = evacuating(1, manual());
    world.cloud.add("late", &[]);
    world.work_off();
    world.expect_last("0.0 operation.succeeded: 2 of 2 workloads moved");
}

#[test]
fn an_evacuation_begins_automatically_after_the_fence() {
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
    assert_eq!(
        world.take_log(),
        Vec::<String>::new(),
        "there is one automatic evacuation for each fence"
    );
}

#[test]
fn a_host_with_more_workloads_than_a_list_holds_is_not_called_empty() {
    let mut world = fenced(0, manual());
    for number in 0..MAX_LISTED {
        world
            .cloud
            .add(&format!("stays-{number}"), &[("HA_Enabled", "no")]);
    }
    world.evacuate().unwrap();
    world.work_off();
    world.expect_last("0.0 operation.needs_operator: 0 of 0 workloads moved, 256 left where they are; 256 workloads stay on the host, and what is \
         beyond them was not seen");
}

fn rebooting() -> World {
    let mut world = on_nova(reboot_plan(), 1, manual());
    world.fence().unwrap();
    world.work(0);
    assert!(world.is_fenced());
    world
}

fn sent(world: &World, kind: impl Into<TaskKind>) -> usize {
    let kind = kind.into();
    world
        .sent
        .iter()
        .position(|sent| sent.job.kind() == kind)
        .unwrap()
}

#[test]
fn a_backend_is_not_told_that_a_host_is_down_that_is_being_switched_on() {
    let mut world = rebooting();
    let (down, on) = (
        sent(&world, StepKind::MarkDown),
        sent(&world, FencingKind::PowerOn),
    );
    world.deliver(on, "worker-1").unwrap();
    world.deliver(down, "worker-2").unwrap_err();
    world.pass(60_000);
    world.work_off();
    assert!(!world.cloud.forced_down);
    let log = world.take_log();
    assert!(
        log.last()
            .unwrap()
            .ends_with("operation.succeeded: FENCED, proven by power.off"),
        "{log:#?}"
    );
}

#[test]
fn power_waits_for_a_worker_that_tells_the_backend_that_the_host_is_down() {
    let mut world = rebooting();
    let (down, on) = (
        sent(&world, StepKind::MarkDown),
        sent(&world, FencingKind::PowerOn),
    );
    let down = world.deliver(down, "worker-2").unwrap();
    world.deliver(on, "worker-1").unwrap_err();
    world.command(down);
    world.complete(down);
    world.deliver(on, "worker-1").unwrap();
    assert_eq!(world.violation, None);
}

#[test]
fn a_worker_that_tells_the_backend_that_the_host_is_down_is_stopped_when_the_host_is_seen_up() {
    let mut world = on_nova(cut_off_plan(), 1, manual());
    world.fence().unwrap();
    world.work(0);
    world.work(1);
    let down = sent(&world, StepKind::MarkDown);
    let down = world.deliver(down, "worker-2").unwrap();
    super::comes_back(&mut world);
    world.pass(4_000);
    assert!(!world.command(down));
    assert!(!world.cloud.forced_down);
}
