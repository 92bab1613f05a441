//! What a fence has taken from the host, or may have taken.

use ringfence_core::*;
use ringfence_world::Manner;
use ringfence_world::World;
use ringfence_world::plans::*;

use super::super::{comes_back, lost, old_boot, reboots};

#[test]
fn a_method_that_was_edited_between_two_fences_is_given_back_in_both_forms() {
    let mut world = lost(plan(vec![vec![task(FencingKind::StorageFence, &[&["ceph"]])]]));
    world.fence().unwrap();
    world.work(0);
    world.cancel().unwrap();
    let edited = &mut world.plan.stages[0].tasks[0].levels[0][0];
    edited
        .parameters
        .insert("device".to_owned(), "another".to_owned());
    world.fence().unwrap();
    world.work(1);
    assert_eq!(world.state.host.applied.fencing.len(), 2);
    world.cancel().unwrap();
    world.pass(15_000);
    reboots(&mut world);
    world.rejoin(false).unwrap();
    let devices: Vec<_> = world.sent[2..]
        .iter()
        .map(|d| d.job.method().unwrap().parameters["device"].as_str())
        .collect();
    assert_eq!(devices, ["ceph", "another"]);
    world.work(2);
    assert!(
        !world.gates().schedule.allowed,
        "one of the two cuts still stands"
    );
    world.work(3);
    assert!(world.state.host.applied.fencing.is_empty());
}

#[test]
fn a_host_from_which_nothing_was_taken_is_not_rejoined() {
    let mut world = lost(power_plan());
    assert_eq!(world.rejoin(false), Ok(Reply::AlreadySo));
    world.fence().unwrap();
    assert_eq!(world.rejoin(false).unwrap_err().code(), "operation.live");
}

#[test]
fn a_device_that_refused_has_taken_nothing() {
    let mut world = lost(cut_off_plan());
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    world.fence().unwrap();
    world.work_off();
    let standing: Vec<_> = world.state.host.applied.fencing.iter().map(|s| s.kind).collect();
    assert_eq!(standing, [FencingKind::NetworkFence]);
}

#[test]
fn a_refusal_after_an_attempt_with_an_unknown_outcome_proves_nothing() {
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    world.deliver(0, "worker-1").unwrap();
    world.pass(11_000);
    world.site.manners.insert("ceph".to_owned(), Manner::Refuses);
    let again = world
        .sent
        .iter()
        .rposition(|d| d.job.kind() == FencingKind::StorageFence)
        .unwrap();
    world.work(again);
    assert_eq!(
        world.state.host.applied.fencing.len(),
        1,
        "the first attempt may have cut the host off"
    );
}

#[test]
fn a_rejoin_does_not_wait_for_tasks_that_the_fence_still_tries() {
    let mut world = lost(plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::StorageFence, &[&["ceph"]]),
    ]]));
    world.fence().unwrap();
    world.work(0);
    let storage = world.deliver(1, "worker-1").unwrap();
    world.take_log();
    world.rejoin(false).unwrap();
    world.work(2);
    world.pass(5_000);
    comes_back(&mut world);
    world.expect(&[
        "0.0 operation.succeeded: FENCED, proven by power.off",
        "0.0 operation.started rejoin 2",
        "0.0 send 1 power.on bmc",
        "0.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 2",
        "5.0 host.failure_state UP",
    ]);
    world.pass(14_000);
    assert!(
        world.command(storage),
        "the old worker's attempt is still under way"
    );
    world.pass(28_000);
    // It has cut off a boot that had begun since.
    world.expect(&[]);
    reboots(&mut world);
    world.work_off();
    world.expect(&[
        "52.0 send 2 storage.unfence ceph",
        "52.0 host.unfenced 2",
        "52.0 operation.succeeded: the host was taken back",
    ]);
    assert_eq!(world.violation, None);
}

/// A plan by power and storage.
fn off_and_cut_plan() -> FrozenPlan {
    plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::StorageFence, &[&["ceph"]]),
    ]])
}

/// The host boots and is heard, without the date of its boot.
fn boots_undated(world: &mut World) {
    world.pass(5_000);
    world.site.link("monitor", true);
    world.told_boot = world.site.boot;
    world.told_alive_at = world.real;
    let boot = Boot {
        id: Some(format!("boot-{}", world.site.boot)),
        booted_at: None,
    };
    world.say("monitor", FailureState::Up, 0, Some(boot)).unwrap();
}

#[test]
fn a_boot_after_a_confirmed_cut_is_newer_despite_a_late_repeated_command() {
    let mut world = lost(off_and_cut_plan());
    world.fence().unwrap();
    world.work(0);
    // This worker is killed, and the result of its command is unknown.
    world.deliver(1, "worker-1").unwrap();
    world.pass(11_000);
    world.work(2);
    world.pass(1);
    world.rejoin(false).unwrap();
    world.work(3);
    world.take_log();
    boots_undated(&mut world);
    // Until then the killed worker's command may take effect.
    world.pass(16_000);
    world.work_off();
    world.expect(&[
        "16.0 host.failure_state UP",
        "32.0 send 2 storage.unfence ceph",
        "32.0 note fence.proof_ended: a worker was allowed to carry out a storage.unfence of generation 2",
        "32.0 host.unfenced 2",
        "32.0 operation.succeeded: the host was taken back",
    ]);
}

#[test]
fn a_cut_confirmed_in_an_earlier_fence_may_be_taken_late_in_this_one() {
    let mut world = lost(off_and_cut_plan());
    world.fence().unwrap();
    world.work_off();
    world.pass(1);
    world.rejoin(false).unwrap();
    world.work(2);
    world.pass(15_000);
    comes_back(&mut world);
    // The storage is released, and the result is lost.
    let back = world.deliver(world.sent.len() - 1, "worker-1").unwrap();
    world.command(back);
    world.cancel().unwrap();
    world.pass(60_000);
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    let [off, cut] = [world.sent.len() - 2, world.sent.len() - 1];
    world.work(off);
    world.site.manners.insert("ceph".to_owned(), Manner::Slow(12_000));
    let late = world.deliver(cut, "worker-1").unwrap();
    world.command(late);
    world.pass(1);
    world.rejoin(false).unwrap();
    world.work(world.sent.len() - 1);
    boots_undated(&mut world);
    world.take_log();
    world.pass(60_000);
    assert_eq!(old_boot(&world), Some(OldBoot::CutOff));
    world.expect(&[]);
}
