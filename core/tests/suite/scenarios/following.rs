//! Moves that another worker may have begun, and a platform that does not answer.

use ringfence_core::*;

use super::on_nova::{evacuating, fenced, manual};
use ringfence_world::World;

/// A world whose only workload's move has ended with this report.
fn with_a_move_that_ends(report: MoveReport) -> World {
    let mut world = evacuating(1, manual());
    let job = world.deliver(4, "worker-1").unwrap();
    let at = world.finish(job).unwrap();
    let result = &mut world.results[at];
    (result.outcome, result.observation) = (Outcome::Unknown, None);
    result.finding = Some(Finding::Move(report));
    world.deliver_result(at);
    world
}

/// The messages about the only workload, in order: `true` for one that may only look.
fn moves(world: &World) -> Vec<bool> {
    let steps = world.sent.iter().filter_map(|sent| match &sent.job {
        Job::Step {
            step: WorkloadStep::Move(step),
            ..
        } => Some(step.only_look),
        Job::Step { .. } | Job::Fencing { .. } => None,
    });
    steps.collect()
}

fn is_moved(world: &World) -> bool {
    world
        .log
        .iter()
        .any(|line| line.ends_with("operation.succeeded: 1 of 1 workloads moved"))
}

/// Workers carry out every message at once.
fn wait(world: &mut World, seconds: u32) {
    for _ in 0..seconds {
        world.work_off();
        world.pass(1_000);
    }
    world.work_off();
}

#[test]
fn a_move_without_an_answer_is_only_looked_at_before_its_deadline() {
    let mut world = with_a_move_that_ends(MoveReport {
        unanswered: true,
        ..MoveReport::default()
    });
    let asked = moves(&world).iter().filter(|only_look| !**only_look).count();
    assert_eq!(asked, 1);
    for _ in 0..23 {
        world.work_off();
        assert!(!is_moved(&world));
        world.pass(5_000);
    }
    let asked = |world: &World| moves(world).iter().filter(|only_look| !**only_look).count();
    assert_eq!(asked(&world), 1, "a second request would destroy the first move");
    assert!(moves(&world).len() > 20);
    world.work_off();
    world.pass(5_000);
    world.work_off();
    world.pass(5_000);
    world.work_off();
    assert_eq!(asked(&world), 2);
    assert!(is_moved(&world));
}

#[test]
fn a_dead_workers_move_is_found_as_soon_as_its_lease_has_run_out() {
    let policy = EvacuationPolicy {
        retries: 0,
        ..manual()
    };
    let mut world = evacuating(1, policy);
    let job = world.deliver(4, "worker-1").unwrap();
    assert!(world.command(job), "the worker is killed before it can report");
    world.pass(9_999);
    assert_eq!(moves(&world), [false]);
    world.pass(1);
    assert_eq!(moves(&world), [false, true]);
    world.work_off();
    assert!(is_moved(&world));
    assert_eq!(world.cloud.started.len(), 1);
}

#[test]
fn a_look_that_finds_nothing_is_no_try_and_a_look_of_a_dead_worker_is_repeated() {
    let policy = EvacuationPolicy {
        retries: 1,
        timeout_s: 60,
        ..manual()
    };
    let mut world = evacuating(1, policy);
    world.deliver(4, "worker-1").unwrap();
    world.pass(10_000);
    world
        .deliver(5, "worker-2")
        .expect("the next message is a look, whose worker dies too");
    world.pass(10_000);
    assert_eq!(moves(&world), [false, true], "the lease has run out");
    world.pass(5_000);
    assert_eq!(moves(&world), [false, true, true]);
    for _ in 0..20 {
        world.work_off();
        world.pass(5_000);
    }
    world.work_off();
    let asked = moves(&world).iter().filter(|only_look| !**only_look).count();
    assert_eq!(asked, 2, "{:?}", moves(&world));
    assert!(is_moved(&world));
}

#[test]
fn a_platform_that_is_away_costs_no_try_and_the_evacuation_continues_when_it_returns() {
    let policy = EvacuationPolicy {
        retries: 0,
        timeout_s: 10,
        ..manual()
    };
    let mut world = fenced(1, policy);
    world.evacuate().unwrap();
    world.cloud.is_away = true;
    wait(&mut world, 640);
    assert_eq!(
        world.state.operation.as_ref().unwrap().status,
        OperationStatus::Running,
        "{:#?}",
        world.log
    );
    let asked = world.sent.len();
    assert!(asked < 40, "{asked} questions: the pauses do not grow");
    world.cloud.is_away = false;
    wait(&mut world, 33);
    assert!(is_moved(&world), "{:#?}", world.log);
}

#[test]
fn a_platform_that_is_just_back_may_take_no_host_for_up_which_costs_no_try() {
    let policy = EvacuationPolicy {
        retries: 0,
        ..manual()
    };
    let mut world = fenced(1, policy);
    let open = std::mem::take(&mut world.cloud.open);
    world.evacuate().unwrap();
    world.cloud.is_away = true;
    wait(&mut world, 20);
    world.cloud.is_away = false;
    wait(&mut world, 20);
    assert!(!is_moved(&world), "{:#?}", world.log);
    world.cloud.open = open;
    wait(&mut world, 60);
    assert!(is_moved(&world), "{:#?}", world.log);
}

/// A platform that asks Ringfence refuses the move.
#[test]
fn a_move_that_meets_a_closed_gate_costs_no_try() {
    for is_open_again in [false, true] {
        let policy = EvacuationPolicy {
            retries: 0,
            ..manual()
        };
        let mut world = evacuating(1, policy);
        let job = world.deliver(4, "worker-1").unwrap();
        world.pass(1_000);
        world.see(FailureState::Unknown).unwrap();
        let at = world.finish(job).unwrap();
        let result = &world.results[at];
        assert_eq!(result.outcome, Outcome::Unknown, "{result:?}");
        if is_open_again {
            world.see(FailureState::Unreachable).unwrap();
        }
        world.deliver_result(at);
        wait(&mut world, 10);
        world.see(FailureState::Unreachable).unwrap();
        wait(&mut world, 10);
        assert!(is_moved(&world), "{is_open_again}: {:#?}", world.log);
    }
}

#[test]
fn a_platform_that_is_back_for_a_minute_and_has_no_room_is_full() {
    let mut world = fenced(1, manual());
    world.cloud.open.clear();
    world.evacuate().unwrap();
    world.cloud.is_away = true;
    wait(&mut world, 20);
    world.cloud.is_away = false;
    wait(&mut world, 180);
    let live = world.state.operation.as_ref().unwrap();
    assert_eq!(live.status, OperationStatus::NeedsOperator, "{:#?}", world.log);
}

#[test]
fn a_platform_that_stays_away_for_an_hour_asks_a_person() {
    let mut world = fenced(1, manual());
    world.evacuate().unwrap();
    world.cloud.is_away = true;
    wait(&mut world, 3_700);
    let live = world.state.operation.as_ref().unwrap();
    assert_eq!(live.status, OperationStatus::NeedsOperator);
    assert!(
        live.detail.contains("workloads.mark-down failed"),
        "{}",
        live.detail
    );
}

#[test]
fn the_next_try_does_not_wait_for_a_move_to_a_dead_host() {
    let mut world = with_a_move_that_ends(MoveReport {
        given_up: Some("7".to_owned()),
        ..MoveReport::default()
    });
    let given_up = |world: &World, at: usize| match &world.sent[at].job {
        Job::Step {
            step: WorkloadStep::Move(step),
            ..
        } => step.given_up.clone(),
        other => panic!("not a move: {other:?}"),
    };
    assert_eq!(given_up(&world, 4), None);
    world.pass(1_000);
    assert_eq!(given_up(&world, 5).as_deref(), Some("7"));
}

#[test]
fn a_workload_that_ran_and_arrives_stopped_is_told_by_the_operation() {
    let mut world = evacuating(1, manual());
    let job = world.deliver(4, "worker-1").unwrap();
    let at = world.finish(job).unwrap();
    world.results[at].finding = Some(Finding::Move(MoveReport {
        to: Some("h2".to_owned()),
        state_after: Some(WorkloadState::Stopped),
        ..MoveReport::default()
    }));
    world.deliver_result(at);
    wait(&mut world, 5);
    let told = "operation.succeeded: 1 of 1 workloads moved, 1 that ran do not run where they are now";
    assert!(
        world.log.iter().any(|line| line.ends_with(told)),
        "{:?}",
        world.log
    );
}
