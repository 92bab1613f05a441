//! Ringfence in the cluster that it fences, with nothing beside it: two processes, of which one leads, and no database that outlives them.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use reqwest::Method;
use ringfence_lab::{ControlPlane, IpmiBmc};
use ringfence_tests::{Client, Machine, Service, now};
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
pub struct Replica {
    pub service: Service,
    pub machine: Machine,
}

impl Replica {
    pub fn start(name: &str, plane: &ControlPlane) -> Self {
        Self::start_with(name, plane, "", "")
    }

    /// With more keys of the section `kubernetes`, and more sections.
    pub fn start_with(name: &str, plane: &ControlPlane, keys: &str, sections: &str) -> Self {
        let machine = Machine::new();
        let configuration = machine.file("ringfence.toml");
        let text = format!(
            "[engine]\nname = {name:?}\n[kubernetes]\nclusters = [{CLUSTER:?}]\nkubeconfig = {:?}\n\
             adopt = [\"{CLUSTER}:default\"]\nrecords = {CLUSTER:?}\ndown_after_s = 6\nready_for_s = 2\n{keys}\n{sections}\n",
            plane.kubeconfig(),
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
    pub async fn client(&mut self) -> Client {
        let url = self.service.until_it_listens("ready").await;
        let token = std::fs::read_to_string(self.machine.file("data/admin.token")).unwrap();
        Client::new(&url, Some(token.trim()))
    }
}

pub(super) async fn until_seen(client: &Client, host: &str, state: &str) -> Value {
    let path = format!("/hosts/{host}");
    client
        .until_within(&path, PATIENCE, |host| host["failure_state"] == state)
        .await
}

/// A plan whose power-off never comes to its end: nothing answers at the address of its BMC.
pub(super) async fn configure(client: &Client, machine: &Machine, cluster: &Cluster, node: &str) {
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

/// Waits until the power-off of a fence was claimed.
pub(super) async fn until_claimed(client: &Client, fence: &Value) {
    let claimed = |operation: &Value| {
        let tasks = operation["stages"].as_array().unwrap().iter();
        let mut tasks = tasks.flat_map(|stage| stage["tasks"].as_array().unwrap());
        tasks.any(|task| task["kind"] == "power.off" && !task["attempts"].as_array().unwrap().is_empty())
    };
    let path = format!("/operations/{}", fence["id"].as_str().unwrap());
    client.until_within(&path, PATIENCE, claimed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_leader_finishes_what_the_one_before_had_begun_from_the_records_alone() {
    let cluster = start();
    let mut first = Replica::start("first", &cluster.plane);
    let client = first.client().await;
    let mut second = Replica::start("second", &cluster.plane);
    second.service.until_says(&["waiting for the lead"]).await;
    a_replica_that_waits_lives_and_is_not_ready(&mut second).await;
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
    until_claimed(&client, &fence).await;
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
    let mut third = Replica::start("third", &cluster.plane);
    third.service.until_says(&["waiting for the lead"]).await;
    second.service.kill();
    let killed_at = now();
    let client = third.client().await;
    let gates = client.get(&format!("/hosts/{name}/gates")).await.ok(200);
    let host = client.get(&format!("/hosts/{name}")).await.ok(200);
    assert_eq!(host["fencing_state"], "FENCED", "{host}");
    assert_eq!(host["proofs"][0]["kind"], "power.off", "{host}");
    // A slow machine has watched the host's silence for long enough by now.
    if gates["evacuate"]["allowed"] == true {
        let observed_at = host["failure_observed_at"].as_str().unwrap();
        let observed_at: DateTime<Utc> = observed_at.parse().unwrap();
        assert!(
            observed_at - killed_at >= TimeDelta::seconds(6),
            "nothing had seen the host by {killed_at}: {gates}, {host}"
        );
    }
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
    let mut first = Replica::start("first", &cluster.plane);
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
    let well = cluster.nodes[0].name();
    for question in questions(&name, well) {
        assert!(question.ask(&client).await.unwrap(), "{question:?}");
    }
    first.service.halt();
    let mut second = Replica::start("second", &cluster.plane);
    second.client().await;
    // Its database says that the gates are open, and it may not say so any more. The questions wait for it, and it may end before it answers all.
    let asked = questions(&name, well).map(|question| {
        let client = client.clone();
        tokio::spawn(async move { question.ask(&client).await })
    });
    tokio::time::sleep(Duration::from_millis(500)).await;
    first.service.go_on();
    let mut answered = 0;
    for asked in asked {
        let is_open = asked.await.unwrap();
        assert_ne!(is_open, Some(true), "it still opens");
        answered += usize::from(is_open.is_some());
    }
    assert!(answered > 0, "it has ended before it answered anything");
    let status = first.service.until_it_ends().await;
    assert!(!status.success());
    second.service.stop().await;
}

/// What is asked of a leader.
#[derive(Clone, Debug)]
struct Question {
    path: String,
    body: Option<Value>,
    /// Where an answer says that something is open, and what it says.
    open: (&'static str, Value),
}

impl Question {
    /// Whether the answer opens something; none if there is no answer.
    async fn ask(&self, client: &Client) -> Option<bool> {
        let request = match &self.body {
            Some(body) => client.request(Method::POST, &self.path).json(body),
            None => client.request(Method::GET, &self.path),
        };
        let answer: Value = request.send().await.ok()?.json().await.ok()?;
        let (place, says) = &self.open;
        Some(answer.pointer(place) == Some(says))
    }
}

/// The questions of a person, a scheduler and an API server about a node that is FENCED, and about one that is well.
fn questions(fenced: &str, well: &str) -> [Question; 6] {
    let gates = |node: &str, open| Question {
        path: format!("/hosts/{node}/gates"),
        body: None,
        open: (open, json!(true)),
    };
    let filter = Question {
        path: "/kubernetes/filter".to_owned(),
        body: Some(json!({ "NodeNames": [well] })),
        open: ("/NodeNames", json!([well])),
    };
    let placing = Question {
        path: "/nova/filter".to_owned(),
        body: Some(json!({ "cloud": CLUSTER, "hosts": [well] })),
        open: ("/allowed", json!([well])),
    };
    let leaving = Question {
        path: "/nova/evacuate-check".to_owned(),
        body: Some(json!({ "cloud": CLUSTER, "host": fenced })),
        open: ("/allowed", json!(true)),
    };
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "DELETE", "resource": { "group": "", "version": "v1", "resource": "nodes" },
            "userInfo": { "username": "admin" }, "oldObject": { "metadata": { "name": fenced } },
        },
    });
    let admission = Question {
        path: format!("/kubernetes/admission/{CLUSTER}"),
        body: Some(review),
        open: ("/response/allowed", json!(true)),
    };
    [
        gates(fenced, "/evacuate/allowed"),
        gates(well, "/schedule/allowed"),
        filter,
        placing,
        leaving,
        admission,
    ]
}

async fn a_replica_that_waits_lives_and_is_not_ready(waiting: &mut Replica) {
    let url = waiting
        .service
        .until_it_listens("answers that it waits for the lead")
        .await;
    let client = Client::new(&url, None);
    client.get("/healthcheck?probe=live").await.ok(200);
    for path in [
        "/healthcheck?probe=ready",
        "/healthcheck",
        "/hosts",
        "/kubernetes/filter",
    ] {
        let answer = client.get(path).await;
        assert_eq!(
            (answer.status, answer.code()),
            (503, "fencing.lead.waiting"),
            "{path}"
        );
    }
}
