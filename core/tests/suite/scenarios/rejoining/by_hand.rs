//! What an admin says was given back by hand.

use ringfence_core::*;
use ringfence_world::Manner;
use ringfence_world::World;
use ringfence_world::plans::*;

use super::super::{comes_back, lost, reboots};
use super::cut_off;

/// A host that is FENCED by storage and network, and whose switch no longer exists: its rejoin waits for a person.
fn without_its_switch() -> World {
    let mut world = cut_off();
    world.site.manners.insert("switch".to_owned(), Manner::Refuses);
    world.pass(15_000);
    reboots(&mut world);
    world.rejoin(false).unwrap();
    world.work_off();
    world.expect_last(
        "20.0 operation.needs_operator: network.unfence failed: every level failed; last switch: refused",
    );
    world
}

#[test]
fn an_admin_can_confirm_the_release_of_a_device_that_is_gone() {
    let mut world = without_its_switch();
    world.site.reconnect("switch");
    assert_eq!(world.released(2, &["switch"], admin("anna")), Ok(Reply::Done));
    world.expect(&[
        "20.0 note applied_fencing.released",
        "20.0 operation.restarted: released by hand, says anna: the switch was thrown away",
        "20.0 host.unfenced 2",
        "20.0 operation.succeeded: the host was taken back",
    ]);
    assert!(world.gates().schedule.allowed);
}

#[test]
fn a_confirmed_release_needs_an_admin_the_generation_and_the_methods_name() {
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
fn a_release_that_a_fence_rests_on_is_refused() {
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
fn a_release_is_refused_while_the_cut_may_still_be_made() {
    let mut world = lost(cut_off_plan());
    world.fence().unwrap();
    let storage = world.deliver(0, "worker-1").unwrap();
    world.cancel().unwrap();
    let refusal = world.released(1, &["ceph"], admin("anna")).unwrap_err();
    assert_eq!(refusal.code(), "host.fencing");
    world.complete(storage);
    world.pass(31_999);
    let refusal = world.released(1, &["ceph"], admin("anna")).unwrap_err();
    assert_eq!(
        refusal.code(),
        "host.fencing",
        "the array may still cut the host off"
    );
    world.pass(1);
    assert_eq!(world.released(1, &["ceph"], admin("anna")), Ok(Reply::Done));
    comes_back(&mut world);
    assert!(world.gates().schedule.allowed, "no applied fencing is left");
}

#[test]
fn a_device_beside_one_that_is_gone_is_still_released_by_the_rejoin() {
    let mut world = lost(plan(vec![vec![task(
        FencingKind::StorageFence,
        &[&["array-a", "array-b"]],
    )]]));
    world.fence().unwrap();
    world.work_off();
    world.cancel().unwrap();
    world.pass(15_000);
    reboots(&mut world);
    world.rejoin(false).unwrap();
    world.take_log();
    world.site.reconnect("array-b");
    world.released(2, &["array-b"], admin("anna")).unwrap();
    assert!(
        !world.gates().schedule.allowed,
        "the cut of the other array still stands"
    );
    world.work_off();
    world.expect(&[
        "20.0 note applied_fencing.released",
        "20.0 operation.succeeded: the host was taken back",
    ]);
}
