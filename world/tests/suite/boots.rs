//! Which boot may have back what was taken.

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

/// Cut off in boot "a", which its monitor has seen before.
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
fn the_same_boot_after_an_off_shows_that_the_off_was_none() {
    let both = plan(vec![vec![
        task(FencingKind::PowerOff, &[&["bmc"]]),
        task(FencingKind::StorageFence, &[&["ceph"]]),
    ]]);
    let mut world = World::new(both, patient());
    sees(&mut world, "a", Some(3_600));
    world.pass(10_000);
    world.see(FailureState::Unreachable).unwrap();
    // The BMC shows off and the host runs on.
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
fn an_older_off_does_not_lift_the_need_for_a_new_boot() {
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
    // A person switches it on, before storage and network are cut.
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
        "it was cut off in the middle of that boot"
    );
    world.site.crash(true);
    world.pass(10_000);
    sees(&mut world, "c", None);
    world.work_off();
    assert!(
        gives_storage_back(&world),
        "the second boot that was seen since began after the cut"
    );
    assert_eq!(world.violation, None);
}

#[test]
fn the_first_boot_that_is_seen_after_the_fence_may_have_begun_before_it() {
    let mut world = World::new(cut_off_plan(), patient());
    sees(&mut world, "a", Some(3_600));
    world.pass(10_000);
    world.see(FailureState::Unreachable).unwrap();
    // It panics and starts again, unseen.
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
fn a_boot_with_its_time_is_known_to_be_newer() {
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
fn a_time_too_close_to_the_fence_tells_nothing() {
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
fn a_time_without_an_id_tells_nothing() {
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
        "a clock that was set shows another time for one boot"
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
fn a_host_that_was_switched_off_after_it_was_seen_up_is_not_back() {
    let policy = SegmentPolicy {
        self_fencing_timeout_s: Some(5),
        rejoin_wait_s: 3_600,
        ..policy()
    };
    let mut world = lost(power_plan(), policy);
    world.fence().unwrap();
    let off = world.deliver(0, "worker-1").unwrap();
    world.stays_silent(10);
    assert!(world.is_fenced(), "by its own watchdog");
    // Before the worker comes to it the host is back.
    world.pass(2_000);
    world.see(FailureState::Up).unwrap();
    world.command(off);
    world.pass(500);
    world.complete(off);
    world.rejoin(false).unwrap();
    world.pass(5_000);
    assert!(world.is_fenced(), "it was seen UP, and switched off since");
    world.work_off();
    assert!(world.is_fenced(), "it has power, and was not seen since");
    world.pass(20_000);
    sees(&mut world, "b", None);
    world.work_off();
    assert!(!world.is_fenced());
    assert_eq!(world.violation, None);
}

#[test]
fn a_host_that_somebody_else_has_switched_on_shows_its_boot_before_it_has_its_storage_back() {
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
        "its power was on already: it may have booted before the cut"
    );
}

#[test]
fn a_host_whose_power_cannot_be_given_back_is_not_back_because_it_was_seen_before() {
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
fn a_stop_that_the_plan_does_not_trust_says_nothing_about_boots() {
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
    assert!(!gives_storage_back(&world), "it was never off");
}

#[test]
fn a_rejoin_waits_for_a_cut_that_may_yet_come_true() {
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
        "the cut has come true in the middle of that boot"
    );
    assert_eq!(world.violation, None);
}

#[test]
fn a_stop_that_was_allowed_after_the_cut_came_after_it() {
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
        // Less than two engines' clocks may differ by.
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
fn a_supply_that_reads_off_tells_nothing_of_the_time_before_where_another_one_had_come_back() {
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
    // The power comes back by the first supply, and the array does what it was told when the host runs again.
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
        "each was switched on, one after the other"
    );
    assert!(!gives_storage_back(&world), "it was cut off in that boot");
    assert_eq!(world.violation, None);
}
