//! What an admin says was given back by hand.

use ringfence_core::*;
use ringfence_world::Manner;
use ringfence_world::World;
use ringfence_world::plans::*;

use super::super::{boots_anew, comes_back, lost};
use super::cut_off;

/// FENCED by storage and network; the switch was thrown away since, and the rejoin waits for a person because of that.
fn without_its_switch() -> World {
    let mut world = cut_off();
    world.site.manners.insert("switch".to_owned(), Manner::Refuses);
    world.pass(15_000);
    boots_anew(&mut world);
    world.rejoin(false).unwrap();
    world.work_off();
    world.expect_last(
        "20.0 operation.needs_operator: network.unfence failed: every level failed; last switch: refused",
    );
    world
}

#[test]
fn what_no_device_can_give_back_an_admin_can_say_was_given_back() {
    let mut world = without_its_switch();
    world.site.reconnect("switch");
    assert_eq!(world.released(2, &["switch"], admin("anna")), Ok(Reply::Done));
    world.expect(&[
        "20.0 note applied_fencing.released",
        "20.0 operation.restarted: given back by hand, says anna: the switch was thrown away",
        "20.0 host.unfenced 2",
        "20.0 operation.succeeded: the host was taken back",
    ]);
    assert!(world.gates().schedule.allowed);
}

#[test]
fn that_word_needs_an_admin_the_generation_and_the_name_of_what_stands() {
    let mut world = without_its_switch();
    let refusals = [
        world.released(2, &["switch"], person("otto")),
        world.released(1, &["switch"], admin("anna")),
        world.released(2, &["ceph"], admin("anna")),
        world.released(2, &["switch", "bmc"], admin("anna")),
    ];
    let codes = refusals.map(|refusal| refusal.unwrap_err().code());
    assert_eq!(
        codes,
        [
            "forbidden",
            "generation.stale",
            "applied_fencing.unknown",
            "applied_fencing.unknown"
        ]
    );
    assert!(world.is_fenced());
    world.expect(&[]);
}

#[test]
fn nobody_gives_back_what_a_fence_rests_on() {
    let mut world = cut_off();
    let refusal = world.released(1, &["switch"], admin("anna")).unwrap_err();
    assert!(refusal.to_string().contains("begin a rejoin first"), "{refusal}");
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    world.work(0);
    let refusal = world.released(1, &["ceph"], admin("anna")).unwrap_err();
    assert_eq!(refusal.code(), "operation.live");
}

#[test]
fn what_may_still_be_taken_is_not_given_back() {
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    let storage = world.deliver(0, "worker-1").unwrap();
    world.cancel().unwrap();
    let refusal = world.released(1, &["ceph"], admin("anna")).unwrap_err();
    assert_eq!(refusal.code(), "host.fencing");
    world.complete(storage);
    world.pass(31_999);
    let refusal = world.released(1, &["ceph"], admin("anna")).unwrap_err();
    assert_eq!(refusal.code(), "host.fencing", "the array may still do it");
    world.pass(1);
    assert_eq!(world.released(1, &["ceph"], admin("anna")), Ok(Reply::Done));
    comes_back(&mut world);
    assert!(world.gates().schedule.allowed, "nothing stands any more");
}

#[test]
fn a_device_beside_the_one_that_is_gone_is_still_given_back_by_itself() {
    let mut world = lost(plan(vec![vec![task(
        FencingKind::StorageFence,
        &[&["array-a", "array-b"]],
    )]]));
    world.fence().unwrap();
    world.work_off();
    world.cancel().unwrap();
    world.pass(15_000);
    boots_anew(&mut world);
    world.rejoin(false).unwrap();
    world.take_log();
    world.site.reconnect("array-b");
    world.released(2, &["array-b"], admin("anna")).unwrap();
    assert!(!world.gates().schedule.allowed, "the other still stands");
    world.work_off();
    world.expect(&[
        "20.0 note applied_fencing.released",
        "20.0 operation.succeeded: the host was taken back",
    ]);
}
