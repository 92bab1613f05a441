//! Power that is given back after a fence that went to a second level.

use ringfence_core::*;

use super::on_nova::{manual, on_nova};
use ringfence_world::plans::*;
use ringfence_world::{Manner, World};

/// The power supply is switched off, because the BMC does not answer, and then switched on again.
fn two_levels(controller: Manner) -> World {
    let times = MethodTimes {
        attempt_timeout_s: 5,
        timeout_s: 20,
        retries: 2,
        ..MethodTimes::default()
    };
    let off = task_with(FencingKind::PowerOff, &[&["bmc"], &["pdu"]], times);
    let mut world = World::new(
        plan(vec![vec![off], vec![task(FencingKind::PowerOn, &[])]]),
        SegmentPolicy {
            settle_s: 0,
            ..SegmentPolicy::default()
        },
    );
    world.site.manners.insert("bmc".to_owned(), controller);
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    for _ in 0..240 {
        world.work_off();
        world.pass(1_000);
        if world.is_fenced() && controller != Manner::Silent {
            // This worker reads only once: from here on the slow BMC shows its state at once.
            world.site.manners.insert("bmc".to_owned(), Manner::Honest);
        }
    }
    world
}

fn told(world: &World, what: &str) -> Vec<String> {
    world
        .log
        .iter()
        .filter(|line| line.contains(what))
        .cloned()
        .collect()
}

#[test]
fn a_bmc_that_may_have_switched_off_late_is_switched_on_as_well() {
    // The BMC carries out the command after its worker has stopped looking.
    let world = two_levels(Manner::Slow(4_000));
    assert!(world.is_fenced());
    assert!(world.site.is_powered(), "{:#?}", world.log);
    assert_eq!(told(&world, "host.left_off"), Vec::<String>::new());
    assert!(
        world.state.host.applied.fencing.is_empty(),
        "{:#?}",
        world.state.host.applied
    );
}

#[test]
fn a_bmc_that_stays_silent_may_leave_the_host_off_which_is_reported() {
    let world = two_levels(Manner::Silent);
    assert!(world.is_fenced());
    let left_off = told(&world, "host.left_off");
    assert_eq!(left_off.len(), 1, "{:#?}", world.log);
    assert!(left_off[0].contains("bmc: unknown"), "{left_off:?}");
    let end = told(&world, "operation.succeeded");
    assert!(
        end[0].contains("FENCED, proven by power.off; the host may stay off: power.on failed"),
        "{end:?}"
    );
    let left: Vec<&str> = world
        .state
        .host
        .applied
        .fencing
        .iter()
        .map(|one| one.method.name.as_str())
        .collect();
    assert_eq!(left, ["bmc"], "the next rejoin tries the BMC again");
}

#[test]
fn a_bmc_that_has_refused_the_off_gets_no_on() {
    let world = two_levels(Manner::Refuses);
    assert!(world.site.is_powered());
    let on: Vec<String> = told(&world, "power.on")
        .into_iter()
        .filter(|line| line.contains("send"))
        .collect();
    assert_eq!(on.len(), 1, "{on:?}");
}

#[test]
fn an_evacuation_takes_over_each_device_to_switch_on_once() {
    let times = MethodTimes {
        attempt_timeout_s: 5,
        timeout_s: 20,
        retries: 2,
        ..MethodTimes::default()
    };
    let off = task_with(FencingKind::PowerOff, &[&["bmc"], &["pdu"]], times);
    let two_levels = plan(vec![vec![off], vec![task(FencingKind::PowerOn, &[])]]);
    let mut world = on_nova(two_levels, 1, manual());
    world.site.manners.insert("bmc".to_owned(), Manner::Silent);
    world.fence().unwrap();
    let is_on_sent = |world: &World| {
        let mut sent = world.sent.iter();
        sent.any(|sent| sent.job.kind() == FencingKind::PowerOn)
    };
    for _ in 0..240 {
        if is_on_sent(&world) {
            break;
        }
        world.work_off();
        world.pass(1_000);
    }
    assert!(is_on_sent(&world), "no worker has claimed the attempt");
    world.evacuate().unwrap();
    let live = world.state.operation.as_ref().unwrap();
    assert_eq!(live.kind(), OperationKind::Evacuation);
    let tasks = live.tasks().filter(|task| task.kind() == FencingKind::PowerOn);
    let mut devices: Vec<&str> = tasks
        .flat_map(Task::levels)
        .flatten()
        .map(|one| one.name.as_str())
        .collect();
    devices.sort_unstable();
    assert_eq!(devices, ["bmc", "pdu"]);
}
