//! Which boot of the host may come back.

use ringfence_core::*;
use ringfence_world::Manner;
use ringfence_world::World;
use ringfence_world::plans::*;

use super::super::{boot, comes_back, lost, lost_under, old_boot, reboots};
use super::cut_off;

#[test]
fn a_heartbeat_from_before_the_fence_does_not_take_the_host_back() {
    let mut world = lost(power_plan());
    world.fence().unwrap();
    world.pass(5_000);
    world.work(0);
    world.say("slow monitor", FailureState::Up, 2_000, None).unwrap();
    world.rejoin(false).unwrap();
    world.work(1);
    world.pass(6_000);
    assert!(world.is_fenced());
    comes_back(&mut world);
    assert!(!world.is_fenced());
}

#[test]
fn a_heartbeat_from_before_the_confirmation_does_not_take_the_host_back() {
    let mut world = lost(plan(Vec::new()));
    world.fence().unwrap();
    world.pass(5_000);
    world.site.plug(false);
    world.pass(5_000);
    world.confirm(1, person("anna"), false).unwrap();
    world.rejoin(false).unwrap();
    world.say("slow monitor", FailureState::Up, 9_000, None).unwrap();
    assert_eq!(world.state.host.failure_state, FailureState::Up);
    assert!(
        world.is_fenced(),
        "the host was heard a second after the fence began"
    );
    assert_eq!(world.violation, None);
}

#[test]
fn an_off_that_does_not_suffice_shows_no_newer_boot() {
    let mut not_alone = plan(vec![
        vec![
            task(FencingKind::StorageFence, &[&["ceph"]]),
            task(FencingKind::NetworkFence, &[&["switch"]]),
        ],
        vec![task(FencingKind::PowerOff, &[&["bmc"]])],
    ]);
    not_alone.sufficient_sets = vec![[ProofKind::StorageFence, ProofKind::NetworkFence].into()];
    let mut world = lost(not_alone);
    // The BMC reads off, and the host runs on.
    world.site.manners.insert("bmc".to_owned(), Manner::Ghost);
    world.fence().unwrap();
    world.work(0);
    world.work(1);
    world.pass(5_000);
    world.work(2);
    world.rejoin(false).unwrap();
    world.work_off();
    world.pass(30_000);
    world.see(FailureState::Up).unwrap();
    world.work_off();
    assert_eq!(old_boot(&world), Some(OldBoot::CutOff));
    assert_eq!(world.violation, None);
}

#[test]
fn a_rejoin_after_a_fence_by_storage_and_network_needs_a_newer_boot() {
    let mut world = cut_off();
    world.pass(10_000);
    comes_back(&mut world);
    world.rejoin(false).unwrap();
    world.pass(20_000);
    world.expect(&["10.0 host.failure_state UP", "10.0 operation.started rejoin 2"]);
    reboots(&mut world);
    world.work_off();
    world.expect(&[
        "35.0 send 1 storage.unfence ceph",
        "35.0 note fence.proof_ended: a worker was allowed to carry out a storage.unfence of generation 2",
        "35.0 send 2 network.unfence switch",
        "35.0 note fence.proof_ended: a worker was allowed to carry out a network.unfence of generation 2",
        "35.0 host.unfenced 2",
        "35.0 operation.succeeded: the host was taken back",
    ]);
    assert!(world.gates().schedule.allowed);
    assert_eq!(world.violation, None);
}

#[test]
fn a_rejoin_without_a_newer_boot_waits_for_a_persons_confirmation() {
    let mut world = cut_off();
    world.pass(1_000);
    comes_back(&mut world);
    world.rejoin(false).unwrap();
    world.pass(600_000);
    world.expect_last("601.0 operation.needs_operator: the host was cut off from storage or network and has shown no boot that began after \
         that");
    let id = world.live_id();
    assert_eq!(world.rejoin(true), Ok(Reply::Joined(id)));
    world.retry().unwrap();
    world.work_off();
    assert!(!world.is_fenced());
}

fn is_given_back(world: &World) -> bool {
    world
        .sent
        .iter()
        .any(|sent| sent.job.kind() == FencingKind::StorageUnfence)
}

#[test]
fn a_boot_that_began_before_the_fence_or_close_to_it_is_not_newer() {
    let mut world = cut_off();
    world.pass(20_000);
    let fenced_at = world.state.host.fence.as_ref().unwrap().at;
    let up = |world: &mut World, booted_at: Timestamp| {
        let said = world.say("monitor", FailureState::Up, 0, Some(boot("b", booted_at)));
        said.unwrap();
    };
    up(&mut world, fenced_at - chrono::TimeDelta::minutes(5));
    world.rejoin(false).unwrap();
    assert!(!is_given_back(&world));
    let ahead = world.now + chrono::TimeDelta::hours(1);
    up(&mut world, ahead);
    assert!(!is_given_back(&world), "the host's clock is wrong");
    up(&mut world, fenced_at + BOOT_CLOCK_MARGIN);
    assert!(
        !is_given_back(&world),
        "the host's clock may be behind by this much"
    );
    up(
        &mut world,
        fenced_at + BOOT_CLOCK_MARGIN + chrono::TimeDelta::milliseconds(1),
    );
    assert!(is_given_back(&world));
}

#[test]
fn the_first_undated_boot_after_the_fence_may_be_the_one_that_was_cut_off() {
    let mut world = cut_off();
    world.pass(1_000);
    world.see_boot(FailureState::Up, Some("a")).unwrap();
    world.rejoin(false).unwrap();
    world.pass(10_000);
    world.see_boot(FailureState::Up, Some("a")).unwrap();
    assert!(!is_given_back(&world));
    world.site.crash(true);
    world.pass(10_000);
    world.see_boot(FailureState::Up, Some("b")).unwrap();
    assert!(is_given_back(&world), "one boot has replaced another since");
    assert_eq!(world.violation, None);
}

#[test]
fn a_source_with_a_fast_clock_may_have_seen_a_boot_that_was_replaced_before_the_fence() {
    let mut world = World::new(cut_off_plan(), policy());
    world.see(FailureState::Up).unwrap();
    world.pass(60_000);
    world.see(FailureState::Unreachable).unwrap();
    // The other source sees this boot now, by a clock that is 2.5 s ahead.
    let seen_at = world.now + chrono::TimeDelta::milliseconds(2_500);
    world.pass(1_000);
    world.site.crash(true);
    world.pass(1_000);
    // The boot that is cut off has started.
    world.fence().unwrap();
    world.work_off();
    world.pass(1_000);
    let age_ms = (world.now - seen_at).num_milliseconds();
    let first = Boot {
        id: Some("a".to_owned()),
        booted_at: None,
    };
    world.say("ahead", FailureState::Up, age_ms, Some(first)).unwrap();
    world.pass(20_000);
    world.site.link("ahead", true);
    world.told_boot = world.site.boot;
    world.told_alive_at = world.real;
    let second = Boot {
        id: Some("b".to_owned()),
        booted_at: None,
    };
    world.say("ahead", FailureState::Up, 0, Some(second)).unwrap();
    assert_eq!(old_boot(&world), Some(OldBoot::CutOff));
    assert_eq!(world.violation, None);
}

#[test]
fn a_rejoin_waits_for_the_watchdog_unless_the_host_has_a_new_boot() {
    let policy = SegmentPolicy {
        self_fencing_timeout_s: Some(120),
        ..ringfence_world::plans::policy()
    };
    let fenced = || {
        let mut world = lost_under(power_plan(), policy.clone());
        world.fence().unwrap();
        world.work(0);
        world.take_log();
        world.pass(15_000);
        world
    };
    let mut world = fenced();
    world.rejoin(false).unwrap();
    world.work(1);
    world.pass(5_000);
    world.see_boot(FailureState::Up, None).unwrap();
    world.pass(200_000);
    world.expect(&[
        "15.0 operation.started rejoin 2",
        "15.0 send 1 power.on bmc",
        "15.0 note fence.proof_ended: a worker was allowed to carry out a power.on of generation 2",
        "20.0 host.failure_state UP",
        "120.0 host.unfenced 2",
        "120.0 operation.succeeded: the host was taken back",
    ]);
    let mut world = fenced();
    world.rejoin(false).unwrap();
    world.work(1);
    world.pass(5_000);
    comes_back(&mut world);
    assert!(!world.is_fenced());
}
