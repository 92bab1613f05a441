//! The gates in a cluster: which nodes the gate object has, and the marks of a node that others have taken away.

use std::time::Duration;

use futures_util::future::join_all;
use ringfence_backends::kubernetes::Cluster;
use ringfence_backends::{Platform, StepOrder, StepReport, Unanswered};
use ringfence_core::{Backend, DEFAULT_ZONE, Generation, Movable, Outcome, PlatformHost, WorkloadStep};
use ringfence_lab::KubeApi;
use ringfence_tests::{Ground, eventually};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{CLUSTER, GATE, NAMESPACE, Plant, control_plane, settings};
use super::told::{FENCED, is_isolated, taint};
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
    marks_that_are_written_back_go_again(&plant, name);
    plant.stack.stop().await;
}

/// Another program writes the taints as it saw them before the release. On a node that was never fenced they may be those of a Ringfence
/// whose records are lost.
fn marks_that_are_written_back_go_again(plant: &Plant, released: &str) {
    let never_fenced = plant.nodes.iter().find(|node| node.name() != released).unwrap();
    let stale = json!({ "spec": { "taints": [{ "key": FENCED, "effect": "NoExecute" }] } });
    let path = |name: &str| format!("/api/v1/nodes/{name}");
    for name in [never_fenced.name(), released] {
        let node = block_in_place(|| plant.api().patch(&path(name), &stale).unwrap());
        assert!(taint(&node, FENCED).is_some(), "{node}");
    }
    let is_free = |node: &Value| taint(node, FENCED).is_none();
    block_in_place(|| plant.api().until("free", &path(released), SOON, is_free).unwrap());
    let other = block_in_place(|| plant.api().get(&path(never_fenced.name())).unwrap());
    assert!(!is_free(&other), "{}", other["spec"]);
}

/// Changes of ConfigMaps that the API server has answered so; 409 where an older version was to be changed.
fn changes_answered(api: &KubeApi, code: u16) -> f64 {
    let code = format!("code=\"{code}\"");
    let metrics = block_in_place(|| api.metrics().unwrap());
    let of_changes = |line: &&str| {
        let has = |part: &str| line.contains(part);
        line.starts_with("apiserver_request_total{")
            && has("resource=\"configmaps\"")
            && has("verb=\"PATCH\"")
    };
    let answered = metrics
        .lines()
        .filter(of_changes)
        .filter(|line| line.contains(&code));
    let counts = answered.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap());
    counts.sum()
}

async fn mark_down(cluster: &Cluster, node: &str) -> StepReport {
    let at = PlatformHost {
        backend: Backend::Kubernetes,
        platform: CLUSTER.to_owned(),
        host: node.to_owned(),
        zone: DEFAULT_ZONE.to_owned(),
    };
    let order = StepOrder {
        step: &WorkloadStep::MarkDown { evacuation: None },
        at: &at,
        movable: Movable::All,
        generation: Generation(1),
        unanswered: &Unanswered::default(),
    };
    cluster.carry_out(order, SOON).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_are_fenced_at_once_change_the_gate_object_together() {
    let plane = block_in_place(control_plane);
    let nodes: Vec<String> = (1..=30).map(|number| format!("n{number}")).collect();
    for node in &nodes {
        let object = json!({ "metadata": { "name": node } });
        block_in_place(|| plane.api().post("/api/v1/nodes", &object).unwrap());
    }
    let cluster = Cluster::new(settings(plane.kubeconfig()));
    // Makes the object.
    assert_eq!(mark_down(&cluster, "n1").await.outcome, Outcome::Confirmed);
    let reports = join_all(nodes.iter().map(|node| mark_down(&cluster, node))).await;
    for report in reports {
        assert_eq!(report.outcome, Outcome::Confirmed, "{}", report.detail);
    }
    let gate = block_in_place(|| plane.api().get(&gate_path()).unwrap());
    let entries = gate["data"].as_object().unwrap();
    assert!(nodes.iter().all(|node| entries[node] == "1"), "{entries:?}");
    assert_eq!(changes_answered(plane.api(), 409), 0.0);
    let changes = changes_answered(plane.api(), 200);
    assert!(changes > 0.0 && changes < 10.0, "{changes} for 30 nodes");
}
