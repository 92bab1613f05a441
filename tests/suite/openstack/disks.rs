//! Volumes that a fence takes from a host, and that are given back.

use std::time::Duration;

use ringfence_core::{FencingKind, FrozenMethod, ObservedState, Outcome};
use ringfence_lab::{Api, Cloud, Compute, User, Volume};
use serde_json::Value;
use tokio::task::block_in_place;

use super::hand::{Hand, method, seen};
use super::plant::cloud;

/// A host with servers that have a volume each.
struct Stored {
    cloud: Cloud,
    host: Compute,
    servers: Vec<String>,
    volumes: Vec<String>,
}

impl Stored {
    fn new(name: &str) -> Self {
        block_in_place(|| {
            let cloud = cloud();
            let [host] = cloud.computes([name]).unwrap();
            let servers = cloud
                .boot(&host, &[&format!("{name}-1"), &format!("{name}-2")], &[])
                .unwrap();
            let servers: Vec<String> = servers.into_iter().map(|server| server.id).collect();
            let give = |server: &String| {
                let volume = cloud.make_volume(name).unwrap();
                cloud.attach(server, &volume.id).unwrap();
                volume.id
            };
            let volumes = servers.iter().map(give).collect();
            Self {
                cloud,
                host,
                servers,
                volumes,
            }
        })
    }

    fn volumes(&self) -> Vec<Volume> {
        block_in_place(|| {
            self.volumes
                .iter()
                .map(|id| self.cloud.volume(id).unwrap())
                .collect()
        })
    }

    fn statuses(&self) -> Vec<String> {
        self.volumes().into_iter().map(|volume| volume.status).collect()
    }

    /// Cinder's attachments of all the volumes by their status.
    fn attachments(&self) -> Vec<String> {
        let of = |id: &String| {
            let path = format!("/attachments/detail?all_tenants=1&volume_id={id}");
            let found = block_in_place(|| self.cloud.get(Api::Volume, &path).unwrap());
            let all = found["attachments"].as_array().unwrap().clone();
            all.into_iter()
                .map(|a: Value| a["status"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        self.volumes.iter().flat_map(of).collect()
    }

    fn boot_host(&mut self) {
        block_in_place(|| {
            self.host.power_on().unwrap();
            self.host.wait_heard().unwrap();
        });
    }

    fn remove(self) {
        block_in_place(|| {
            self.cloud.remove(self.host).unwrap();
            for id in &self.volumes {
                self.cloud.wait_volume(id, "available").unwrap();
                self.cloud.delete_volume(id).unwrap();
            }
        });
    }
}

fn trusting(host: &str) -> FrozenMethod {
    method(
        "cinder",
        host,
        &[("trusted_backends", "logged"), ("local_disks", "true")],
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_is_cut_off_from_its_volumes_and_its_servers_get_them_back() {
    let mut stored = Stored::new("disks-f");
    let hand = Hand::of(&stored.cloud, User::Fencing);
    let method = trusting("disks-f");
    assert_eq!(hand.check(&method).await.unwrap().state, ObservedState::Unfenced);
    block_in_place(|| stored.host.power_off().unwrap());

    for _ in 0..2 {
        let fenced = hand.act(FencingKind::StorageFence, &method).await;
        assert_eq!(
            (seen(&fenced).state, seen(&fenced).proves),
            (ObservedState::Fenced, true),
            "{fenced:?}"
        );
        assert_eq!(stored.statuses(), ["reserved", "reserved"]);
        assert_eq!(stored.attachments(), ["reserved", "reserved"]);
    }
    assert_eq!(hand.check(&method).await.unwrap().state, ObservedState::Fenced);

    stored.boot_host();
    for _ in 0..2 {
        let released = hand.act(FencingKind::StorageUnfence, &method).await;
        assert_eq!(seen(&released).state, ObservedState::Unfenced, "{released:?}");
        assert_eq!(stored.statuses(), ["in-use", "in-use"]);
        assert_eq!(stored.attachments(), ["attached", "attached"]);
    }
    for (volume, server) in stored.volumes().iter().zip(&stored.servers) {
        assert_eq!(&volume.attachments[0].server_id, server);
        assert_eq!(volume.attachments[0].host_name.as_deref(), Some("disks-f"));
        let found = block_in_place(|| {
            stored
                .cloud
                .get(Api::Volume, &format!("/volumes/{}", volume.id))
                .unwrap()
        });
        assert_eq!(
            found["volume"]["metadata"],
            serde_json::json!({}),
            "Ringfence's metadata is removed from the volume"
        );
    }
    stored.remove();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_that_die_during_a_task_never_leave_a_volume_available() {
    let mut stored = Stored::new("disks-b");
    let hand = Hand::of(&stored.cloud, User::Fencing);
    let method = trusting("disks-b");
    block_in_place(|| stored.host.power_off().unwrap());

    hand.act_dying(FencingKind::StorageFence, &method).await;
    assert_eq!(stored.statuses(), ["reserved", "reserved"]);
    stored.boot_host();
    let releasing = hand.act_dying(FencingKind::StorageUnfence, &method);
    let watching = async {
        loop {
            let statuses = stored.statuses();
            assert!(!statuses.contains(&"available".to_owned()), "{statuses:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::select! {
        report = releasing => assert_eq!(seen(&report).state, ObservedState::Unfenced),
        () = watching => {}
    }
    assert_eq!(stored.statuses(), ["in-use", "in-use"]);
    assert_eq!(stored.attachments(), ["attached", "attached"]);
    stored.remove();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_of_volumes_on_untrusted_backends_proves_nothing() {
    let stored = Stored::new("disks-c");
    let hand = Hand::of(&stored.cloud, User::Fencing);
    for (more, words) in [
        (&[][..], "trusts no backend"),
        (&[("trusted_backends", "logged")], "has a disk that is no volume"),
        (
            &[("trusted_backends", "array-1"), ("local_disks", "true")],
            "is on backend logged, which the method does not trust",
        ),
    ] {
        let fenced = hand
            .act(FencingKind::StorageFence, &method("cinder", "disks-c", more))
            .await;
        assert!(!seen(&fenced).proves, "{fenced:?}");
        assert!(seen(&fenced).detail.contains(words), "{fenced:?}");
    }
    assert_eq!(stored.statuses(), ["reserved", "reserved"]);

    // The host was never down: its servers run on without their disks, and a person must stop them.
    let held = hand
        .act_within(
            FencingKind::StorageUnfence,
            &trusting("disks-c"),
            Duration::from_secs(5),
        )
        .await;
    assert_eq!(held.outcome, Outcome::Unknown);
    assert!(held.detail.contains("stop the server"), "{held:?}");
    for id in &stored.servers {
        block_in_place(|| {
            stored
                .cloud
                .act(id, serde_json::json!({ "os-stop": null }))
                .unwrap();
            let is_off =
                |server: &ringfence_lab::Server| server.status == "SHUTOFF" && server.task_state.is_none();
            stored.cloud.wait_server(id, "off", is_off).unwrap();
        });
    }
    seen(&hand.act(FencingKind::StorageUnfence, &trusting("disks-c")).await);
    assert_eq!(stored.attachments(), ["attached", "attached"]);
    stored.remove();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_of_cinder_is_no_proof_and_volumes_are_given_back_only_after_its_request_has_ended() {
    let mut stored = Stored::new("disks-d");
    let hand = Hand::of(&stored.cloud, User::Fencing);
    let method = trusting("disks-d");
    block_in_place(|| stored.host.power_off().unwrap());

    let silent = block_in_place(|| stored.cloud.pause("cinder-volume").unwrap());
    let fenced = hand
        .act_within(FencingKind::StorageFence, &method, Duration::from_secs(8))
        .await;
    assert_eq!(fenced.outcome, Outcome::Unknown, "{fenced:?}");
    assert_eq!(stored.statuses(), ["in-use", "in-use"]);
    let held = hand
        .act_within(FencingKind::StorageUnfence, &method, Duration::from_secs(8))
        .await;
    assert_eq!(held.outcome, Outcome::Unknown, "{held:?}");
    drop(silent);

    stored.boot_host();
    seen(&hand.act(FencingKind::StorageUnfence, &method).await);
    assert_eq!(stored.attachments(), ["attached", "attached"]);
    stored.remove();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_role_service_no_volume_is_cut_off() {
    let stored = Stored::new("disks-e");
    let method = trusting("disks-e");
    for user in [User::Admin, User::FencingReader] {
        let hand = Hand::of(&stored.cloud, user);
        let refused = hand
            .act_within(FencingKind::StorageFence, &method, Duration::from_secs(20))
            .await;
        assert_eq!(refused.outcome, Outcome::Unknown, "{refused:?}");
        assert!(
            refused.detail.contains("refuses the credentials"),
            "{user:?}: {refused:?}"
        );
        assert_eq!(stored.statuses(), ["in-use", "in-use"]);
    }
    let hand = Hand::of(&stored.cloud, User::Fencing);
    let unknown = hand.act(FencingKind::StorageFence, &trusting("nosuch")).await;
    assert_eq!(
        unknown.outcome,
        Outcome::Refused,
        "no servers is no proof: {unknown:?}"
    );
    assert!(hand.check(&trusting("nosuch")).await.is_err());
    // The refused attempts may have reserved the volumes; after this fence each volume has exactly one reservation.
    seen(&hand.act(FencingKind::StorageFence, &method).await);
    assert_eq!(stored.attachments(), ["reserved", "reserved"]);
    stored.remove_cut();
}

impl Stored {
    /// Removes the host and its volumes while Ringfence still reserves the volumes.
    fn remove_cut(self) {
        block_in_place(|| {
            self.cloud.remove(self.host).unwrap();
            for id in &self.volumes {
                let path = format!("/attachments/detail?all_tenants=1&volume_id={id}");
                let found = self.cloud.get(Api::Volume, &path).unwrap();
                for attachment in found["attachments"].as_array().unwrap() {
                    let id = attachment["id"].as_str().unwrap();
                    self.cloud
                        .delete(Api::Volume, &format!("/attachments/{id}"))
                        .unwrap();
                }
                self.cloud.wait_volume(id, "available").unwrap();
                self.cloud.delete_volume(id).unwrap();
            }
        });
    }
}
