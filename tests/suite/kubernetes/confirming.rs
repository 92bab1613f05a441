//! A person's word in a `NodeFence`, in a cluster that checks by its webhook who writes it, and in one that does not.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ringfence_backends::kubernetes::{Cluster, WordGate};
use ringfence_lab::KubernetesPrograms;
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::admission::{install, start_hook};
use super::node_fence::{FENCES, condition};
use super::plant::{Plant, role, settings};

const PATIENCE: Duration = Duration::from_secs(60);
/// A `NodeFence` that was made sooner after the check of words was installed may hold a word that was not checked.
const TAKEN_IN: Duration = Duration::from_secs(12);

/// A person with a certificate of their own.
struct Person {
    kubeconfig: PathBuf,
}

impl Person {
    fn new(plant: &Plant, name: &str, rules: &Value) -> Self {
        let user = block_in_place(|| plant.plane.user(name, rules).unwrap());
        let kubeconfig = plant.stack.site.dir.path().join(format!("{name}.kubeconfig"));
        std::fs::write(&kubeconfig, user.kubeconfig).unwrap();
        Self { kubeconfig }
    }

    /// Applies a `NodeFence` with this word: an error is what the API server answers.
    fn write(&self, node: &str, word: &Value) -> Result<(), String> {
        let mut object = json!({
            "apiVersion": "ringfence.io/v1alpha1", "kind": "NodeFence", "metadata": { "name": node },
            "spec": { "reason": "its fans stand still" },
        });
        if !word.is_null() {
            object["spec"]["confirmation"] = word.clone();
        }
        let programs = KubernetesPrograms::from_environment().unwrap();
        let mut kubectl = Command::new(programs.kubectl());
        kubectl.args(["apply", "--validate=false", "-f", "-", "--kubeconfig"]);
        let home = self.kubeconfig.parent().unwrap();
        let kubectl = kubectl.arg(&self.kubeconfig).env("HOME", home);
        let kubectl = kubectl
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut run = kubectl.spawn().unwrap();
        let mut text = run.stdin.take().unwrap();
        text.write_all(object.to_string().as_bytes()).unwrap();
        drop(text);
        let done = run.wait_with_output().unwrap();
        match done.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
        }
    }
}

fn word(generation: u64, by: &str) -> Value {
    json!({ "generation": generation, "reason": "I pulled its plug", "confirmedBy": by })
}

/// Waits until the condition `Confirmed` has this status and reason; returns its message.
fn until_told(plant: &Plant, node: &str, status: &str, reason: &str) -> String {
    let path = format!("{FENCES}/{node}");
    let is_so = |object: &Value| {
        let told = condition(object, "Confirmed");
        told["status"] == status && told["reason"] == reason
    };
    let found = block_in_place(|| {
        let what = format!("Confirmed {status}, {reason}");
        plant.api().until(&what, &path, PATIENCE, is_so).unwrap()
    });
    let message = condition(&found, "Confirmed")["message"].as_str().unwrap();
    message.to_owned()
}

/// The rights to ask for fences, and not to confirm them.
fn without_confirm(rules: &Value) -> Value {
    let mut rules = rules.clone();
    let verbs = rules[0]["verbs"].as_array_mut().unwrap();
    verbs.retain(|verb| verb != "confirm");
    rules
}

async fn lose(plant: &Plant, node: usize) -> String {
    let dead = &plant.nodes[node];
    dead.bmc().unwrap().silence().unwrap();
    block_in_place(|| dead.kill());
    plant.until_seen(dead.name(), "UNREACHABLE").await;
    dead.name().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_confirms_in_a_node_fence_under_the_name_that_the_cluster_has_authenticated() {
    let plant = Plant::start_with_operator(Ground::Distributed, json!({ "auto_rejoin": false })).await;
    let stop = CancellationToken::new();
    install(&plant, &start_hook(&plant, &stop));
    let installed = Instant::now();
    let rules = role("ringfence-confirmer");
    let alice = Person::new(&plant, "alice", &rules);
    let bob = Person::new(&plant, "bob", &without_confirm(&rules));
    let name = lose(&plant, 0).await;
    tokio::time::sleep(TAKEN_IN.saturating_sub(installed.elapsed())).await;

    bob.write(&name, &Value::Null).unwrap();
    let path = format!("{FENCES}/{name}");
    let is_fencing = |object: &Value| object["status"]["generation"] == 1;
    block_in_place(|| plant.api().until("a fence", &path, PATIENCE, is_fencing).unwrap());
    let refused = bob.write(&name, &word(1, "bob")).unwrap_err();
    assert!(refused.contains("the verb confirm"), "{refused}");
    let refused = bob.write(&name, &word(1, "alice")).unwrap_err();
    assert!(refused.contains("your own name is allowed"), "{refused}");
    let refused = alice.write(&name, &word(1, "bob")).unwrap_err();
    assert!(refused.contains("your own name is allowed"), "{refused}");

    alice.write(&name, &word(7, "alice")).unwrap();
    let stale = until_told(&plant, &name, "False", "GenerationStale");
    assert!(
        stale.contains("generation 7") && stale.contains("generation 1"),
        "{stale}"
    );
    let host = plant.stack.client.host(&name).await;
    assert_eq!(host["fencing_state"], "UNFENCED", "{host}");

    alice.write(&name, &word(1, "alice")).unwrap();
    let told = until_told(&plant, &name, "True", "Confirmed");
    assert_eq!(told, "alice has confirmed generation 1");
    let client = &plant.stack.client;
    let is_fenced = |host: &Value| host["fencing_state"] == "FENCED";
    let host = client
        .until_within(&format!("/hosts/{name}"), PATIENCE, is_fenced)
        .await;
    let actor = "kubernetes:lab user alice";
    let proof = &host["proofs"][0];
    assert_eq!(
        (&proof["kind"], &proof["source"]),
        (&json!("operator"), &json!(actor))
    );
    let audit = client.get("/audit?limit=1000").await.ok(200);
    let lines = audit["audit"].as_array().unwrap().iter();
    let mut words =
        lines.filter(|line| line["actor"] == actor && line["detail"].to_string().contains("plug"));
    assert!(words.next().is_some(), "{audit}");
    // What others change leaves the word as it is.
    let change = json!({ "spec": { "reason": "its fans stood still" } });
    block_in_place(|| plant.api().patch(&path, &change).unwrap());
    stop.cancel();
    plant.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_that_was_refused_is_not_taken_once_the_node_has_fallen_silent() {
    let plant = Plant::start_with_operator(Ground::Standalone, json!({ "auto_rejoin": false })).await;
    let stop = CancellationToken::new();
    install(&plant, &start_hook(&plant, &stop));
    tokio::time::sleep(TAKEN_IN).await;
    let alice = Person::new(&plant, "alice", &role("ringfence-confirmer"));
    alice.write("n2", &word(0, "alice")).unwrap();
    until_told(&plant, "n2", "False", "HostUp");
    let name = lose(&plant, 1).await;
    let path = format!("{FENCES}/{name}");
    let is_fencing = |object: &Value| object["status"]["status"] == "Running";
    block_in_place(|| {
        plant
            .api()
            .until("the fence", &path, PATIENCE, is_fencing)
            .unwrap()
    });
    // Several looks of the operator at a host that is being fenced.
    tokio::time::sleep(Duration::from_secs(5)).await;
    until_told(&plant, &name, "False", "HostUp");
    let host = plant.stack.client.host(&name).await;
    assert_eq!(host["fencing_state"], "UNFENCED", "{host}");
    stop.cancel();
    plant.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_word_is_not_taken_where_nothing_checks_who_writes_it_or_the_check_came_later() {
    let plant = Plant::start_with_operator(Ground::Standalone, json!({ "auto_rejoin": false })).await;
    let name = lose(&plant, 0).await;
    // Without the right, and under the name of another.
    let bob = Person::new(&plant, "bob", &without_confirm(&role("ringfence-confirmer")));
    let nameless = json!({ "generation": 0, "reason": "I pulled its plug" });
    bob.write(&name, &nameless).unwrap();
    let told = until_told(&plant, &name, "False", "NameMissing");
    assert!(told.contains("spec.confirmation.confirmedBy"), "{told}");
    bob.write(&name, &word(1, "alice")).unwrap();
    let told = until_told(&plant, &name, "False", "NotAuthenticated");
    assert!(
        told.contains("confirmations.ringfence.io is not installed")
            && told.contains("ringfence host confirm"),
        "{told}"
    );

    let stop = CancellationToken::new();
    install(&plant, &start_hook(&plant, &stop));
    let cluster = Cluster::new(settings(plant.kubeconfig()));
    assert!(matches!(
        cluster.word_gate().await.unwrap(),
        WordGate::Holds { .. }
    ));
    // Changed by another, so that it is looked at again.
    let path = format!("{FENCES}/{name}");
    let change = json!({ "spec": { "reason": "its fans stood still" } });
    block_in_place(|| plant.api().patch(&path, &change).unwrap());
    let is_so = |object: &Value| {
        let told = condition(object, "Confirmed")["message"]
            .as_str()
            .unwrap_or_default();
        told.contains("was made before")
    };
    block_in_place(|| {
        plant
            .api()
            .until("an older NodeFence", &path, PATIENCE, is_so)
            .unwrap()
    });
    let host = plant.stack.client.host(&name).await;
    assert_eq!(host["fencing_state"], "UNFENCED", "{host}");
    stop.cancel();
    plant.stack.stop().await;
}
