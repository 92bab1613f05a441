//! Ringfence in the cluster that it fences, with nothing beside it: two processes, of which one leads, and no database that outlives them.

use std::time::Duration;

use reqwest::Method;
use ringfence_lab::IpmiBmc;
use ringfence_tests::{Client, Machine, Service};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{CLUSTER, Cluster, PODS, define_objects};

const PATIENCE: Duration = Duration::from_secs(90);

fn start() -> Cluster {
    block_in_place(|| {
        let cluster = Cluster::start();
        define_objects(cluster.api());
        cluster
    })
}

/// One process.
struct Replica {
    service: Service,
    machine: Machine,
}

impl Replica {
    fn start(name: &str, cluster: &Cluster) -> Self {
        let machine = Machine::new();
        let configuration = machine.file("ringfence.toml");
        let text = format!(
            "[engine]\nname = {name:?}\n[kubernetes]\nclusters = [{CLUSTER:?}]\nkubeconfig = {:?}\n\
             adopt = [\"{CLUSTER}:default\"]\nrecords = {CLUSTER:?}\ndown_after_s = 6\nready_for_s = 2\n",
            cluster.plane.kubeconfig(),
        );
        std::fs::write(&configuration, text).unwrap();
        let service = machine.start(
            name,
            &[
                "standalone",
                "--config",
                "ringfence.toml",
                "--listen",
                "127.0.0.1:0",
                "--data-dir",
                "data",
            ],
        );
        Self { service, machine }
    }

    /// Waits until it leads.
    async fn client(&mut self) -> Client {
        let url = self.service.until_it_listens("ready").await;
        let token = std::fs::read_to_string(self.machine.file("data/admin.token")).unwrap();
        Client::new(&url, Some(token.trim()))
    }
}

async fn until_seen(client: &Client, host: &str, state: &str) -> Value {
    let path = format!("/hosts/{host}");
    client
        .until_within(&path, PATIENCE, |host| host["failure_state"] == state)
        .await
}

/// A plan whose power-off never comes to its end: nothing answers at the address of its BMC.
async fn configure(client: &Client, machine: &Machine, cluster: &Cluster, node: &str) {
    let secret = machine.file("bmc-password");
    std::fs::write(&secret, IpmiBmc::PASSWORD).unwrap();
    let method = json!({
        "name": "bmc", "resource": "power", "driver": "ipmi",
        "parameters": { "address": "127.0.0.1", "username": IpmiBmc::USER, "cipher": "3" },
        "secrets": { "password": format!("file:{}", secret.display()) },
    });
    client.post("/methods", method).await.ok(201);
    let stages =
        json!([{ "tasks": [{ "kind": "power.off", "levels": [{ "level": 1, "methods": ["bmc"] }] }] }]);
    client
        .post("/plans", json!({ "name": "default", "stages": stages }))
        .await
        .ok(201);
    let port = cluster.nodes.iter().find(|known| known.name() == node).unwrap();
    let parameters = json!({ "bmc": { "port": port.bmc().unwrap().port().to_string() } });
    client
        .patch(&format!("/hosts/{node}"), json!({ "parameters": parameters }))
        .await
        .ok(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_leader_finishes_what_the_one_before_had_begun_from_the_records_alone() {
    let cluster = start();
    let mut first = Replica::start("first", &cluster);
    let client = first.client().await;
    let mut second = Replica::start("second", &cluster);
    second.service.until_says(&["waiting for the lead"]).await;
    for node in &cluster.nodes {
        until_seen(&client, node.name(), "UP").await;
    }
    let pod = cluster.until_running("db-0", |_| true);
    let dead = cluster.node(&pod["spec"]["nodeName"]);
    let name = dead.name().to_owned();
    configure(&client, &first.machine, &cluster, &name).await;
    // The BMC does not answer, so that the fence stays under way.
    block_in_place(|| dead.bmc().unwrap().silence().unwrap());
    block_in_place(|| dead.kill());
    until_seen(&client, &name, "UNREACHABLE").await;
    let fence = client.fence(&name).await;
    let claimed = |operation: &Value| {
        let tasks = operation["stages"].as_array().unwrap().iter();
        let mut tasks = tasks.flat_map(|stage| stage["tasks"].as_array().unwrap());
        tasks.any(|task| task["kind"] == "power.off" && !task["attempts"].as_array().unwrap().is_empty())
    };
    client
        .until_within(
            &format!("/operations/{}", fence["id"].as_str().unwrap()),
            PATIENCE,
            claimed,
        )
        .await;
    first.service.kill();

    let client = second.client().await;
    let host = client.get(&format!("/hosts/{name}")).await.ok(200);
    assert_eq!(host["fencing_state"], "UNFENCED", "{host}");
    assert_eq!(host["generation"], 2, "the fence has not begun anew: {host}");
    let still = block_in_place(|| cluster.api().get(&format!("{PODS}/db-0")).unwrap());
    assert_eq!(
        still["metadata"]["uid"], pod["metadata"]["uid"],
        "removed before anything was proven"
    );
    block_in_place(|| dead.bmc().unwrap().wake().unwrap());
    let fenced = client
        .until_within(&format!("/hosts/{name}"), PATIENCE, |host| {
            host["fencing_state"] == "FENCED"
        })
        .await;
    assert_eq!(fenced["generation"], 2, "{fenced}");

    // FENCED and its proofs outlive the second leader.
    let mut third = Replica::start("third", &cluster);
    third.service.until_says(&["waiting for the lead"]).await;
    second.service.kill();
    let client = third.client().await;
    let host = client.get(&format!("/hosts/{name}")).await.ok(200);
    assert_eq!(host["fencing_state"], "FENCED", "{host}");
    assert_eq!(host["proofs"][0]["kind"], "power.off", "{host}");
    let gates = client.get(&format!("/hosts/{name}/gates")).await.ok(200);
    assert_eq!(
        gates["evacuate"]["allowed"], false,
        "nothing has seen the host yet: {gates}"
    );
    until_seen(&client, &name, "UNREACHABLE").await;
    client
        .until_within(&format!("/hosts/{name}/gates"), PATIENCE, |gates| {
            gates["evacuate"]["allowed"] == true
        })
        .await;
    client
        .post(
            &format!("/hosts/{name}/evacuate"),
            json!({ "reason": "its members are missed" }),
        )
        .await
        .ok(202);
    let next = cluster.until_running("db-0", |next| next["metadata"]["uid"] != pod["metadata"]["uid"]);
    assert_ne!(next["spec"]["nodeName"], *name);
    third.service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_was_halted_and_goes_on_can_do_nothing_more() {
    let cluster = start();
    let mut first = Replica::start("first", &cluster);
    let client = first.client().await;
    for node in &cluster.nodes {
        until_seen(&client, node.name(), "UP").await;
    }
    let name = cluster.nodes[1].name().to_owned();
    configure(&client, &first.machine, &cluster, &name).await;
    block_in_place(|| cluster.nodes[1].kill());
    until_seen(&client, &name, "UNREACHABLE").await;
    client.fence(&name).await;
    client
        .until_within(&format!("/hosts/{name}"), PATIENCE, |host| {
            host["fencing_state"] == "FENCED"
        })
        .await;
    let gates = client.get(&format!("/hosts/{name}/gates")).await.ok(200);
    assert_eq!(gates["evacuate"]["allowed"], true, "{gates}");
    first.service.halt();
    let mut second = Replica::start("second", &cluster);
    second.client().await;
    first.service.go_on();
    // Its database says that the gate is open, and it may not say so any more. It may end before it answers.
    let question = client.request(Method::GET, &format!("/hosts/{name}/gates"));
    if let Ok(answer) = question.send().await {
        assert_eq!(answer.status(), 503);
    }
    let status = first.service.until_it_ends().await;
    assert!(!status.success());
    second.service.stop().await;
}
