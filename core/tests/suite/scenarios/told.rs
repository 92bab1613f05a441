//! The detail of an operation while it waits.

use ringfence_core::*;

use super::on_nova::{fenced, manual};
use super::{comes_back, lost, lost_under};
use ringfence_world::plans::*;
use ringfence_world::{Manner, World};

#[track_caller]
fn told(world: &World) -> String {
    world.state.operation.as_ref().unwrap().told()
}

#[test]
fn the_detail_names_a_failed_power_on_as_the_reason() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.work(0);
    world.pass(60_000);
    world.site.manners.insert("bmc".to_owned(), Manner::Refuses);
    world.rejoin(false).unwrap();
    world.work_off();
    let why = "power.on failed: every level failed; last bmc: refused; the host is UNREACHABLE, not UP";
    assert_eq!(told(&world), format!("waiting: {why}"));
    world.pass(601_000);
    let operation = world.state.operation.as_ref().unwrap();
    assert_eq!(operation.status, OperationStatus::NeedsOperator);
    assert_eq!(operation.told(), why);
}

#[test]
fn the_detail_names_the_task_under_way_and_its_worker() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    assert_eq!(
        told(&world),
        "waiting: power.off by bmc, attempt 1: no worker has taken it yet"
    );
    world.deliver(0, "worker-1").unwrap();
    assert_eq!(
        told(&world),
        "waiting: power.off by bmc, attempt 1: worker-1 carries it out"
    );
}

#[test]
fn the_detail_names_a_workload_step_instead_of_an_earlier_wait() {
    let mut world = fenced(2, manual());
    world.pass(60_000);
    world.rejoin(false).unwrap();
    world.work_off();
    assert_eq!(told(&world), "waiting: the host is UNREACHABLE, not UP");
    world.pass(60_000);
    comes_back(&mut world);
    assert_eq!(
        told(&world),
        "waiting: workloads.clean-up by nova:east, attempt 2: no worker has taken it yet"
    );
}

#[test]
fn the_detail_names_the_hosts_watchdog_and_a_delay_of_the_plan() {
    let policy = SegmentPolicy {
        self_fencing_timeout_s: Some(120),
        ..ringfence_world::plans::policy()
    };
    let mut world = lost_under(power_plan(), policy);
    world.fence().unwrap();
    world.work(0);
    world.pass(15_000);
    world.rejoin(false).unwrap();
    world.work_off();
    assert!(
        told(&world).contains("own watchdog may still strike, for 120 s"),
        "{}",
        told(&world)
    );

    let mut delayed = power_plan();
    delayed.stages[0].delay_s = 30;
    let mut world = lost(delayed);
    world.fence().unwrap();
    assert!(
        told(&world).contains("the plan delays power.off by 30 s from "),
        "{}",
        told(&world)
    );
}
