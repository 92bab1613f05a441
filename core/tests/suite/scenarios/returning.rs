//! The rejoin of a host whose workloads are in a cloud.

use ringfence_core::*;

use super::comes_back;
use super::on_nova::{evacuating, fenced, manual, on_nova};
use super::weaker::in_cluster;
use ringfence_world::plans::*;

#[test]
fn the_way_back_waits_for_a_worker_that_may_still_be_starting_a_workload_elsewhere() {
    let mut world = evacuating(1, manual());
    let job = world.deliver(4, "worker-1").unwrap();
    world.cancel().unwrap();
    world.take_log();
    world.rejoin(false).unwrap();
    world.expect(&["0.0 operation.started rejoin 2"]);
    assert!(world.command(job));
    world.complete(job);
    world.expect_last("0.0 send 1 power.on bmc");
}

#[test]
fn a_host_is_taken_back_in_its_backends_order() {
    let mut world = fenced(1, manual());
    world.evacuate().unwrap();
    world.work_off();
    world.take_log();
    world.rejoin(false).unwrap();
    world.work_off();
    world.pass(6_000);
    comes_back(&mut world);
    world.work_off();
    world.expect(&[
        "0.0 operation.started rejoin 2",
        "0.0 send 1 power.on bmc",
        "0.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 2",
        "6.0 host.failure_state UP",
        "6.0 send 2 workloads.clean-up nova:east",
        "6.0 send 3 workloads.mark-up nova:east",
        "6.0 host.unfenced 2",
        "6.0 send 4 workloads.start nova:east",
        "6.0 operation.succeeded: the host was taken back",
    ]);
    assert!(!world.cloud.forced_down);
}

/// A node of a cluster whose fence has isolated it, and waits before it takes the power.
fn isolated() -> ringfence_world::World {
    let mut world = in_cluster(vec![task(FencingKind::PowerOff, &[&["bmc"]])], 0);
    world.plan.stages[0].delay_s = 60;
    world.fence().unwrap();
    world.work_off();
    assert!(world.state.host.applied.marked_down_by.is_some());
    world.take_log();
    world
}

#[test]
fn a_node_that_is_back_when_it_is_isolated_alone_is_let_in_again_without_being_asked() {
    let mut world = isolated();
    assert!(!world.state.policy.auto_rejoin);
    world.pass(6_000);
    comes_back(&mut world);
    world.work_off();
    world.expect(&[
        "6.0 host.failure_state UP",
        "6.0 operation.cancelled: the host was seen UP before anything was done to it",
        "6.0 operation.started rejoin 2",
        "6.0 send 1 workloads.clean-up kubernetes:east",
        "6.0 send 2 workloads.mark-up kubernetes:east",
        "6.0 operation.succeeded: the host was taken back",
    ]);
    assert!(world.state.host.applied.is_empty());
    assert!(world.gates().schedule.allowed);
}

#[test]
fn a_node_whose_fence_was_cancelled_when_it_was_isolated_alone_is_let_in_when_it_is_back() {
    let mut world = isolated();
    world.cancel().unwrap();
    assert!(!world.gates().schedule.allowed);
    world.pass(60_000);
    assert_eq!(world.sent.len(), 1, "a silent node is left as it is");
    comes_back(&mut world);
    world.work_off();
    assert!(world.state.host.applied.is_empty());
    assert!(world.gates().schedule.allowed);
}

#[test]
fn a_host_whose_workloads_cannot_be_started_is_taken_back_and_a_person_is_asked() {
    let mut world = fenced(1, manual());
    world.rejoin(false).unwrap();
    world.work_off();
    world.pass(6_000);
    comes_back(&mut world);
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
    assert!(world.gates().schedule.allowed, "the host is UNFENCED and UP");
    world.cloud.is_away = false;
    world.retry().unwrap();
    world.work_off();
    assert!(world.state.operation.is_none());
}

#[test]
fn a_move_has_the_volumes_and_ports_that_the_workloads_own_cloud_cut_off() {
    let by = |kind: FencingKind, driver: &str, cloud: &str, host: &str| {
        let mut task = task(kind, &[&[driver]]);
        task.levels[0][0].driver = driver.to_owned();
        task.levels[0][0].service_of = Some(cloud.to_owned());
        task.levels[0][0]
            .parameters
            .insert("host".to_owned(), host.to_owned());
        task
    };
    let cut_off = plan(vec![vec![
        by(FencingKind::StorageFence, "cinder", "west", "compute1"),
        by(FencingKind::NetworkFence, "neutron", "east", "compute1.rack"),
        task(FencingKind::PowerOff, &[&["bmc"]]),
    ]]);
    let mut world = on_nova(cut_off, 1, manual());
    world.fence().unwrap();
    world.work_off();
    world.evacuate().unwrap();
    world.work_off();
    let sent = world.sent.iter().find(|sent| sent.job.kind() == StepKind::Move);
    let Job::Step {
        step: WorkloadStep::Move(step),
        at,
        ..
    } = &sent.unwrap().job
    else {
        panic!("not a move");
    };
    assert_eq!(at.host, "compute1");
    let [by] = &step.cut_off_by[..] else {
        panic!("unexpected devices: {:?}", step.cut_off_by);
    };
    assert_eq!(by.driver, "neutron");
    assert_eq!(
        by.parameters["host"], "compute1.rack",
        "the host's name in Neutron"
    );
}

#[test]
fn a_host_is_marked_up_before_storage_and_network_are_released() {
    let both = plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::StorageFence, &[&["ceph"]]),
    ]]);
    let mut world = on_nova(both, 0, manual());
    world.fence().unwrap();
    world.work_off();
    world.pass(2_000);
    world.rejoin(false).unwrap();
    world.work_off();
    world.pass(6_000);
    comes_back(&mut world);
    world.work_off();
    let sent: Vec<TaskKind> = world.sent.iter().map(|sent| sent.job.kind()).collect();
    let at = |kind: TaskKind| sent.iter().position(|sent| *sent == kind).unwrap();
    let storage = at(FencingKind::StorageUnfence.into());
    assert!(at(StepKind::MarkUp.into()) < storage, "{sent:?}");
    assert!(storage < at(StepKind::Start.into()), "{sent:?}");
}
