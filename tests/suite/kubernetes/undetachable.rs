//! Two nodes die at one time, whose volumes cannot be detached: one node at a time, so many pods in a minute, and none that its disruption budget keeps.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use ringfence_lab::{CSI_DRIVER, Kubelet, running_twice};
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::budgets::{deploy, on_node, until_healthy};
use super::plant::{PODS, Plant};

const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";
/// Pods that may begin to go in a minute.
const PER_MINUTE: usize = 2;
/// A pod is seen to be gone a little after it was told to go, and others sooner.
const ABOUT_A_MINUTE: Duration = Duration::from_secs(55);
const PATIENCE: Duration = Duration::from_secs(240);

fn policy() -> Value {
    json!({
        "fencing": { "automatic": true, "after_s": 1, "at_most": 10, "at_most_percent": 100, "at_once": 1 },
        "evacuation": {
            "automatic": true, "disruption_budgets": true, "timeout_s": 300,
            "in_segment": { "per_minute": PER_MINUTE },
        },
    })
}

/// The UIDs of the pods on these nodes that nothing holds back.
fn uids_on(plant: &Plant, nodes: [&Kubelet; 2], apps: &[&str]) -> BTreeSet<String> {
    let mut uids = BTreeSet::new();
    for node in nodes {
        for app in apps {
            let pods = on_node(plant, app, node.name());
            uids.extend(
                pods.iter()
                    .map(|pod| pod["metadata"]["uid"].as_str().unwrap().to_owned()),
            );
        }
    }
    uids
}

/// When each of these pods was first seen to be gone.
fn departures(plant: &Plant, mut uids: BTreeSet<String>) -> Vec<Instant> {
    let begun = Instant::now();
    let mut gone = Vec::new();
    while !uids.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{uids:?} are still there");
        let list = block_in_place(|| plant.api().get(PODS).unwrap());
        let pods = list["items"].as_array().unwrap().iter();
        let here: BTreeSet<&str> = pods.filter_map(|pod| pod["metadata"]["uid"].as_str()).collect();
        uids.retain(|uid| {
            let is_here = here.contains(uid.as_str());
            if !is_here {
                gone.push(Instant::now());
            }
            is_here
        });
        block_in_place(|| std::thread::sleep(Duration::from_millis(200)));
    }
    gone
}

/// The attachments of a node's volumes that their driver does not let go.
fn attached_to(plant: &Plant, node: &str) -> usize {
    let list = block_in_place(|| plant.api().get(ATTACHMENTS).unwrap());
    let all = list["items"].as_array().unwrap().iter();
    all.filter(|one| one["spec"]["attacher"] == CSI_DRIVER && one["spec"]["nodeName"] == node)
        .count()
}

/// The numbers of the host's events of this type.
async fn numbers(plant: &Plant, host: &str, kind: &str) -> Vec<u64> {
    let path = format!("/events?host={host}&limit=1000");
    let list = plant.stack.client.get(&path).await.ok(200);
    let events = list["events"].as_array().unwrap().iter();
    let of_kind = events.filter(|event| event["type"] == kind);
    of_kind.map(|event| event["sequence"].as_u64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_whose_volumes_cannot_be_detached_go_one_at_a_time_and_their_pods_as_they_may() {
    let nodes = ["n1", "n2", "n3", "n4"];
    let plant = Plant::start_with_nodes(Ground::Distributed, policy(), &nodes).await;
    // The fence of one lasts until the other's is due.
    plant.wait_before_power(8).await;
    for (app, min) in [("web", 2), ("all", 4)] {
        block_in_place(|| deploy(&plant, app, 4, min));
    }
    for app in ["web", "all"] {
        until_healthy(&plant, app, 4);
    }
    let members = ["db-0", "db-1"].map(|member| plant.until_running(member, |_| true));
    let dead = [0, 1].map(|at| plant.node(&members[at]["spec"]["nodeName"]));
    let going = uids_on(&plant, dead, &["web", "db"]);
    assert_eq!(going.len(), 4);

    plant.attacher.detaches(false);
    block_in_place(|| dead.iter().for_each(|node| node.kill()));
    let gone = departures(&plant, going);
    for within in gone.windows(PER_MINUTE + 1) {
        let lasted = within[PER_MINUTE] - within[0];
        assert!(
            lasted >= ABOUT_A_MINUTE,
            "{} pods went within {lasted:?}",
            PER_MINUTE + 1
        );
    }
    // One node at a time.
    let mut fences = Vec::new();
    for node in dead {
        assert_eq!(
            on_node(&plant, "all", node.name()).len(),
            1,
            "its budget keeps it"
        );
        let fenced = numbers(&plant, node.name(), "host.fenced").await;
        let released = numbers(&plant, node.name(), "operation.released").await;
        fences.push((fenced[0], released));
    }
    fences.sort();
    let [(first, none), (_, second)] = fences.as_slice() else {
        unreachable!()
    };
    assert!(none.is_empty() && second.len() == 1, "{fences:?}");
    assert!(second[0] > *first, "{fences:?}");

    // The successors wait for the volumes, which no other node gets.
    for (member, node) in members.iter().zip(dead) {
        assert_eq!(attached_to(&plant, node.name()), 1);
        let path = format!("{PODS}/{}", member["metadata"]["name"].as_str().unwrap());
        let next = block_in_place(|| plant.api().get(&path).unwrap());
        assert_ne!(next["metadata"]["uid"], member["metadata"]["uid"]);
        assert_ne!(next["status"]["phase"], "Running", "{next}");
    }
    plant.attacher.detaches(true);
    for (member, node) in members.iter().zip(dead) {
        let name = member["metadata"]["name"].as_str().unwrap();
        let uid = &member["metadata"]["uid"];
        plant.until_running(name, |next| next["metadata"]["uid"] != *uid);
        assert_eq!(attached_to(&plant, node.name()), 0);
    }
    assert_eq!(block_in_place(|| running_twice(&plant.nodes).unwrap()), None);
    plant.stack.stop().await;
}
