//! Methods, plans and segments: which changes are refused.

use ringfence_tests::{Ground, Stack, power_plan};
use serde_json::{Value, json};

use super::refused;

crate::on_both_grounds!(
    bad_methods_are_refused,
    bad_plans_are_refused,
    methods_plans_and_segments_in_use_cannot_be_deleted,
    a_host_of_a_cloud_is_added_once,
);

async fn bad_methods_are_refused(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let invalid = "fencing.request.invalid";
    let cases: &[(Value, &[&str])] = &[
        (
            json!({ "name": "m", "driver": "telnet" }),
            &["driver", "telnet", "fence-agent", "redfish"],
        ),
        (
            json!({ "name": "m", "driver": "simulated" }),
            &["parameters.device", "missing"],
        ),
        (
            json!({ "name": "m", "driver": "simulated", "parameters": { "device": "h1", "colour": "red" } }),
            &["colour", "unknown"],
        ),
        (
            json!({ "name": "m", "driver": "ipmi", "parameters": { "address": "10.0.0.1\n", "username": "a" }, "secrets": { "password": "env:P" } }),
            &["parameters.address", "control"],
        ),
        (
            json!({ "name": "m", "driver": "ipmi", "parameters": { "address": "a", "username": "a", "password": "hunter2" } }),
            &["parameters.password", "env:NAME", "file:"],
        ),
        (
            json!({ "name": "m", "driver": "ipmi", "parameters": { "address": "a", "username": "a" }, "secrets": { "password": "hunter2" } }),
            &["secrets.password", "env:NAME"],
        ),
        (
            json!({ "name": "m", "driver": "ipmi", "resource": "storage", "parameters": { "address": "a", "username": "a" }, "secrets": { "password": "env:P" } }),
            &["resource", "storage", "power"],
        ),
        (
            json!({ "name": "m", "driver": "ipmi", "parameters": { "address": "a", "username": "a", "port": 70000 }, "secrets": { "password": "env:P" } }),
            &["parameters.port", "70000", "65535"],
        ),
        (
            json!({ "name": "m", "driver": "simulated", "parameters": { "device": "d" }, "times": { "retries": 11 } }),
            &["times.retries", "11", "10"],
        ),
        (
            json!({ "name": "m", "driver": "fence-agent", "parameters": { "agent": "fence_nothing" } }),
            &["agent", "fence_nothing"],
        ),
        (
            json!({ "name": "m", "driver": "fence-agent", "parameters": { "agent": "/bin/sh" } }),
            &["agent", "/bin/sh"],
        ),
        (
            json!({ "name": "m", "driver": "fence-agent", "parameters": { "agent": "fence_dummy", "action": "reboot" } }),
            &["parameters.action"],
        ),
        (
            json!({ "name": "m", "driver": "fence-agent", "parameters": { "agent": "fence_dummy", "status_fil": "/tmp/x" } }),
            &["status_fil", "status_file"],
        ),
        (
            json!({ "name": "m", "driver": "simulated", "parameters": { "device": "${host.colour}" } }),
            &["host.colour", "host.name"],
        ),
    ];
    for (body, words) in cases {
        let answer = client.post("/methods", body.clone()).await;
        refused(&answer, 400, invalid, words);
        assert!(
            !answer.body.to_string().contains("hunter2"),
            "a secret was repeated"
        );
    }
    let nowhere = json!({ "name": "m", "driver": "fence-agent", "zone": "moon", "parameters": { "agent": "fence_dummy" } });
    refused(
        &client.post("/methods", nowhere).await,
        503,
        "fencing.worker.missing",
        &["moon", "power"],
    );
    assert_eq!(client.get("/methods").await.ok(200)["methods"], json!([]));
    let good = json!({ "name": "dummy", "driver": "fence-agent", "parameters": { "agent": "fence_dummy", "status_file": "/tmp/${host.name}" } });
    client.post("/methods", good).await.ok(201);
    let answer = client.post("/methods/dummy/check", json!({})).await;
    refused(&answer, 400, invalid, &["host", "status_file"]);
    stack.stop().await;
}

async fn bad_plans_are_refused(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack
        .simulated_method("power", ringfence_core::Resource::Power)
        .await;
    stack
        .simulated_method("network", ringfence_core::Resource::Network)
        .await;
    let client = &stack.client;
    let level = |method: &str| json!([{ "level": 1, "methods": [method] }]);
    let stage = |kind: &str, levels: Value| json!([{ "tasks": [{ "kind": kind, "levels": levels }] }]);
    let cases: &[(Value, &[&str])] = &[
        (
            json!({ "name": "p", "stages": stage("power.off", level("missing")) }),
            &["stages[0].tasks[0].levels[0].methods[0]", "missing"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.of", level("power")) }),
            &["stages[0].tasks[0].kind", "power.of", "power.off"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.off", level("network")) }),
            &["network", "power"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.off", level("power")), "sufficient_sets": [[]] }),
            &["sufficient_sets[0]", "empty"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.off", level("power")), "sufficient_sets": [] }),
            &["sufficient_sets", "0"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.off", level("power")), "sufficient_sets": [["prayer"]] }),
            &["prayer", "power.off"],
        ),
        (
            json!({ "name": "p", "stages": stage("network.fence", level("network")) }),
            &["could never prove", "network.fence"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.off", json!([{ "level": 10, "methods": ["power"] }])) }),
            &["level", "10", "9"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.off", json!([{ "level": 1, "methods": [] }])) }),
            &["methods", "0"],
        ),
        (
            json!({ "name": "p", "stages": stage("power.on", json!([])) }),
            &["power.on", "later stage"],
        ),
        (
            json!({ "name": "p", "stages": stage("storage.unfence", level("power")) }),
            &["storage.unfence", "which no plan names"],
        ),
        (
            json!({ "name": "p", "scope": { "kind": "host" } }),
            &["scope.value", "missing"],
        ),
        (
            json!({ "name": "p", "stages": [{ "tasks": [], "delay_s": 9999 }] }),
            &["delay_s", "9999", "tasks"],
        ),
    ];
    for (body, words) in cases {
        refused(
            &client.post("/plans", body.clone()).await,
            400,
            "fencing.request.invalid",
            words,
        );
    }
    client
        .post("/plans", json!({ "name": "p", "stages": power_plan() }))
        .await
        .ok(201);
    let again = client
        .post("/plans", json!({ "name": "q", "stages": power_plan() }))
        .await;
    refused(&again, 409, "fencing.name.taken", &["this scope"]);
    stack.stop().await;
}

async fn methods_plans_and_segments_in_use_cannot_be_deleted(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let client = &stack.client;
    refused(
        &client.delete("/methods/power").await,
        409,
        "fencing.in_use",
        &["power", "default"],
    );
    refused(
        &client.delete("/segments/default").await,
        409,
        "fencing.in_use",
        &["default"],
    );
    client.post("/segments", json!({ "name": "rack" })).await.ok(201);
    client
        .patch("/hosts/h1", json!({ "segment": "rack" }))
        .await
        .ok(200);
    refused(
        &client.delete("/segments/rack").await,
        409,
        "fencing.in_use",
        &["rack"],
    );
    stack.hang("h1").await;
    let fence = client.fence("h1").await;
    client.until_settled(&fence).await;
    refused(
        &client.delete("/hosts/h1").await,
        409,
        "fencing.host.state",
        &["FENCED"],
    );
    // An edited or deleted plan and method change nothing about a fence that is in force.
    assert_eq!(client.delete("/plans/default").await.status, 204);
    assert_eq!(client.delete("/methods/power").await.status, 204);
    assert_eq!(client.host("h1").await["fencing_state"], "FENCED");
    client
        .post("/hosts/h1/rejoin", json!({ "reason": "checked" }))
        .await
        .ok(202);
    client.seen("h1", "UP").await.ok(200);
    client
        .until("/hosts/h1", |host| host["fencing_state"] == "UNFENCED")
        .await;
    client
        .until("/hosts/h1", |host| host["operation"] == Value::Null)
        .await;
    assert_eq!(client.delete("/hosts/h1").await.status, 204);
    assert_eq!(client.get("/hosts/h1").await.status, 404);
    stack.stop().await;
}

async fn a_host_of_a_cloud_is_added_once(ground: Ground) {
    let stack = Stack::start(ground).await;
    let host = |name: &str, cloud: &str| json!({ "name": name, "backend": "nova", "cloud": cloud, "known_as": "compute1" });
    stack.client.post("/hosts", host("one", "east")).await.ok(201);
    stack.client.post("/hosts", host("two", "west")).await.ok(201);
    let answer = stack.client.post("/hosts", host("again", "east")).await;
    assert_eq!((answer.status, answer.code()), (409, "fencing.name.taken"));
    let details = answer.details();
    assert!(
        details.contains("\"east\"") && details.contains("\"compute1\""),
        "{details}"
    );
    stack.stop().await;
}
