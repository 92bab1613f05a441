//! Pods that are moved only with healthy volumes.

use std::time::Duration;

use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{PODS, Plant};

const PATIENCE: Duration = Duration::from_secs(60);
const LONGHORN: &str = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system";

/// Longhorn's objects, as far as they are asked for, are kept as they are written.
fn define_longhorn(plant: &Plant) {
    let api = plant.api();
    api.post(
        "/api/v1/namespaces",
        &json!({ "metadata": { "name": "longhorn-system" } }),
    )
    .unwrap();
    for (kind, singular) in [("Volume", "volume"), ("Replica", "replica")] {
        let plural = format!("{singular}s");
        let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let definition = json!({
            "metadata": { "name": format!("{plural}.longhorn.io") },
            "spec": {
                "group": "longhorn.io", "scope": "Namespaced",
                "names": { "kind": kind, "plural": plural, "singular": singular },
                "versions": [{ "name": "v1beta2", "served": true, "storage": true, "schema": { "openAPIV3Schema": anything } }],
            },
        });
        api.post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &definition,
        )
        .unwrap();
        let is_served = |list: &Value| list["items"].is_array();
        api.until(
            "Longhorn's objects",
            &format!("{LONGHORN}/{plural}"),
            PATIENCE,
            is_served,
        )
        .unwrap();
    }
}

/// A volume of Longhorn with a copy on each of these nodes.
fn make_volume(plant: &Plant, name: &str, nodes: &[&str]) {
    let api = plant.api();
    let volume = json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": "Volume",
        "metadata": { "name": name }, "spec": { "numberOfReplicas": 2 },
        "status": { "state": "attached", "robustness": "unknown" },
    });
    api.post(&format!("{LONGHORN}/volumes"), &volume).unwrap();
    for node in nodes {
        make_copy(plant, name, node);
    }
    let persistent = json!({
        "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": "longhorn",
            "csi": { "driver": "driver.longhorn.io", "volumeHandle": name },
            "claimRef": { "namespace": "default", "name": name },
        },
    });
    api.post("/api/v1/persistentvolumes", &persistent).unwrap();
    let claim = json!({
        "metadata": { "name": name },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "longhorn", "volumeName": name,
            "resources": { "requests": { "storage": "1Gi" } },
        },
    });
    api.post("/api/v1/namespaces/default/persistentvolumeclaims", &claim)
        .unwrap();
}

fn make_copy(plant: &Plant, volume: &str, node: &str) {
    let replica = json!({
        "apiVersion": "longhorn.io/v1beta2", "kind": "Replica",
        "metadata": { "name": format!("{volume}-r-{node}"), "labels": { "longhornvolume": volume } },
        "spec": { "volumeName": volume, "nodeID": node, "healthyAt": "2026-01-01T00:00:00Z", "failedAt": "" },
        "status": { "currentState": "running" },
    });
    plant
        .api()
        .post(&format!("{LONGHORN}/replicas"), &replica)
        .unwrap();
}

fn run_with(plant: &Plant, name: &str, node: &str) {
    let pod = json!({
        "metadata": { "name": name, "labels": { "storageos.com/fenced": "true" } },
        "spec": {
            "nodeName": node,
            "containers": [{ "name": "main", "image": "none", "volumeMounts": [{ "name": "data", "mountPath": "/data" }] }],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": name } }],
        },
    });
    plant.api().post(PODS, &pod).unwrap();
}

fn is_there(plant: &Plant, pod: &str) -> bool {
    let path = format!("{PODS}/{pod}");
    block_in_place(|| plant.api().find(&path).unwrap().is_some())
}

async fn until_gone(plant: &Plant, pod: &str) {
    let path = format!("{PODS}/{pod}");
    let is_gone = |pod: &Value| pod.is_null();
    block_in_place(|| {
        plant
            .api()
            .until(&format!("{pod} gone"), &path, PATIENCE, is_gone)
            .unwrap()
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_whose_only_copy_is_on_the_dead_node_stays_until_its_volume_is_healthy_elsewhere() {
    let policy = json!({ "evacuation": { "automatic": true } });
    let plant = Plant::start(Ground::Standalone, policy).await;
    let pod = plant.until_running("db-0", |_| true);
    let node = plant.node(&pod["spec"]["nodeName"]);
    let elsewhere = plant
        .nodes
        .iter()
        .find(|one| one.name() != node.name())
        .unwrap()
        .name();
    block_in_place(|| {
        define_longhorn(&plant);
        make_volume(&plant, "well", &[node.name(), elsewhere]);
        make_volume(&plant, "sick", &[node.name()]);
        for name in ["well", "sick"] {
            run_with(&plant, name, node.name());
        }
        node.kill();
    });
    plant.until_seen(node.name(), "UNREACHABLE").await;
    assert!(
        is_there(&plant, "well"),
        "healthy volumes prove nothing of the node"
    );
    plant.stack.client.fence(node.name()).await;
    plant.stack.client.until_fenced(node.name()).await;

    until_gone(&plant, "well").await;
    plant.until_running("db-0", |next| next["metadata"]["uid"] != pod["metadata"]["uid"]);
    let client = &plant.stack.client;
    let path = format!("/operations?host={}&kind=evacuation&limit=1", node.name());
    let list = client.get(&path).await.ok(200).clone();
    let path = format!(
        "/operations/{}/moves",
        list["operations"][0]["id"].as_str().unwrap()
    );
    let why = "volume sick has no healthy replica outside";
    let says_why = |moves: &Value| moves.to_string().contains(why);
    client.until_within(&path, PATIENCE, says_why).await;
    assert!(is_there(&plant, "sick"));

    block_in_place(|| make_copy(&plant, "sick", elsewhere));
    until_gone(&plant, "sick").await;
    let evacuation = plant.until_ended(node.name(), "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    let mut moved: Vec<Value> = plant
        .moves(&evacuation)
        .await
        .iter()
        .map(|one| one["name"].clone())
        .collect();
    moved.sort_by_key(Value::to_string);
    assert_eq!(moved, ["default/db-0", "default/sick", "default/well"]);
    plant.stack.stop().await;
}
