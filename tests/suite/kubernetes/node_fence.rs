//! `NodeFence` objects: made by hand, made by Ringfence, refused.

use std::time::Duration;

use ringfence_lab::{IpmiBmc, running_twice};
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{Plant, cells, kubectl};

pub const FENCES: &str = "/apis/ringfence.io/v1alpha1/nodefences";
const PATIENCE: Duration = Duration::from_secs(90);

fn make(plant: &Plant, name: &str, spec: &Value) -> Value {
    let object = json!({
        "apiVersion": "ringfence.io/v1alpha1", "kind": "NodeFence", "metadata": { "name": name }, "spec": spec,
    });
    block_in_place(|| plant.api().post(FENCES, &object).unwrap())
}

fn until(plant: &Plant, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let path = format!("{FENCES}/{name}");
    block_in_place(|| plant.api().until(what, &path, PATIENCE, is_so).unwrap())
}

fn delete(plant: &Plant, name: &str) {
    block_in_place(|| {
        plant
            .api()
            .delete(&format!("{FENCES}/{name}"), &json!({}))
            .unwrap()
    });
}

pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let mut found = conditions.into_iter().flatten();
    found.find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

fn is_refused(object: &Value, reason: &str) -> bool {
    let accepted = condition(object, "Accepted");
    accepted["status"] == "False" && accepted["reason"] == reason
}

/// The steps and states that an object has shown, each once in a row.
fn shown(versions: &[Value]) -> Vec<String> {
    let mut shown: Vec<String> = Vec::new();
    for version in versions {
        let status = &version["status"];
        let (Some(step), Some(stands)) = (status["step"].as_str(), status["status"].as_str()) else {
            continue;
        };
        let told = format!("{step} {stands}");
        if shown.last() != Some(&told) {
            shown.push(told);
        }
    }
    shown
}

/// The reasons of the events on an object, the oldest first.
fn events(plant: &Plant, kind: &str, name: &str) -> Vec<String> {
    let told = told(plant, kind, name);
    let reasons = told
        .iter()
        .map(|event| event["reason"].as_str().unwrap().to_owned());
    reasons.collect()
}

/// The events on an object, the oldest first.
fn told(plant: &Plant, kind: &str, name: &str) -> Vec<Value> {
    let path = "/apis/events.k8s.io/v1/namespaces/kube-system/events";
    let list = block_in_place(|| plant.api().get(path).unwrap());
    let mut events = list["items"].as_array().unwrap().clone();
    events.retain(|event| {
        event["regarding"]["kind"] == kind
            && event["regarding"]["name"] == name
            && event["reportingController"] == "ringfence.io/ringfence-operator"
    });
    events.sort_by_key(|event| event["eventTime"].as_str().unwrap_or_default().to_owned());
    events
}

fn people_see_a_fence_that_is_done(plant: &Plant, node: &str) {
    let administrator = plant.plane.kubeconfig();
    let table = cells(&kubectl(&administrator, &["get", "nf"]));
    let [columns, row] = &table[..] else {
        panic!("{table:?}");
    };
    assert_eq!(columns.join(" "), "NAME STEP STATUS FENCING SEEN REASON AGE");
    let (age, shown) = row.split_last().unwrap();
    let wanted = [
        node,
        "Power-Management",
        "Done",
        "FENCED",
        "UNREACHABLE",
        "its fans stand still",
    ];
    assert_eq!(shown, wanted);
    assert!(age.ends_with('s') || age.contains('m'), "{age}");
    let wide = cells(&kubectl(&administrator, &["get", "nf", "--output", "wide"]));
    assert_eq!(wide[0].last().unwrap(), "ACCEPTED");
    assert_eq!(wide[0].len(), wide[1].len(), "{wide:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_fence_made_by_hand_fences_a_dead_node_though_the_engine_dies_and_its_deletion_takes_the_node_back()
 {
    let mut plant = Plant::start_with_operator(Ground::Distributed, json!({})).await;
    let dead = &plant.nodes[0];
    block_in_place(|| dead.kill());
    plant.until_seen(dead.name(), "UNREACHABLE").await;
    let bmc = dead.bmc().unwrap();
    bmc.silence().unwrap();

    let made = make(&plant, dead.name(), &json!({ "reason": "its fans stand still" }));
    until(&plant, dead.name(), "the node isolated", |object| {
        object["status"]["status"] == "Running"
    });
    plant.replace_engine().await;
    let dead = &plant.nodes[0];
    dead.bmc().unwrap().wake().unwrap();
    let done = until(&plant, dead.name(), "the fence done", |object| {
        object["status"]["status"] == "Done"
    });
    assert_eq!(condition(&done, "Fenced")["status"], "True", "{done}");
    assert_eq!(done["status"]["proofs"][0]["kind"], "power.off", "{done}");
    assert_eq!(done["status"]["retries"], 0, "{done}");
    people_see_a_fence_that_is_done(&plant, dead.name());
    assert!(!dead.is_running());
    let host = plant.stack.client.host(dead.name()).await;
    assert_eq!(host["fencing_state"], "FENCED", "{host}");
    let fence = plant.until_ended(dead.name(), "fence").await;
    assert_eq!(fence["reason"], "its fans stand still");
    assert_eq!(fence["requested_by"], "kubernetes:lab NodeFence");

    delete(&plant, dead.name());
    until(&plant, dead.name(), "a rejoin asked for", |object| {
        condition(object, "Released")["reason"] == "RejoinRunning"
    });
    let rejoin = plant.until_ended(dead.name(), "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    until(&plant, dead.name(), "the NodeFence gone", Value::is_null);

    let after = made["metadata"]["resourceVersion"].as_str().unwrap();
    let versions = block_in_place(|| plant.api().versions(FENCES, dead.name(), after).unwrap());
    let shown = shown(&versions);
    let wanted = [
        "Isolation New",
        "Power-Management Running",
        "Power-Management Done",
        "Recovery Done",
    ];
    assert_eq!(shown, wanted);
    for (kind, reasons) in [
        (
            "Node",
            &["FenceStarted", "Proven", "Fenced", "RejoinStarted", "Unfenced"][..],
        ),
        ("NodeFence", &["Proven", "Fenced", "RejoinStarted"][..]),
    ] {
        let told = events(&plant, kind, dead.name());
        let mut told = told.iter();
        assert!(
            reasons.iter().all(|reason| told.any(|one| one == reason)),
            "{kind}: {:?}",
            events(&plant, kind, dead.name())
        );
    }
    assert_eq!(block_in_place(|| running_twice(&plant.nodes).unwrap()), None);
    plant.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_fence_that_cannot_be_carried_out_says_why() {
    let plant = Plant::start_with_operator(Ground::Standalone, json!({})).await;
    make(
        &plant,
        "n1",
        &json!({ "confirmation": { "generation": 0, "reason": "I saw it" } }),
    );
    let refused = until(&plant, "n1", "a node that is UP refused", |object| {
        is_refused(object, "HostUp")
    });
    assert_eq!(refused["status"]["status"], "New", "{refused}");
    let message = condition(&refused, "Accepted")["message"].as_str().unwrap();
    assert!(message.contains("seen UP (by kubernetes:lab)"), "{message}");
    let word = condition(&refused, "Confirmed");
    assert_eq!(word["reason"], "NameMissing", "{refused}");
    let host = plant.stack.client.host("n1").await;
    assert_eq!(
        (&host["fencing_state"], &host["operation"]),
        (&json!("UNFENCED"), &Value::Null)
    );

    let forged =
        json!({ "status": { "status": "Final", "fencingState": "FENCED", "record": { "kept": 1 } } });
    block_in_place(|| {
        plant
            .api()
            .patch(&format!("{FENCES}/n1/status"), &forged)
            .unwrap()
    });
    let mended = until(&plant, "n1", "a forged status overwritten", |object| {
        object["status"]["status"] == "New" && object["status"]["fencingState"] == "UNFENCED"
    });
    assert_eq!(mended["status"]["record"]["kept"], 1, "{mended}");
    delete(&plant, "n1");
    until(&plant, "n1", "what was never carried out gone", Value::is_null);

    make(&plant, "n9", &json!({}));
    let unknown = until(&plant, "n9", "a node that does not exist refused", |object| {
        is_refused(object, "HostUnknown")
    });
    assert_eq!(unknown["metadata"]["finalizers"], Value::Null, "{unknown}");
    make(&plant, "n2", &json!({ "nodeName": "n3" }));
    until(&plant, "n2", "another name refused", |object| {
        is_refused(object, "NodeNameDiffers")
    });
    block_in_place(|| plant.nodes[2].kill());
    plant.until_seen("n3", "UNREACHABLE").await;
    make(&plant, "n3", &json!({ "plan": "another" }));
    until(&plant, "n3", "another plan refused", |object| {
        is_refused(object, "PlanDiffers")
    });
    let path = format!("{FENCES}/n3");
    let suspended = json!({ "spec": { "plan": null, "suspend": true } });
    block_in_place(|| plant.api().patch(&path, &suspended).unwrap());
    until(&plant, "n3", "a suspended one", |object| {
        is_refused(object, "Suspended") && object["status"]["suspendedUntil"].is_string()
    });
    let suspension = plant.stack.client.host("n3").await["suspension"].clone();
    assert_eq!(suspension["by"], "kubernetes:lab NodeFence", "{suspension}");
    let resumed = json!({ "spec": { "suspend": false } });
    block_in_place(|| plant.api().patch(&path, &resumed).unwrap());
    until(&plant, "n3", "the fence done", |object| {
        object["status"]["status"] == "Done"
    });
    let rejoin = json!({ "reason": "repaired" });
    plant.stack.client.post("/hosts/n3/rejoin", rejoin).await.ok(202);
    let taken_back = until(&plant, "n3", "the node taken back", |object| {
        object["status"]["status"] == "Final"
    });
    assert_eq!(taken_back["status"]["step"], "Recovery", "{taken_back}");
    block_in_place(|| plant.nodes[2].kill());
    plant.until_seen("n3", "UNREACHABLE").await;
    let once = until(&plant, "n3", "a fence asked for once", |object| {
        object["status"]["failureState"] == "UNREACHABLE"
    });
    assert_eq!(once["status"]["status"], "Final", "{once}");

    // Another one asks for a fence, whose device does not answer; the person who looks at the NodeFence suspends it.
    plant.nodes[2].bmc().unwrap().silence().unwrap();
    plant.stack.client.fence("n3").await;
    until(&plant, "n3", "two attempts of which nothing is known", |object| {
        let attempts = object["status"]["attempts"].as_array();
        let unknown = attempts.into_iter().flatten();
        unknown.filter(|attempt| attempt["outcome"] == "unknown").count() >= 2
    });
    for kind in ["Node", "NodeFence"] {
        let mut told = told(&plant, kind, "n3");
        told.retain(|event| event["reason"] == "AttemptUnknown");
        assert_eq!(
            told.len(),
            1,
            "one on the {kind}, however often it is tried: {told:?}"
        );
        let note = told[0]["note"].as_str().unwrap();
        assert_eq!(told[0]["type"], "Warning", "{note}");
        assert!(
            note.starts_with("power.off with method bmc, fence of generation 3: unknown, "),
            "{note}"
        );
        assert!(note.ends_with("ringfence method check bmc --host n3"), "{note}");
        assert!(!note.contains(IpmiBmc::PASSWORD), "{note}");
    }
    let set = |suspend: bool, until: Value| {
        let change = json!({ "spec": { "suspend": suspend, "suspendUntil": until } });
        block_in_place(|| plant.api().patch(&path, &change))
    };
    let live = |status: &'static str| {
        move |list: &Value| {
            list["operations"][0]["status"] == status && list["operations"][0]["kind"] == "fence"
        }
    };
    let operations = "/operations?host=n3&sort=created_at:desc&limit=1";
    let client = &plant.stack.client;
    set(true, json!(null)).unwrap();
    client.until(operations, live("held")).await;
    assert!(
        set(true, json!("tomorrow")).is_err(),
        "the API server takes what is no time"
    );
    set(true, json!("2199-01-01T00:00:00Z")).unwrap();
    let refused = until(&plant, "n3", "an end that is too far away refused", |object| {
        is_refused(object, "Invalid")
    });
    let why = condition(&refused, "Accepted")["message"].as_str().unwrap();
    assert!(why.contains("an end within 30 days is allowed"), "{why}");
    set(true, json!("2026-01-01T00:00:00Z")).unwrap();
    until(&plant, "n3", "a suspension that is over", |object| {
        is_refused(object, "SuspensionEnded")
    });
    client.until(operations, live("running")).await;
    assert_eq!(client.host("n3").await["suspension"], Value::Null);
    plant.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_that_ringfence_begins_by_itself_is_shown_by_a_node_fence_that_goes_with_it() {
    let policy = json!({
        "auto_rejoin": true,
        "fencing": { "automatic": true, "after_s": 0, "at_most": 5, "within_s": 600, "at_most_percent": 60 },
    });
    let plant = Plant::start_with_operator(Ground::Distributed, policy).await;
    let dead = &plant.nodes[1];
    let namespace = json!({ "metadata": { "name": "medik8s-leases" } });
    block_in_place(|| plant.api().post("/api/v1/namespaces", &namespace).unwrap());
    block_in_place(|| dead.kill());
    let done = until(&plant, dead.name(), "a NodeFence that Ringfence made", |object| {
        object["status"]["status"] == "Done"
    });
    assert_eq!(
        done["metadata"]["labels"]["ringfence.io/made-by"], "ringfence",
        "{done}"
    );
    assert_eq!(
        condition(&done, "Accepted")["reason"],
        "MadeByRingfence",
        "{done}"
    );
    let lease = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases/node-n2";
    let held = block_in_place(|| plant.api().get(lease).unwrap());
    assert_eq!(held["spec"]["holderIdentity"], "ringfence-operator", "{held}");
    block_in_place(|| dead.start_again().unwrap());
    let rejoin = plant.until_ended(dead.name(), "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    until(&plant, dead.name(), "the NodeFence gone", Value::is_null);
    let freed = block_in_place(|| plant.api().get(lease).unwrap());
    assert_eq!(freed["spec"]["holderIdentity"], Value::Null, "{freed}");
    plant.stack.stop().await;
}
