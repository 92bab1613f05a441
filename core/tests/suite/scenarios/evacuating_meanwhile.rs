//! Changes of a host during its evacuation: power, silence, devices that hang, and its return.

use ringfence_core::*;

use super::on_nova::{automatic, evacuating, manual, on_nova};
use super::{comes_back, old_boot};
use ringfence_world::plans::*;
use ringfence_world::{Manner, World};

/// A host with power would start its guests again.
#[test]
fn a_host_gets_power_back_once_its_workloads_have_moved() {
    let mut world = on_nova(reboot_plan(), 1, automatic());
    world.fence().unwrap();
    world.work_off();
    world.pass(1);
    world.work_off();
    world.expect(&[
        "0.0 operation.started fence 1",
        "0.0 send 1 power.off bmc",
        "0.0 operation.proof power.off",
        "0.0 host.fenced 1",
        "0.0 send 2 workloads.mark-down nova:east",
        "0.0 operation.succeeded: FENCED, proven by power.off",
        "0.0 operation.started evacuation 1",
        "0.0 send 1 workloads.mark-down nova:east",
        "0.0 send 2 workloads.list nova:east",
        "0.0 send 3 workloads.move nova:east",
        "0.0 workload.moving web-1",
        "0.0 workload.moved web-1 to compute2",
        "0.0 send 4 workloads.list nova:east",
        "0.0 send 5 power.on bmc",
        "0.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 1",
        "0.0 operation.succeeded: 1 of 1 workloads moved",
    ]);
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
    world.expect_last("0.0 operation.succeeded: 1 of 1 workloads moved");
    assert!(world.site.is_powered());
    assert!(world.cloud.started.iter().all(|start| start.was_safe));
}

/// What is left of the fence goes on beside the evacuation: the end of one part of it is no reason to switch on.
#[test]
fn a_host_gets_no_power_back_when_another_part_of_its_fence_fails_before_its_workloads_have_moved() {
    let off_cut_on = plan(vec![
        vec![
            task(FencingKind::PowerOff, &[&["bmc"]]),
            task(FencingKind::NetworkFence, &[&["switch"]]),
        ],
        vec![task(FencingKind::PowerOn, &[])],
    ]);
    let mut world = on_nova(off_cut_on, 1, automatic());
    world.site.manners.insert("switch".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    world.work(0);
    world.pass(3_000);
    let operation = world.state.operation.as_ref().unwrap();
    assert_eq!(operation.kind(), OperationKind::Evacuation);
    let last = |world: &World| {
        let is_cut = |sent: &Dispatch| sent.job.kind() == FencingKind::NetworkFence;
        world.sent.iter().rposition(is_cut).unwrap()
    };
    for _ in 0..10 {
        if let Ok(job) = world.deliver(last(&world), "worker-1") {
            world.command(job);
            world.complete(job);
        }
        world.pass(1_000);
    }
    let left = &world.state.operation.as_ref().unwrap().stages[0].tasks;
    let left: Vec<_> = left.iter().map(|task| (task.kind(), task.status)).collect();
    assert_eq!(
        left,
        [
            (TaskKind::from(FencingKind::NetworkFence), TaskStatus::Failed),
            (TaskKind::from(FencingKind::PowerOn), TaskStatus::Pending)
        ]
    );
}

#[test]
fn a_host_without_an_evacuation_gets_power_back_within_its_fence() {
    let mut world = on_nova(reboot_plan(), 1, manual());
    world.fence().unwrap();
    world.work_off();
    assert!(world.site.is_powered());
}

#[test]
fn an_evacuation_does_not_wait_for_a_hung_device_and_continues_its_task() {
    let both = plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::StorageFence, &[&["ceph"]]),
        task(FencingKind::NetworkFence, &[&["switch"]]),
    ]]);
    let mut world = on_nova(both, 1, automatic());
    world.fence().unwrap();
    let hung = world.deliver(0, "worker-1").unwrap();
    world.work(1);
    world.work(2);
    world.work_off();
    world.take_log();
    assert_eq!(old_boot(&world), Some(OldBoot::CutOff));
    world.pass(3_000);
    world.work_off();
    world.expect(&[
        "3.0 operation.succeeded: FENCED, proven by storage.fence, network.fence",
        "3.0 operation.started evacuation 1",
        "3.0 send 1 power.off bmc",
        "3.0 send 2 workloads.mark-down nova:east",
        "3.0 operation.proof power.off",
        "3.0 send 3 workloads.list nova:east",
        "3.0 send 4 workloads.move nova:east",
        "3.0 workload.moving web-1",
        "3.0 workload.moved web-1 to compute2",
        "3.0 send 5 workloads.list nova:east",
        "3.0 operation.succeeded: 1 of 1 workloads moved",
    ]);
    assert_eq!(old_boot(&world), None, "it was seen off after all");
    assert!(world.command(hung), "the first attempt is at it still");
}

#[test]
fn a_host_that_comes_back_ends_its_evacuation_and_begun_moves_are_completed() {
    let policy = EvacuationPolicy {
        at_once: 1,
        ..manual()
    };
    let mut world = evacuating(3, policy);
    world.work(4);
    let job = world.deliver(5, "worker-1").unwrap();
    assert!(world.command(job));
    world.take_log();
    world.site.restore_power();
    world.pass(5_000);
    comes_back(&mut world);
    world.complete(job);
    world.expect(&[
        "5.0 note fence.proof_ended: monitor saw the host UP at 2030-01-01T12:00:05Z",
        "5.0 host.failure_state UP",
        "5.0 workload.moved web-2 to compute2",
        "5.0 operation.cancelled: the host is back; 2 of 3 workloads moved",
    ]);
    assert_eq!(world.cloud.on("compute1"), ["web-3"]);
}

#[test]
fn an_evacuation_does_not_begin_while_the_host_is_unknown() {
    let policy = EvacuationPolicy {
        at_once: 1,
        ..manual()
    };
    let mut world = evacuating(2, policy);
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
    world.expect_last("100.0 operation.succeeded: 2 of 2 workloads moved");
}

#[test]
fn a_gate_that_stays_closed_needs_an_operator_at_last() {
    let mut world = evacuating(1, manual());
    world.see(FailureState::Unknown).unwrap();
    world.pass(3_700_000);
    world.expect_last("3600.0 operation.needs_operator: the gate has been closed for 3600 s: the host is UNKNOWN, not UNREACHABLE");
}

#[test]
fn nobody_takes_a_workload_up_while_a_silent_worker_may_still_be_at_it() {
    let mut world = evacuating(1, manual());
    world.deliver(4, "worker-1").unwrap();
    world.take_log();
    let asked = |world: &World| {
        let asks = |sent: &&Dispatch| matches!(&sent.job, Job::Step { step: WorkloadStep::Move(step), .. } if !step.only_look);
        world.sent.iter().filter(asks).count()
    };
    world.pass(60_000);
    assert_eq!(
        asked(&world),
        1,
        "the worker's lease has run out, and its deadline is ahead"
    );
    world.pass(243_000);
    world.work_off();
    assert_eq!(asked(&world), 1, "another worker looks when the deadline is over");
    world.pass(5_000);
    assert_eq!(asked(&world), 2);
    world.work_off();
    assert_eq!(world.cloud.started.len(), 1);
}

#[test]
fn a_second_evacuation_waits_for_the_workers_of_the_first() {
    let mut world = evacuating(1, manual());
    let job = world.deliver(4, "worker-1").unwrap();
    world.cancel().unwrap();
    world.evacuate().unwrap();
    world.work(5);
    world.work(6);
    world.work(7);
    assert_eq!(world.cloud.started.len(), 0, "nothing is moved yet");
    world.complete(job);
    world.pass(5_000);
    world.work_off();
    assert_eq!(world.cloud.started.len(), 1);
}
