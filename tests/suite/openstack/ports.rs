//! Ports that a fence disables, and that are given back.

use std::time::Duration;

use ringfence_core::{FencingKind, ObservedState, Outcome};
use ringfence_lab::{Cloud, Compute, NewServer, Port, User};
use tokio::task::block_in_place;

use super::hand::{Hand, method, seen};
use super::plant::{cloud, until};

/// A host with a server that has ports, the last of which its owner has disabled.
struct Wired {
    cloud: Cloud,
    host: Compute,
    network: String,
    ports: Vec<Port>,
}

impl Wired {
    fn new(name: &str) -> Self {
        block_in_place(|| {
            let cloud = cloud();
            let [host] = cloud.computes([name]).unwrap();
            let network = cloud.make_network(name).unwrap();
            let ports: Vec<Port> = (0..4).map(|_| cloud.make_port(&network).unwrap()).collect();
            cloud.set_port_up(&ports[3].id, false).unwrap();
            let server = NewServer {
                host: Some(&host),
                ports: &ports.iter().collect::<Vec<_>>(),
                ..NewServer::new(name)
            };
            cloud.boot_all(&[server]).unwrap();
            Self {
                cloud,
                host,
                network,
                ports,
            }
        })
    }

    /// Which ports are enabled, and how many have a tag.
    fn ports(&self) -> (Vec<bool>, usize) {
        block_in_place(|| {
            let up = |port: &Port| self.cloud.port(&port.id).unwrap().admin_state_up;
            let tagged = format!("tags=ringfence:{}", self.host.name());
            let tagged = self.cloud.ports(&tagged).unwrap();
            (self.ports.iter().map(up).collect(), tagged.len())
        })
    }

    fn remove(self) {
        block_in_place(|| {
            self.cloud.remove(self.host).unwrap();
            self.cloud.delete_network(&self.network).unwrap();
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ports_are_disabled_and_those_that_were_enabled_are_enabled_again() {
    let wired = Wired::new("ports-a");
    let hand = Hand::of(&wired.cloud, User::Fencing);
    let weak = method("neutron", "ports-a", &[]);
    let trusted = method("neutron", "ports-a", &[("trusted", "true")]);
    let all_down = (vec![false; 4], 3);
    let as_before = (vec![true, true, true, false], 0);

    for (method, proves) in [(&weak, false), (&trusted, true), (&trusted, true)] {
        let fenced = hand.act(FencingKind::NetworkFence, method).await;
        assert_eq!(
            (seen(&fenced).state, seen(&fenced).proves),
            (ObservedState::Fenced, proves)
        );
        assert_eq!(wired.ports(), all_down);
    }
    assert_eq!(hand.check(&weak).await.unwrap().state, ObservedState::Fenced);

    for _ in 0..2 {
        let released = hand.act(FencingKind::NetworkUnfence, &weak).await;
        assert_eq!(seen(&released).state, ObservedState::Unfenced);
        assert_eq!(wired.ports(), as_before);
    }
    assert_eq!(hand.check(&weak).await.unwrap().state, ObservedState::Unfenced);
    wired.remove();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_die_during_a_task_lose_no_port() {
    let wired = Wired::new("ports-b");
    let hand = Hand::of(&wired.cloud, User::Fencing);
    let method = method("neutron", "ports-b", &[]);

    hand.act_dying(FencingKind::NetworkFence, &method).await;
    assert_eq!(wired.ports(), (vec![false; 4], 3));
    // The engine starts a release only when the deadline of a silent worker is over, and with it the worker's requests to Neutron.
    tokio::time::sleep(Duration::from_secs(10)).await;
    hand.act_dying(FencingKind::NetworkUnfence, &method).await;
    assert_eq!(wired.ports(), (vec![true, true, true, false], 0));
    wired.remove();
}

/// The server went from one fenced host to another host, which was fenced too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_two_fences_hold_is_given_back_by_the_second() {
    let mut wired = Wired::new("ports-d");
    let cloud = wired.cloud.clone();
    let other = block_in_place(|| {
        let [other] = cloud.computes(["ports-e"]).unwrap();
        other
    });
    let hand = Hand::of(&cloud, User::Fencing);
    let [here, there] = ["ports-d", "ports-e"].map(|host| method("neutron", host, &[]));
    let tagged =
        |host: &str| block_in_place(|| cloud.ports(&format!("tags=ringfence:{host}")).unwrap().len());
    seen(&hand.act(FencingKind::NetworkFence, &here).await);
    block_in_place(|| {
        wired.host.kill();
        cloud.force_down("ports-d", "for a story").unwrap();
        let server = cloud.servers_on("ports-d").unwrap().remove(0).id;
        cloud.evacuate(&server, Some(&other)).unwrap();
    });
    // The ports move before the server, which waits until one of them is wired.
    until(|| cloud.ports_on("ports-e").unwrap().len() == 4);

    seen(&hand.act(FencingKind::NetworkFence, &there).await);
    assert_eq!((tagged("ports-d"), tagged("ports-e")), (3, 3));
    seen(&hand.act(FencingKind::NetworkUnfence, &here).await);
    assert_eq!(
        wired.ports().0,
        [false; 4],
        "the second fence still holds the ports"
    );
    assert_eq!((tagged("ports-d"), tagged("ports-e")), (0, 3));
    seen(&hand.act(FencingKind::NetworkUnfence, &there).await);
    assert_eq!(wired.ports().0, [true, true, true, false]);
    assert_eq!(tagged("ports-e"), 0);
    block_in_place(|| cloud.remove(other).unwrap());
    wired.remove();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_who_may_not_list_ports_is_refused_instead_of_seeing_none() {
    let wired = Wired::new("ports-c");
    let reader = Hand::of(&wired.cloud, User::FencingReader);
    let hand = Hand::of(&wired.cloud, User::Fencing);
    let trusted = method("neutron", "ports-c", &[("trusted", "true")]);
    let unknown = method("neutron", "nosuch", &[("trusted", "true")]);

    for (hand, method) in [(&reader, &trusted), (&hand, &unknown)] {
        for kind in [FencingKind::NetworkFence, FencingKind::NetworkUnfence] {
            let refused = hand.act(kind, method).await;
            assert_eq!(refused.outcome, Outcome::Refused, "{refused:?}");
            assert!(refused.detail.contains("role does not suffice"), "{refused:?}");
        }
        assert!(hand.check(method).await.is_err());
    }
    assert_eq!(wired.ports(), (vec![true, true, true, false], 0));
    wired.remove();
}
