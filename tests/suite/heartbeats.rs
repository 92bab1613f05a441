//! Hosts that write to a shared storage are alive, whatever the network says.

use std::path::Path;
use std::time::Duration;

use ringfence_core::Resource;
use ringfence_tests::{Ground, Site, Stack, StackOptions, power_plan};
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use crate::api::refused;
use crate::on_both_grounds;

const SOURCE: &str = "heartbeat:nfs";
/// A reading every 5 s, and 15 s of silence.
const SOON: Duration = Duration::from_secs(60);

/// A host that writes to its file until it is dropped.
struct Writing {
    _task: AbortOnDropHandle<()>,
}

impl Writing {
    fn begin(directory: &Path, host: &str) -> Self {
        let path = directory.join(host);
        let writing = async move {
            for number in 0_u64.. {
                tokio::fs::write(&path, number.to_string()).await.unwrap();
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        Self {
            _task: AbortOnDropHandle::new(tokio::spawn(writing)),
        }
    }
}

fn policy(heartbeats: &[&str]) -> Value {
    json!({
        "heartbeats": heartbeats,
        "fencing": { "automatic": true, "after_s": 20, "at_most": 10, "at_most_percent": 100 },
    })
}

fn method(directory: &Path) -> Value {
    json!({
        "name": "nfs", "resource": "heartbeat", "driver": "heartbeat-file",
        "parameters": { "directory": directory.to_str().unwrap(), "silent_after_s": "15" },
    })
}

async fn with_heartbeats(ground: Ground, directory: &Path, options: &StackOptions) -> Stack {
    let stack = Stack::start_with(Site::new(ground).await, options.clone()).await;
    stack.client.post("/methods", method(directory)).await.ok(201);
    stack.client.set_default_policy(policy(&["nfs"])).await.ok(200);
    stack.plan(power_plan()).await;
    stack.observe().await;
    stack
}

fn says(host: &Value, state: &str) -> bool {
    let sources = host["sources"].as_array().unwrap();
    sources
        .iter()
        .any(|source| source["name"] == SOURCE && source["state"] == state)
}

async fn until_says(stack: &Stack, host: &str, state: &str) -> Value {
    let path = format!("/hosts/{host}");
    let is_said = |host: &Value| says(host, state);
    stack.client.until_within(&path, SOON, is_said).await
}

on_both_grounds!(
    a_host_that_answers_no_monitor_and_goes_on_writing_is_not_fenced_by_itself_and_is_once_it_stops
);

async fn a_host_that_answers_no_monitor_and_goes_on_writing_is_not_fenced_by_itself_and_is_once_it_stops(
    ground: Ground,
) {
    let dir = tempfile::tempdir().unwrap();
    let options = StackOptions {
        hosts: 2,
        ..StackOptions::default()
    };
    let stack = with_heartbeats(ground, dir.path(), &options).await;
    // What a host has left behind long ago is no heartbeat, and no silence.
    std::fs::write(dir.path().join("h2"), "1").unwrap();
    let writing = Writing::begin(dir.path(), "h1");
    until_says(&stack, "h1", "UP").await;
    stack.hang("h1").await;
    let monitor = stack.client.keep_missing("h1", None);
    // Longer than the fence would have waited.
    tokio::time::sleep(Duration::from_secs(21)).await;
    let told = stack.client.get("/hosts/h1/explanation").await.ok(200);
    let host = stack.client.host("h1").await;
    assert_eq!(
        (
            &host["failure_state"],
            &host["failure_source"],
            &host["fencing_state"]
        ),
        (&json!("UP"), &json!(SOURCE), &json!("UNFENCED")),
        "{host}"
    );
    assert!(told.to_string().contains("heartbeat:nfs"), "{told}");
    let operations = stack.client.get("/operations?host=h1").await.ok(200);
    assert_eq!(operations["operations"], json!([]));

    drop(writing);
    let silent = until_says(&stack, "h1", "UNREACHABLE").await;
    assert_ne!(silent["sources"][0]["alive_at"], Value::Null, "{silent}");
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;
    drop(monitor);
    let other = stack.client.host("h2").await;
    assert_eq!(other["sources"].as_array().unwrap().len(), 1, "{other}");
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storage_that_cannot_be_read_and_an_engine_that_takes_over_make_no_silence() {
    let dir = tempfile::tempdir().unwrap();
    let options = StackOptions::default();
    let directory = dir.path().join("mounted");
    std::fs::create_dir(&directory).unwrap();
    let mut stack = with_heartbeats(Ground::Standalone, &directory, &options).await;
    let writing = Writing::begin(&directory, "h1");
    until_says(&stack, "h1", "UP").await;
    drop(writing);
    std::fs::rename(&directory, dir.path().join("gone")).unwrap();
    stack.replace_engine(&options).await;
    let lost = until_says(&stack, "h1", "UNKNOWN").await;
    assert_eq!(lost["failure_state"], "UP", "the monitor has said so: {lost}");
    std::fs::rename(dir.path().join("gone"), &directory).unwrap();
    let silent = until_says(&stack, "h1", "UNREACHABLE").await;
    assert_eq!(silent["failure_state"], "UNREACHABLE", "{silent}");
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_method_that_reads_no_heartbeats_is_refused_in_a_policy_and_one_that_does_in_a_plan() {
    let dir = tempfile::tempdir().unwrap();
    let stack = Stack::start(Ground::Standalone).await;
    stack.simulated_method("power", Resource::Power).await;
    let answer = stack.client.set_default_policy(policy(&["nfs", "power"])).await;
    let words = [
        "policy.heartbeats[0]: is \"nfs\", and no method has this name; the name of a method of resource heartbeat is allowed",
        "policy.heartbeats[1]: is \"power\", and its resource is power; the name of a method of resource heartbeat is allowed",
    ];
    refused(&answer, 400, "fencing.request.invalid", &words);
    stack.client.post("/methods", method(dir.path())).await.ok(201);
    stack.client.set_default_policy(policy(&["nfs"])).await.ok(200);
    let answer = stack.client.delete("/methods/nfs").await;
    let words = ["is named by policy.heartbeats of segment \"default\""];
    refused(&answer, 409, "fencing.in_use", &words);
    let levels = json!([{ "level": 1, "methods": ["nfs"] }]);
    let plan = json!({
        "name": "p", "scope": { "kind": "default" },
        "stages": [{ "tasks": [{ "kind": "power.off", "levels": levels }] }],
    });
    let answer = stack.client.post("/plans", plan).await;
    refused(&answer, 400, "fencing.request.invalid", &["nfs", "heartbeat"]);
    let check = stack.client.post("/methods/nfs/check", json!({})).await.ok(200);
    assert_eq!(check["observation"]["state"], "readable", "{check}");
    let check = stack
        .client
        .post("/methods/nfs/check", json!({ "host": "h1" }))
        .await
        .ok(200);
    assert_eq!(check["observation"]["state"], "unknown", "{check}");
    stack.stop().await;
}
