//! The gates in a cluster: which nodes the gate object has, and the marks of a node that others have taken away.

use std::time::Duration;

use ringfence_tests::{Ground, eventually};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{GATE, NAMESPACE, Plant};
use crate::metrics::numbers_of;
use crate::metrics::rules::WITH_A_CLUSTER;

const SOON: Duration = Duration::from_secs(60);

fn gate_path() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{GATE}")
}

fn until_gate(plant: &Plant, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let gate = || {
        plant
            .api()
            .until(what, &gate_path(), SOON, |gate| is_so(&gate["data"]))
    };
    block_in_place(|| gate().unwrap())
}

fn until_isolated(plant: &Plant, node: &str) {
    let is_isolated = |node: &Value| {
        let taints = node["spec"]["taints"].as_array();
        let ours = |taint: &Value| taint["key"] == "ringfence.io/fenced";
        node["spec"]["unschedulable"] == true && taints.is_some_and(|taints| taints.iter().any(ours))
    };
    let path = format!("/api/v1/nodes/{node}");
    block_in_place(|| plant.api().until("isolated", &path, SOON, is_isolated).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_gate_object_has_a_node_while_it_is_fenced_and_silent_and_its_marks_are_put_back() {
    let policy = json!({ "auto_rejoin": false, "evacuation": { "automatic": true } });
    let plant = Plant::start(Ground::Distributed, policy).await;
    until_gate(&plant, "a gate object without a node", |data| data.is_null());
    eventually(async || numbers_of(&plant.stack).await.has(WITH_A_CLUSTER)).await;
    // The entry of a node that is no host here.
    let foreign = json!({ "data": { "elsewhere": "3" } });
    block_in_place(|| plant.api().patch(&gate_path(), &foreign).unwrap());
    let pod = plant.until_running("db-0", |_| true);
    let dead = plant.node(&pod["spec"]["nodeName"]);
    let name = dead.name();

    block_in_place(|| dead.kill());
    plant.until_seen(name, "UNREACHABLE").await;
    let data = block_in_place(|| plant.api().get(&gate_path()).unwrap());
    assert_eq!(
        data["data"],
        json!({ "elsewhere": "3" }),
        "open before anything was proven"
    );
    plant.stack.client.fence(name).await;
    let evacuation = plant.until_ended(name, "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    let host = plant
        .stack
        .client
        .get(&format!("/hosts/{name}"))
        .await
        .ok(200)
        .clone();
    let generation = host["generation"].to_string();
    until_gate(&plant, "the node's entry", |data| {
        data[name] == generation.as_str()
    });

    // What others do: they delete the object, forge it, and take the marks off the node.
    block_in_place(|| plant.api().delete(&gate_path(), &json!({})).unwrap());
    until_gate(&plant, "the object again", |data| {
        data[name] == generation.as_str()
    });
    let forged = json!({ "data": { name: "1", "elsewhere": "4", "n1": "8", "n2": "8", "n3": "8" } });
    block_in_place(|| plant.api().patch(&gate_path(), &forged).unwrap());
    let right = json!({ name: generation, "elsewhere": "4" });
    until_gate(&plant, "the forged entries gone", |data| *data == right);
    let wiped = json!({ "spec": { "taints": null, "unschedulable": false } });
    block_in_place(|| {
        plant
            .api()
            .patch(&format!("/api/v1/nodes/{name}"), &wiped)
            .unwrap()
    });
    until_isolated(&plant, name);

    block_in_place(|| dead.start_again().unwrap());
    plant.until_seen(name, "UP").await;
    until_gate(&plant, "the entry gone", |data| {
        *data == json!({ "elsewhere": "4" })
    });
    until_isolated(&plant, name);
    let rejoin = json!({ "reason": "it is back" });
    plant
        .stack
        .client
        .post(&format!("/hosts/{name}/rejoin"), rejoin)
        .await;
    let rejoin = plant.until_ended(name, "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    // Nothing puts the marks of a node back that was released.
    let again = json!({ "metadata": { "labels": { "seen": "again" } } });
    let path = format!("/api/v1/nodes/{name}");
    block_in_place(|| plant.api().patch(&path, &again).unwrap());
    plant.until_seen(name, "UP").await;
    let node = block_in_place(|| plant.api().get(&path).unwrap());
    assert!(node["spec"]["unschedulable"] != true, "{}", node["spec"]);
    plant.stack.stop().await;
}
