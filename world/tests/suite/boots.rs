//! Which boot may get back what was taken from the host.

use chrono::TimeDelta;
use ringfence_core::{Boot, FailureState, FencingKind, MethodTimes, OldBoot, SegmentPolicy};
use ringfence_world::World;
use ringfence_world::plans::{cut_off_plan, plan, policy, power_plan, task, task_with};

use crate::{lost, work};

fn patient() -> SegmentPolicy {
    SegmentPolicy {
        rejoin_wait_s: 3_600,
        ..policy()
    }
}

fn boot(world: &World, id: &str, ago_s: Option<i64>) -> Option<Boot> {
    Some(Boot {
        id: Some(id.to_owned()),
        booted_at: ago_s.map(|ago_s| world.now - TimeDelta::seconds(ago_s)),
    })
}

fn sees(world: &mut World, id: &str, ago_s: Option<i64>) {
    world.site.link("monitor", true);
    let boot = boot(world, id, ago_s);
    world.told_boot = world.site.boot;
    world.told_alive_at = world.real;
    world.say("monitor", FailureState::Up, 0, boot).unwrap();
}

fn gives_storage_back(world: &World) -> bool {
    world
        .sent
        .iter()
        .any(|sent| sent.job.kind() == FencingKind::StorageUnfence)
}

/// A host that is cut off in boot "a", which its monitor has seen before.
fn cut_off() -> World {
    let mut world = World::new(cut_off_plan(), patient());
    sees(&mut world, "a", Some(3_600));
    world.pass(10_000);
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    world.work_off();
    world.pass(20_000);
    world
}

#[test]
fn an_unchanged_boot_after_an_off_shows_that_the_off_did_not_happen() {
    let both = plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::StorageFence, &[&["ceph"]]),
    ]]);
    let mut world = World::new(both, patient());
    sees(&mut world, "a", Some(3_600));
    world.pass(10_000);
    world.see(FailureState::Unreachable).unwrap();
    // The BMC reads off, and the host runs on.
    world
        .site
        .manners
        .insert("bmc".to_owned(), ringfence_world::Manner::Ghost);
    world.is_hearsay = true;
    world.fence().unwrap();
    world.work_off();
    world.pass(60_000);
    sees(&mut world, "a", Some(3_670));
    world.rejoin(false).unwrap();
    world.work_off();
    assert!(!gives_storage_back(&world));
    assert_eq!(world.state.host.old_boot(None), Some(OldBoot::OutlivedItsStop));
    assert!(
        world
            .state
            .operation
            .unwrap()
            .detail
            .contains("may not tell the truth")
    );
}

#[test]
fn an_off_before_the_cut_does_not_replace_a_new_boot() {
    let mut all = plan(vec![
        vec![task(FencingKind::PowerOff, &[&["bmc"]])],
        vec![
            task(FencingKind::StorageFence, &[&["ceph"]]),
            task(FencingKind::NetworkFence, &[&["switch"]]),
        ],
    ]);
    all.sufficient_sets.retain(|set| set.len() > 1);
    let mut world = lost(all, patient());
    world.fence().unwrap();
    work(&mut world);
    // A person switches the host on, before storage and network are cut.
    world.site.restore_power();
    world.pass(10_000);
    world.work_off();
    assert!(world.is_fenced());
    world.pass(10_000);
    sees(&mut world, "b", None);
    world.rejoin(false).unwrap();
    world.work_off();
    assert!(
        !gives_storage_back(&world),
        "the host was cut off during this boot"
    );
    world.site.crash(true);
    world.pass(10_000);
    sees(&mut world, "c", None);
    world.work_off();
    assert!(
        gives_storage_back(&world),
        "the second boot after the fence began after the cut"
    );
    assert_eq!(world.violation, None);
}

#[test]
fn the_first_boot_seen_after_the_fence_may_have_begun_before_it() {
    let mut world = World::new(cut_off_plan(), patient());
    sees(&mut world, "a", Some(3_600));
    world.pass(10_000);
    world.see(FailureState::Unreachable).unwrap();
    // The host crashes and starts again, unseen.
    world.site.crash(true);
    world.pass(30_000);
    world.fence().unwrap();
    world.work_off();
    world.pass(30_000);
    sees(&mut world, "b", None);
    world.rejoin(false).unwrap();
    world.work_off();
    assert!(!gives_storage_back(&world));
    assert_eq!(world.violation, None);
}

#[test]
fn a_dated_boot_is_known_to_be_newer() {
    let mut world = cut_off();
    world.site.crash(true);
    world.pass(60_000);
    sees(&mut world, "b", Some(60));
    world.rejoin(false).unwrap();
    world.work_off();
    assert!(gives_storage_back(&world));
    assert_eq!(world.violation, None);
}

#[test]
fn a_boot_dated_too_close_to_the_fence_is_not_newer() {
    let mut world = cut_off();
    sees(&mut world, "b", Some(13));
    world.rejoin(false).unwrap();
    world.work_off();
    assert!(
        !gives_storage_back(&world),
        "the host's clock may be some seconds off"
    );
}

#[test]
fn a_boot_date_without_an_id_is_not_newer() {
    let mut world = cut_off();
    world.pass(60_000);
    world.site.link("monitor", true);
    let boot = Boot {
        id: None,
        booted_at: Some(world.now - TimeDelta::seconds(5)),
    };
    world.say("monitor", FailureState::Up, 0, Some(boot)).unwrap();
    world.rejoin(false).unwrap();
    world.work_off();
    assert!(
        !gives_storage_back(&world),
        "one boot has two dates if the clock was set"
    );
}

#[test]
fn boots_of_two_sources_are_not_compared() {
    let mut world = cut_off();
    sees(&mut world, "a", None);
    world.pass(1_000);
    world
        .say(
            "platform",
            FailureState::Up,
            0,
            Some(Boot {
                id: Some("node-1".to_owned()),
                booted_at: None,
            }),
        )
        .unwrap();
    world.rejoin(false).unwrap();
    world.work_off();
    assert!(!gives_storage_back(&world));
}

#[test]
fn a_host_that_was_switched_off_after_it_was_seen_up_is_not_taken_back() {
    let policy = SegmentPolicy {
        self_fencing_timeout_s: Some(5),
        rejoin_wait_s: 3_600,
        ..policy()
    };
    let mut world = lost(power_plan(), policy);
    world.fence().unwrap();
    let off = world.deliver(0, "worker-1").unwrap();
    world.stays_silent(10);
    assert!(world.is_fenced(), "the host's watchdog proves the fence");
    // The host is UP before the worker commands its device.
    world.pass(2_000);
    world.see(FailureState::Up).unwrap();
    world.command(off);
    world.pass(500);
    world.complete(off);
    world.rejoin(false).unwrap();
    world.pass(5_000);
    assert!(
        world.is_fenced(),
        "the host was switched off after it was seen UP"
    );
    world.work_off();
    assert!(world.is_fenced(), "the host has power, and was not seen since");
    world.pass(20_000);
    sees(&mut world, "b", None);
    world.work_off();
    assert!(!world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn a_host_switched_on_without_ringfence_gets_its_storage_back_only_with_a_newer_boot() {
    let both = plan(vec![
        vec![task(FencingKind::PowerOff, &[&["bmc"]])],
        vec![task(FencingKind::StorageFence, &[&["ceph"]])],
    ]);
    let mut world = lost(both, patient());
    world.fence().unwrap();
    work(&mut world);
    world.site.restore_power();
    world.pass(5_000);
    work(&mut world);
    world.pass(1_000);
    world.rejoin(false).unwrap();
    world.work_off();
    sees(&mut world, "b", None);
    world.work_off();
    assert!(
        !gives_storage_back(&world),
        "the power was on already: the host may have booted before the cut"
    );
}

#[test]
fn a_host_whose_power_on_fails_is_not_taken_back_for_an_earlier_sighting() {
    let policy = SegmentPolicy {
        self_fencing_timeout_s: Some(5),
        rejoin_wait_s: 3_600,
        ..policy()
    };
    let mut world = lost(power_plan(), policy);
    world.fence().unwrap();
    let off = world.deliver(0, "worker-1").unwrap();
    world.stays_silent(10);
    world.pass(2_000);
    world.see(FailureState::Up).unwrap();
    world.command(off);
    world.complete(off);
    world
        .site
        .manners
        .insert("bmc".to_owned(), ringfence_world::Manner::Refuses);
    world.rejoin(false).unwrap();
    world.work_off();
    world.pass(60_000);
    assert!(world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn an_off_that_the_plan_does_not_trust_does_not_replace_a_new_boot() {
    let mut all = plan(vec![
        vec![
            task(FencingKind::StorageFence, &[&["ceph"]]),
            task(FencingKind::NetworkFence, &[&["switch"]]),
        ],
        vec![task(FencingKind::PowerOff, &[&["bmc"]])],
    ]);
    all.sufficient_sets.retain(|set| set.len() > 1);
    let mut world = lost(all, patient());
    world
        .site
        .manners
        .insert("bmc".to_owned(), ringfence_world::Manner::Ghost);
    world.fence().unwrap();
    world.work_off();
    assert!(world.is_fenced());
    world.pass(20_000);
    sees(&mut world, "a", None);
    world.rejoin(false).unwrap();
    world.work_off();
    assert!(!gives_storage_back(&world), "the host was never off");
}

#[test]
fn a_rejoin_waits_for_a_cut_that_may_still_take_effect() {
    let mut world = World::new(cut_off_plan(), patient());
    world.site.boot_ms = 500;
    world
        .site
        .manners
        .insert("ceph".to_owned(), ringfence_world::Manner::Slow(8_000));
    sees(&mut world, "a", None);
    world.pass(10_000);
    world.see(FailureState::Unreachable).unwrap();
    world.fence().unwrap();
    let cut = world.deliver(0, "worker-1").unwrap();
    world.command(cut);
    world.pass(500);
    world.complete(cut);
    world.cancel().unwrap();
    for id in ["b", "c"] {
        world.site.crash(true);
        world.pass(1_500);
        sees(&mut world, id, None);
    }
    world.rejoin(false).unwrap();
    world.work_off();
    world.pass(30_000);
    sees(&mut world, "c", None);
    world.work_off();
    assert!(
        !gives_storage_back(&world),
        "the cut took effect during this boot"
    );
    assert_eq!(world.violation, None);
}

#[test]
fn an_off_claimed_after_the_cut_replaces_a_new_boot() {
    let stages = vec![
        vec![
            task(FencingKind::StorageFence, &[&["ceph"]]),
            task(FencingKind::NetworkFence, &[&["switch"]]),
        ],
        vec![task(FencingKind::PowerOff, &[&["bmc"]])],
    ];
    let mut world = lost(plan(stages), patient());
    world.fence().unwrap();
    for message in 0..3 {
        // Less than the difference of two engines' clocks.
        world.pass(100);
        world.work(message);
    }
    world.pass(10_000);
    world.site.restore_power();
    world.pass(10_000);
    sees(&mut world, "b", None);
    world.rejoin(false).unwrap();
    world.work_off();
    assert!(gives_storage_back(&world));
    assert_eq!(world.violation, None);
}

#[test]
fn a_supply_that_reads_off_does_not_replace_a_new_boot_if_another_was_on_before() {
    let once = MethodTimes {
        retries: 0,
        ..MethodTimes::default()
    };
    let stages = vec![
        vec![
            task(FencingKind::PowerOff, &[&["bmc-a"]]),
            task(FencingKind::PowerOff, &[&["bmc-b"]]),
            task_with(FencingKind::StorageFence, &[&["ceph"]], once),
        ],
        vec![task(FencingKind::PowerOn, &[])],
    ];
    let mut world = lost(plan(stages), patient());
    let slow = ringfence_world::Manner::Slow(9_000);
    world.site.manners.insert("ceph".to_owned(), slow);
    world.fence().unwrap();
    // The first supply gives the power back, and the array carries out the cut when the host runs again.
    world.work_off();
    world.pass(60_000);
    assert!(world.site.is_cut(ringfence_core::Resource::Storage));
    assert_eq!(world.site.boot, 2);
    world.site.link("monitor", true);
    world.told_alive_at = world.real;
    world.say("monitor", FailureState::Up, 0, None).unwrap();
    world.rejoin(false).unwrap();
    world.work_off();
    let on = |name: &str| {
        let is_it = |sent: &ringfence_core::Dispatch| {
            sent.job.kind() == FencingKind::PowerOn && sent.job.by() == name
        };
        world.sent.iter().any(is_it)
    };
    assert!(
        on("bmc-a") && on("bmc-b"),
        "both supplies were switched on, one after the other"
    );
    assert!(
        !gives_storage_back(&world),
        "the host was cut off during this boot"
    );
    assert_eq!(world.violation, None);
}
