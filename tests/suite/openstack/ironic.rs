//! Power by Ironic.

use ringfence_core::{FencingKind, ObservedState, Outcome};
use ringfence_lab::{Api, User};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::hand::{Hand, method, seen};
use super::plant::cloud;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_switched_off_under_maintenance_and_on_again_without() {
    let cloud = cloud();
    let node = block_in_place(|| cloud.enrol("ironic-a").unwrap());
    let hand = Hand::of(&cloud, User::Fencing);
    let method = method("ironic", "ironic-a", &[]);

    let before = hand.check(&method).await.unwrap();
    assert_eq!((before.state, before.proves), (ObservedState::On, false));
    assert!(!block_in_place(|| node.is_in_maintenance().unwrap()));

    for _ in 0..2 {
        let off = hand.act(FencingKind::PowerOff, &method).await;
        assert_eq!((seen(&off).state, seen(&off).proves), (ObservedState::Off, true));
        let shown = block_in_place(|| node.read().unwrap());
        assert_eq!(shown["power_state"], "power off");
        assert_eq!(shown["maintenance_reason"], "fenced by Ringfence: host ironic-a");
    }
    let looked = hand.check(&method).await.unwrap();
    assert_eq!((looked.state, looked.proves), (ObservedState::Off, false));

    for _ in 0..2 {
        let on = hand.act(FencingKind::PowerOn, &method).await;
        assert_eq!(seen(&on).state, ObservedState::On);
        let shown = block_in_place(|| node.read().unwrap());
        assert_eq!(
            (&shown["power_state"], &shown["maintenance"]),
            (&json!("power on"), &json!(false))
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_maintenance_that_ringfence_did_not_begin_is_kept() {
    let cloud = cloud();
    let node = block_in_place(|| cloud.enrol("ironic-b").unwrap());
    let path = format!("/v1/nodes/{}/maintenance", node.id());
    block_in_place(|| {
        cloud
            .put(Api::Baremetal, &path, json!({ "reason": "new disks" }))
            .unwrap()
    });
    let hand = Hand::of(&cloud, User::Fencing);
    let method = method("ironic", node.id(), &[]);

    for (kind, state) in [
        (FencingKind::PowerOff, ObservedState::Off),
        (FencingKind::PowerOn, ObservedState::On),
    ] {
        assert_eq!(seen(&hand.act(kind, &method).await).state, state);
        let shown: Value = block_in_place(|| node.read().unwrap());
        assert_eq!(shown["maintenance_reason"], "new disks");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_switched_off_by_the_worker_after_those_that_died() {
    let cloud = cloud();
    let node = block_in_place(|| cloud.enrol("ironic-c").unwrap());
    let hand = Hand::of(&cloud, User::Fencing);
    let method = method("ironic", "ironic-c", &[]);

    hand.act_dying(FencingKind::PowerOff, &method).await;
    assert!(block_in_place(|| node.is_in_maintenance().unwrap()));
    hand.act_dying(FencingKind::PowerOn, &method).await;
    assert!(!block_in_place(|| node.is_in_maintenance().unwrap()));
    assert_eq!(block_in_place(|| node.power_state().unwrap()), "power on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unknown_nodes_unknown_clouds_and_insufficient_roles_are_refused() {
    let cloud = cloud();
    let node = block_in_place(|| cloud.enrol("ironic-d").unwrap());
    let hand = Hand::of(&cloud, User::Fencing);

    let unknown = hand
        .act(FencingKind::PowerOff, &method("ironic", "nosuch", &[]))
        .await;
    assert_eq!(unknown.outcome, Outcome::Refused);
    assert!(unknown.detail.contains("no node nosuch"), "{unknown:?}");

    let elsewhere = method("ironic", "ironic-d", &[("cloud", "west")]);
    let elsewhere = hand.act(FencingKind::PowerOff, &elsewhere).await;
    assert_eq!(elsewhere.outcome, Outcome::Refused);
    assert!(elsewhere.detail.contains("it has: lab"), "{elsewhere:?}");

    let reader = Hand::of(&cloud, User::FencingReader);
    let refused = reader
        .act(FencingKind::PowerOff, &method("ironic", "ironic-d", &[]))
        .await;
    assert_eq!(refused.outcome, Outcome::Refused);
    assert!(
        refused.detail.contains("does not show it to this user"),
        "{refused:?}"
    );
    assert_eq!(block_in_place(|| node.power_state().unwrap()), "power on");
}
