//! A node that is cut off from its storage alone, and may still run.

use std::time::Duration;

use chrono::{DateTime, Utc};
use ringfence_core::Resource;
use ringfence_lab::{Kubelet, LabError};
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;
use tokio_util::sync::CancellationToken;

use super::admission::{install, start_hook, until_asked};
use super::plant::{GATE, NAMESPACE, PODS, Plant};
use super::told::{FENCED, taint};

const PATIENCE: Duration = Duration::from_secs(60);

/// A pod of no controller, beside the members of the set.
fn run_beside(plant: &Plant, name: &str, node: &str, volume: Value) -> Value {
    let pod = json!({
        "metadata": { "name": name },
        "spec": {
            "nodeName": node,
            "containers": [{ "name": "main", "image": "none", "volumeMounts": [{ "name": "own", "mountPath": "/own" }] }],
            "volumes": [volume],
        },
    });
    block_in_place(|| plant.api().post(PODS, &pod).unwrap())["metadata"]["uid"].clone()
}

fn uid_of(plant: &Plant, name: &str) -> Value {
    let pods = block_in_place(|| plant.api().get(PODS).unwrap());
    let mut pods = pods["items"].as_array().unwrap().iter();
    let found = pods.find(|pod| pod["metadata"]["name"] == name);
    found.map_or(Value::Null, |pod| pod["metadata"]["uid"].clone())
}

/// What the gate object says of a node: whether all may go, and what else may.
fn gate_of(plant: &Plant, node: &str) -> (bool, Vec<String>) {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{GATE}");
    let gate = block_in_place(|| plant.api().get(&path).unwrap());
    let some = gate["data"][format!("{node}_only")].as_str().unwrap_or_default();
    let named = some.lines().filter(|line| !line.is_empty()).map(str::to_owned);
    (!gate["data"][node].is_null(), named.collect())
}

/// Storage alone makes the node FENCED, and its power is cut as well.
async fn plan_by_storage_or_power(plant: &Plant, name: &str) {
    let client = &plant.stack.client;
    plant.stack.method_on("array", Resource::Storage, "h1").await;
    let by =
        |kind: &str, method: &str| json!({ "kind": kind, "levels": [{ "level": 1, "methods": [method] }] });
    let stages = json!([{ "tasks": [by("storage.fence", "array"), by("power.off", "bmc")] }]);
    let plan = json!({
        "name": "cut-off", "scope": { "kind": "host", "value": name }, "stages": stages,
        "sufficient_sets": [["storage.fence"], ["power.off"]],
    });
    client.post("/plans", plan).await.ok(201);
}

async fn names_of_moved(plant: &Plant, evacuation: &Value) -> Vec<String> {
    let moves = plant.moves(evacuation).await;
    moves
        .iter()
        .map(|one| one["name"].as_str().unwrap().to_owned())
        .collect()
}

/// The node falls silent, and its BMC too.
async fn lose(plant: &Plant, node: &Kubelet) {
    block_in_place(|| node.bmc().unwrap().silence().unwrap());
    block_in_place(|| node.kill());
    plant.until_seen(node.name(), "UNREACHABLE").await;
}

/// It is FENCED by its storage alone, and evacuated until the member runs elsewhere.
async fn evacuate_by_storage(plant: &Plant, node: &str, member: &Value) {
    let client = &plant.stack.client;
    client.fence(node).await;
    let path = format!("/hosts/{node}");
    let is_fenced = |host: &Value| host["fencing_state"] == "FENCED";
    client.until_within(&path, PATIENCE, is_fenced).await;
    let reason = json!({ "reason": "its members are missed" });
    client.post(&format!("{path}/evacuate"), reason).await.ok(202);
    let next = plant.until_running("db-0", |next| {
        next["metadata"]["uid"] != member["metadata"]["uid"]
    });
    assert_ne!(next["spec"]["nodeName"], node);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storage_alone_lets_those_pods_go_whose_volumes_are_on_it_and_power_the_rest() {
    let plant = Plant::start(Ground::Standalone, json!({})).await;
    let pod = plant.until_running("db-0", |_| true);
    let node = plant.node(&pod["spec"]["nodeName"]);
    let name = node.name();
    let on_disk = json!({ "name": "own", "hostPath": { "path": "/var/lib/own" } });
    let on_disk = run_beside(&plant, "on-disk", name, on_disk);
    // As long as a pod's name may be.
    let long = format!("scratch-{}", "x".repeat(245));
    let scratch = run_beside(&plant, &long, name, json!({ "name": "own", "emptyDir": {} }));
    // Its pod's object is gone, and its node may still write to it.
    let attachments = "/apis/storage.k8s.io/v1/volumeattachments";
    let foreign = json!({
        "metadata": { "name": "foreign" },
        "spec": { "attacher": "other.csi", "nodeName": name, "source": { "persistentVolumeName": "foreign" } },
    });
    block_in_place(|| plant.api().post(attachments, &foreign).unwrap());
    let is_attached = || {
        block_in_place(|| {
            plant
                .api()
                .find(&format!("{attachments}/foreign"))
                .unwrap()
                .is_some()
        })
    };
    let client = &plant.stack.client;
    plan_by_storage_or_power(&plant, name).await;
    lose(&plant, node).await;
    evacuate_by_storage(&plant, name, &pod).await;
    let path = format!("/hosts/{name}");
    assert_eq!(uid_of(&plant, "on-disk"), on_disk);
    assert_eq!(uid_of(&plant, &long), scratch);
    // Longer than the observer waits between two looks, after which it brings the gate object to what holds.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let (is_open, named) = gate_of(&plant, name);
    assert!(!is_open, "the cluster would let go of all of them");
    let of = |uid: &Value| named.iter().any(|name| Some(name.as_str()) == uid.as_str());
    assert!(of(&pod["metadata"]["uid"]), "{named:?}");
    assert!(!of(&on_disk) && !of(&scratch), "{named:?}");
    assert!(is_attached(), "nothing cuts its node off from that storage");
    let gates = client.get(&format!("{path}/gates")).await.ok(200);
    assert_eq!(gates["evacuate"]["allowed"], true, "{gates}");

    block_in_place(|| node.bmc().unwrap().wake().unwrap());
    let evacuation = plant.until_ended(name, "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    let mut moved = names_of_moved(&plant, &evacuation).await;
    moved.sort();
    let scratch = format!("default/{long}");
    assert_eq!(moved, ["default/db-0", "default/on-disk", scratch.as_str()]);
    assert_eq!(uid_of(&plant, "on-disk"), Value::Null);
    assert_eq!(uid_of(&plant, &long), Value::Null);
    assert!(!is_attached());
    assert_eq!(gate_of(&plant, name), (true, vec![]));
    storage_comes_back_to_another_boot_before_pods_do(&plant, node).await;
    plant.stack.stop().await;
}

async fn storage_comes_back_to_another_boot_before_pods_do(plant: &Plant, node: &Kubelet) {
    let (name, boot) = (node.name(), node.boot_id());
    let path = format!("/hosts/{name}");
    let reason = json!({ "reason": "it is mended" });
    let client = &plant.stack.client;
    client.post(&format!("{path}/rejoin"), reason).await.ok(202);
    let rejoin = plant.until_ended(name, "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    let stages = rejoin["stages"].as_array().unwrap().iter();
    let tasks: Vec<&Value> = stages
        .flat_map(|stage| stage["tasks"].as_array().unwrap())
        .collect();
    let last = |kind: &str| {
        let task = tasks.iter().find(|task| task["kind"] == kind).unwrap();
        let attempt = task["attempts"].as_array().unwrap().last().unwrap();
        assert_eq!(attempt["outcome"], "confirmed", "{attempt}");
        let at = |what: &str| attempt[what].as_str().unwrap().parse::<DateTime<Utc>>().unwrap();
        (at("claimed_at"), at("ended_at"))
    };
    assert!(last("power.on").1 <= last("storage.unfence").0, "{rejoin}");
    assert!(
        last("storage.unfence").1 <= last("workloads.mark-up").0,
        "{rejoin}"
    );
    assert_ne!(node.boot_id(), boot);
    let host = client.get(&path).await.ok(200);
    assert_eq!(
        (&host["fencing_state"], &host["applied_fencing"]),
        (&json!("UNFENCED"), &json!([]))
    );
    let node = block_in_place(|| plant.api().get(&format!("/api/v1/nodes/{name}")).unwrap());
    assert!(
        taint(&node, FENCED).is_none() && node["spec"]["unschedulable"] != true,
        "{}",
        node["spec"]
    );
}

/// A forced deletion by an administrator that changes nothing: `None` if it is let through, and else why not.
fn refused(plant: &Plant, path: &str) -> Option<String> {
    let forced = json!({ "gracePeriodSeconds": 0 });
    let tried = block_in_place(|| plant.api().delete(&format!("{path}?dryRun=All"), &forced));
    match tried {
        Ok(_) => None,
        Err(LabError::Refused { body, .. }) => Some(body),
        Err(other) => panic!("{path}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_webhooks_let_the_pods_go_that_are_named_and_hold_all_others() {
    let plant = Plant::start(Ground::Standalone, json!({ "auto_rejoin": false })).await;
    let stop = CancellationToken::new();
    let pod = plant.until_running("db-0", |_| true);
    let node = plant.node(&pod["spec"]["nodeName"]);
    let name = node.name();
    let on_disk = json!({ "name": "own", "hostPath": { "path": "/var/lib/own" } });
    let on_disk = run_beside(&plant, "on-disk", name, on_disk);
    let label = json!({ "metadata": { "labels": { "ringfence.io/guarded": "true" } } });
    let (member, beside) = (format!("{PODS}/db-0"), format!("{PODS}/on-disk"));
    for path in [&member, &beside] {
        block_in_place(|| plant.api().patch(path, &label).unwrap());
    }
    install(&plant, &start_hook(&plant, &stop));
    block_in_place(|| until_asked(plant.api(), &member));
    plan_by_storage_or_power(&plant, name).await;
    lose(&plant, node).await;
    // A node that the cluster calls Ready may be deleted.
    block_in_place(|| node.until_not_ready().unwrap());
    assert!(refused(&plant, &member).is_some());
    // Ringfence deletes the member by force, and the hook is asked.
    evacuate_by_storage(&plant, name, &pod).await;
    let told = refused(&plant, &beside).unwrap();
    assert!(told.contains("this was not named"), "{told}");
    assert!(refused(&plant, &format!("/api/v1/nodes/{name}")).is_some());
    assert_eq!(uid_of(&plant, "on-disk"), on_disk);

    // The node is back, and another program has named the pod that stayed.
    let gate = format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{GATE}");
    let entry = block_in_place(|| plant.api().get(&gate).unwrap())["data"][format!("{name}_only")].clone();
    let entry = format!("{}{}\n", entry.as_str().unwrap(), on_disk.as_str().unwrap());
    let forged = json!({ "data": { format!("{name}_only"): entry } });
    block_in_place(|| plant.api().patch(&gate, &forged).unwrap());
    assert_eq!(refused(&plant, &beside), None, "what is named may go");
    block_in_place(|| node.start_again().unwrap());
    plant.until_seen(name, "UP").await;
    block_in_place(|| plant.api().patch(&gate, &forged).unwrap());
    assert!(
        refused(&plant, &beside).is_some(),
        "the gate object alone opens nothing"
    );
    stop.cancel();
    plant.stack.stop().await;
}
