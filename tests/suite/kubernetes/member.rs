//! The member of a set whose node dies.

use ringfence_lab::running_twice;
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{PODS, Plant};

fn attached_to(plant: &Plant, node: &str) -> usize {
    let attachments = "/apis/storage.k8s.io/v1/volumeattachments";
    let list = block_in_place(|| plant.api().get(attachments).unwrap());
    let all = list["items"].as_array().unwrap();
    all.iter().filter(|one| one["spec"]["nodeName"] == node).count()
}

fn taints(plant: &Plant, node: &str) -> (Vec<String>, bool) {
    let node = block_in_place(|| plant.api().get(&format!("/api/v1/nodes/{node}")).unwrap());
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let keys = taints
        .iter()
        .map(|taint| taint["key"].as_str().unwrap().to_owned());
    (keys.collect(), node["spec"]["unschedulable"] == true)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_node_dies_runs_elsewhere_and_the_node_is_taken_back() {
    let policy = json!({ "auto_rejoin": true, "evacuation": { "automatic": true } });
    let plant = Plant::start(Ground::Distributed, policy).await;
    let pod = plant.until_running("db-0", |_| true);
    let uid = pod["metadata"]["uid"].clone();
    let dead = plant.node(&pod["spec"]["nodeName"]);
    assert_eq!(attached_to(&plant, dead.name()), 1);

    block_in_place(|| dead.kill());
    plant.until_seen(dead.name(), "UNREACHABLE").await;
    let still = block_in_place(|| plant.api().get(&format!("{PODS}/db-0")).unwrap());
    assert_eq!(
        still["metadata"]["uid"], uid,
        "removed before anything was proven"
    );
    plant.stack.client.fence(dead.name()).await;
    let fence = plant.until_ended(dead.name(), "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");

    let evacuation = plant.until_ended(dead.name(), "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    let moves = plant.moves(&evacuation).await;
    let names: Vec<&Value> = moves.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["default/db-0"], "{moves:?}");
    assert_eq!(attached_to(&plant, dead.name()), 0);
    let next = plant.until_running("db-0", |pod| pod["metadata"]["uid"] != uid);
    assert_ne!(next["spec"]["nodeName"], dead.name());
    let (keys, is_cordoned) = taints(&plant, dead.name());
    assert!(
        is_cordoned && keys.iter().any(|key| key == "ringfence.io/fenced"),
        "{keys:?}"
    );

    block_in_place(|| dead.start_again().unwrap());
    let rejoin = plant.until_ended(dead.name(), "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    let (keys, is_cordoned) = taints(&plant, dead.name());
    assert!(
        !is_cordoned && keys.iter().all(|key| !key.starts_with("ringfence.io")),
        "{keys:?}"
    );
    assert_eq!(block_in_place(|| running_twice(&plant.nodes).unwrap()), None);
    plant.stack.stop().await;
}
