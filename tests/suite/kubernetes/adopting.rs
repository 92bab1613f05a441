//! The nodes of a cluster that is new to Ringfence, and those that leave it.

use std::time::Duration;

use ringfence_backends::kubernetes::{ClusterSettings, ClusterUses};
use ringfence_engine::ObserverConfig;
use ringfence_lab::{KubeApi, Kubelet, KubeletOptions};
use ringfence_tests::{Ground, Site, Stack, StackOptions};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::node_fence::FENCES;
use super::plant::{CLUSTER, PODS, control_plane, define_objects, settings};

const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// More than are added between two looks, and few enough that all are made before the first of them is held for lost: no kubelet stands behind them.
const NODES: usize = 150;
/// Between two looks, where nothing shortens the wait.
const EVERY: Duration = Duration::from_secs(300);
/// Longer than adding takes, and much shorter than one wait.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_nodes_of_a_large_cluster_are_added_without_a_wait_between_them() {
    let plane = block_in_place(control_plane);
    for number in 1..=NODES {
        let node = json!({
            "metadata": { "name": format!("n{number}") },
            "status": { "conditions": [{ "type": "Ready", "status": "True" }] },
        });
        block_in_place(|| plane.api().post("/api/v1/nodes", &node).unwrap());
    }
    let options = StackOptions {
        hosts: 0,
        workers: 0,
        clusters: vec![ClusterSettings {
            // A node that has no lease is none that has fallen silent.
            down_after: EVERY,
            ..settings(plane.kubeconfig())
        }],
        observer: ObserverConfig {
            every: EVERY,
            down_after: chrono::TimeDelta::from_std(EVERY).unwrap(),
            adopt: Some("default".to_owned()),
            ..ObserverConfig::default()
        },
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Standalone).await, options).await;
    let are_all = |list: &Value| list["hosts"].as_array().is_some_and(|hosts| hosts.len() == NODES);
    let path = format!("/hosts?limit={}", NODES + 1);
    stack.client.until_within(&path, PATIENCE, are_all).await;
    stack.stop().await;
}

/// Time after which a silent node is UNREACHABLE. It has to stay so until a person has spoken: half of it without a word of the API server,
/// on a loaded machine, makes it UNKNOWN.
const DOWN_AFTER: Duration = Duration::from_secs(10);
/// How long a node has to be away before its host is removed.
const REMOVE_AFTER_S: i64 = 4;

/// A node that no machine stands behind: it says that it is Ready, and gives no sign of life.
///
/// It says when it said so: the controllers remember what a node of this name has said before it was deleted, and take a node that says
/// nothing newer for one that has been silent since.
pub fn make_node(api: &KubeApi, name: &str) -> Value {
    let now = ringfence_tests::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
    let node = json!({
        "metadata": { "name": name },
        "status": { "conditions": [{ "type": "Ready", "status": "True", "lastHeartbeatTime": now }] },
    });
    api.post("/api/v1/nodes", &node).unwrap()
}

fn delete_node(api: &KubeApi, name: &str) {
    api.delete(&format!("/api/v1/nodes/{name}"), &json!({})).unwrap();
}

/// A pod that is bound to a node, and that the cluster cannot remove.
fn bind_pod(api: &KubeApi, node: &str) {
    let pod = json!({
        "metadata": { "name": "held", "finalizers": ["tests.ringfence.io/held"] },
        "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "none" }] },
    });
    api.post(PODS, &pod).unwrap();
}

pub fn attach_volume(api: &KubeApi, node: &str) {
    let attachment = json!({
        "metadata": { "name": "held" },
        "spec": { "attacher": "none.example.com", "nodeName": node, "source": { "persistentVolumeName": "pv-9" } },
    });
    api.post(ATTACHMENTS, &attachment).unwrap();
}

/// A NodeFence; one that Ringfence has made has its label.
fn make_fence(api: &KubeApi, node: &str, is_own: bool) {
    let labels = if is_own {
        json!({ "ringfence.io/made-by": "ringfence" })
    } else {
        json!({})
    };
    let fence = json!({
        "apiVersion": "ringfence.io/v1alpha1", "kind": "NodeFence", "metadata": { "name": node, "labels": labels }, "spec": {},
    });
    api.post(FENCES, &fence).unwrap();
}

async fn until_removed(stack: &Stack, host: &str) {
    let path = format!("/hosts?name={host}");
    let is_gone = |list: &Value| list["hosts"].as_array().is_some_and(Vec::is_empty);
    stack.client.until_within(&path, PATIENCE, is_gone).await;
}

/// Waits until the cluster has not named the host for a while: nothing is known of it, and its gates are closed.
async fn until_left(stack: &Stack, host: &str) {
    let path = format!("/hosts/{host}/explanation");
    let has_left = |told: &Value| told["left_at"].is_string() && told["host"]["failure_state"] == "UNKNOWN";
    let told = stack.client.until_within(&path, PATIENCE, has_left).await;
    assert_eq!(told["gates"]["schedule"]["allowed"], false, "{told}");
    assert_eq!(told["gates"]["evacuate"]["allowed"], false, "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_goes_with_its_node_unless_it_is_fenced_or_the_cluster_still_names_its_node() {
    let plane = block_in_place(control_plane);
    let machines = block_in_place(|| {
        ["n1", "n2"].map(|name| Kubelet::start(&plane, name, &KubeletOptions::default()).unwrap())
    });
    for name in ["n3", "n4", "n5", "n6", "n7", "n8"] {
        block_in_place(|| make_node(plane.api(), name));
    }
    block_in_place(|| define_objects(plane.api()));
    let options = StackOptions {
        hosts: 0,
        clusters: vec![ClusterSettings {
            // Its objects are there, and nothing serves them here.
            uses: ClusterUses {
                has_operator: true,
                has_records: false,
            },
            down_after: DOWN_AFTER,
            ..settings(plane.kubeconfig())
        }],
        observer: ObserverConfig {
            every: Duration::from_secs(1),
            down_after: chrono::TimeDelta::from_std(DOWN_AFTER).unwrap(),
            adopt: Some("default".to_owned()),
            remove_after: Some(chrono::TimeDelta::seconds(REMOVE_AFTER_S)),
        },
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Distributed).await, options).await;
    let by_hand = json!({ "name": "n9", "segment": "default", "backend": "kubernetes", "cloud": CLUSTER });
    stack.client.post("/hosts", by_hand).await.ok(201);
    let are_all = |list: &Value| list["hosts"].as_array().is_some_and(|hosts| hosts.len() == 9);
    stack.client.until_within("/hosts", PATIENCE, are_all).await;
    for machine in &machines {
        let path = format!("/hosts/{}", machine.name());
        let is_up = |host: &Value| host["failure_state"] == "UP";
        stack.client.until_within(&path, PATIENCE, is_up).await;
    }

    // One of the machines dies and is proven dead; the other one runs on, and its Node is made again at once.
    block_in_place(|| machines[0].kill());
    let is_silent = |host: &Value| host["failure_state"] == "UNREACHABLE";
    stack.client.until_within("/hosts/n1", PATIENCE, is_silent).await;
    let word = json!({ "generation": 0, "reason": "it is unplugged" });
    stack.client.post("/hosts/n1/confirm-fenced", word).await.ok(200);
    let is_over = |host: &Value| host["operation"].is_null();
    stack.client.until_within("/hosts/n1", PATIENCE, is_over).await;
    let before = stack.client.host("n2").await;
    block_in_place(|| {
        let api = plane.api();
        bind_pod(api, "n3");
        attach_volume(api, "n4");
        make_fence(api, "n7", false);
        make_fence(api, "n8", true);
        let known = api.get("/api/v1/nodes/n2").unwrap();
        delete_node(api, "n2");
        let again = make_node(api, "n2");
        assert_ne!(again["metadata"]["uid"], known["metadata"]["uid"]);
        for node in ["n1", "n3", "n4", "n5", "n7", "n8"] {
            delete_node(api, node);
        }
    });
    for host in ["n1", "n3", "n4", "n7", "n9"] {
        until_left(&stack, host).await;
    }
    until_removed(&stack, "n5").await;
    // What Ringfence has made itself holds nothing.
    until_removed(&stack, "n8").await;
    let audit = stack
        .client
        .get("/audit?host=n5&action=host.deleted")
        .await
        .ok(200);
    assert_eq!(audit["audit"][0]["actor"], "kubernetes:lab", "{audit}");
    let told = audit["audit"][0]["detail"]["reason"].as_str().unwrap();
    assert!(told.contains("nothing in it names the host"), "{audit}");

    stack.client.host("n3").await;
    block_in_place(|| {
        let (path, at_once) = (format!("{PODS}/held"), json!({ "gracePeriodSeconds": 0 }));
        let unheld = json!({ "metadata": { "finalizers": null } });
        plane.api().delete(&path, &at_once).unwrap();
        plane.api().patch(&path, &unheld).unwrap();
    });
    until_removed(&stack, "n3").await;
    // Its volume is attached.
    stack.client.host("n4").await;
    block_in_place(|| {
        plane
            .api()
            .delete(&format!("{ATTACHMENTS}/held"), &json!({}))
            .unwrap()
    });
    until_removed(&stack, "n4").await;

    // A person has named its node, and has not taken that back.
    stack.client.host("n7").await;
    block_in_place(|| plane.api().delete(&format!("{FENCES}/n7"), &json!({})).unwrap());
    until_removed(&stack, "n7").await;

    let fenced = stack.client.host("n1").await;
    assert_eq!(fenced["fencing_state"], "FENCED", "{fenced}");
    stack.client.host("n9").await;
    let path = "/hosts/n2";
    let is_up = |host: &Value| host["failure_state"] == "UP";
    let again = stack.client.until_within(path, PATIENCE, is_up).await;
    assert_eq!(again["id"], before["id"], "{again}");
    let told = stack.client.get("/hosts/n2/explanation").await.ok(200);
    assert_eq!(told["left_at"], Value::Null, "{told}");

    // A node of the name of one that was removed is another host.
    block_in_place(|| make_node(plane.api(), "n5"));
    let is_there = |list: &Value| !list["hosts"].as_array().unwrap().is_empty();
    stack
        .client
        .until_within("/hosts?name=n5", PATIENCE, is_there)
        .await;
    stack.client.host("n6").await;
    stack.stop().await;
}
