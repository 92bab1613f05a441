//! The member of a set whose node dies.

use std::time::Duration;

use ringfence_lab::running_twice;
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{PODS, Plant};

/// A node that was emptied is looked at again within that time.
const LATE: Duration = Duration::from_secs(60);

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

fn assert_is_move_of_member(moved: &Value, from: &str, to: &Value) {
    assert_eq!(moved["name"], "default/db-0", "{moved}");
    assert_eq!(moved["owner"], "StatefulSet/db", "{moved}");
    assert_eq!(moved["from"], from, "{moved}");
    assert_eq!(moved["to"], *to, "{moved}");
    let times = ["started_at", "ended_at"].map(|time| moved[time].as_str().unwrap());
    assert!(times[0] <= times[1], "{moved}");
}

/// What a node that is gone must not stand in the way of: one member less, and one more.
fn a_set_can_be_scaled(plant: &Plant) {
    let scaled = |replicas: u32| {
        let change = json!({ "spec": { "replicas": replicas } });
        let path = "/apis/apps/v1/namespaces/default/statefulsets/db";
        block_in_place(|| plant.api().patch(path, &change).unwrap());
    };
    let uid = plant.until_running("db-1", |_| true)["metadata"]["uid"].clone();
    scaled(1);
    let path = format!("{PODS}/db-1");
    block_in_place(|| {
        plant
            .api()
            .until("one member less", &path, LATE, Value::is_null)
            .unwrap()
    });
    scaled(2);
    plant.until_running("db-1", |pod| pod["metadata"]["uid"] != uid);
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
    assert_eq!(attached_to(&plant, dead.name()), 0);
    let next = plant.until_running("db-0", |pod| pod["metadata"]["uid"] != uid);
    let elsewhere = &next["spec"]["nodeName"];
    assert_ne!(elsewhere, dead.name());
    assert_eq!(moves.len(), 1, "{moves:?}");
    assert_is_move_of_member(&moves[0], dead.name(), elsewhere);
    a_set_can_be_scaled(&plant);
    let (keys, is_cordoned) = taints(&plant, dead.name());
    assert!(
        is_cordoned && keys.iter().any(|key| key == "ringfence.io/fenced"),
        "{keys:?}"
    );

    // A scheduler that has not seen the taint yet binds a pod to the node nevertheless.
    let late = json!({
        "metadata": { "name": "late" },
        "spec": { "nodeName": dead.name(), "containers": [{ "name": "one", "image": "none" }] },
    });
    block_in_place(|| plant.api().post(PODS, &late).unwrap());
    let is_gone = |pod: &Value| pod.is_null();
    let path = format!("{PODS}/late");
    block_in_place(|| {
        plant
            .api()
            .until("the late pod gone", &path, LATE, is_gone)
            .unwrap()
    });
    let again = plant.until_ended(dead.name(), "evacuation").await;
    assert_ne!(again["id"], evacuation["id"]);
    let moves = plant.moves(&again).await;
    let told = moves.iter().map(|one| [&one["name"], &one["owner"], &one["to"]]);
    let late = [&json!("default/late"), &Value::Null, &Value::Null];
    assert_eq!(told.collect::<Vec<_>>(), [late], "no controller makes it again");

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
