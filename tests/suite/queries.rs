//! Others are asked before a fence begins by itself: a real Prometheus, and a service of the operator's own.

use ringfence_core::Resource;
use ringfence_lab::Prometheus;
use ringfence_tests::{Behaviour, Ground, Receiver, Site, Stack, StackOptions, power_plan};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use crate::api::refused;
use crate::on_both_grounds;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn policy(queries: &[&str]) -> Value {
    json!({ "fencing": { "automatic": true, "after_s": 0, "at_most": 10, "at_most_percent": 100, "queries": queries } })
}

async fn with_query(ground: Ground, method: Value) -> Stack {
    let options = StackOptions {
        hosts: 4,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    stack.client.post("/methods", method).await.ok(201);
    stack.client.set_default_policy(policy(&["asked"])).await.ok(200);
    stack.plan(power_plan()).await;
    stack.observe().await;
    stack
}

on_both_grounds!(what_a_prometheus_returns_holds_the_fence_of_the_host_that_it_is_about);

async fn what_a_prometheus_returns_holds_the_fence_of_the_host_that_it_is_about(ground: Ground) {
    let prometheus = tokio::task::spawn_blocking(Prometheus::start)
        .await
        .unwrap()
        .unwrap();
    let method = json!({
        "name": "asked", "resource": "query", "driver": "prometheus",
        "parameters": {
            "url": prometheus.url(),
            "query": r#"raid_degraded{host="${host.name}"} > 0"#,
            "present": r#"up{job="prometheus"} == 1"#,
        },
    });
    let stack = with_query(ground, method).await;
    prometheus
        .record(&[("raid_degraded", "h1", "vector(1)")])
        .unwrap();
    let held = loop {
        let check = stack
            .client
            .post("/methods/asked/check", json!({ "host": "h1" }))
            .await;
        let observation = check.body["observation"].clone();
        if observation["state"] == "holds" {
            break observation;
        }
    };
    assert_eq!(
        held["detail"],
        r#"its expression returns 1 series raid_degraded{host="h1"} 1"#
    );
    let without = stack.client.post("/methods/asked/check", json!({})).await;
    refused(
        &without,
        400,
        "fencing.request.invalid",
        &["host: is missing; a query is asked about one host, by its name or id"],
    );
    stack.hang("h1").await;
    stack
        .until_held(
            "query",
            "h1",
            "hold",
            "query asked holds it: its expression returns 1 series",
        )
        .await;
    let told = stack.client.get("/hosts/h1/explanation").await.ok(200);
    assert_eq!(told["fence"]["safeguards"][0]["safeguard"], "query", "{told}");
    // It is about no other host.
    stack.hang("h2").await;
    stack.client.until_fenced("h2").await;
    stack.judge("h2").await;
    prometheus.record(&[]).unwrap();
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;
    prometheus.silence().unwrap();
    stack.hang("h3").await;
    let held = stack
        .until_held(
            "query",
            "h3",
            "unknown",
            "query asked could not be asked: it did not answer in time",
        )
        .await;
    stack.client.retry(&held, "its rack burns").await;
    stack.client.until_fenced("h3").await;
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_of_the_operators_says_which_host_may_be_fenced_and_why_not() {
    let receiver = Receiver::start(Behaviour::Says(
        json!({ "verdict": "hold", "reason": "it is being moved" }),
    ));
    let secret = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&secret, format!("{SECRET}\n")).unwrap();
    let method = json!({
        "name": "asked", "resource": "query", "driver": "webhook", "parameters": { "url": receiver.url() },
        "secrets": { "secret": format!("file:{}", secret.path().display()) }, "times": { "attempt_timeout_s": 2, "timeout_s": 4 },
    });
    let stack = with_query(Ground::Distributed, method).await;
    stack.hang("h1").await;
    stack
        .until_held("query", "h1", "hold", "query asked holds it: it is being moved")
        .await;
    let call = receiver.received().remove(0);
    Webhook::new(SECRET)
        .unwrap()
        .verify(&call.body, &call.headers)
        .unwrap();
    let question = call.event()["data"]["question"].clone();
    assert_eq!(
        (
            &question["host"],
            &question["segment"],
            &question["cause"],
            &question["gone"]
        ),
        (&json!("h1"), &json!("default"), &json!("silence"), &json!([])),
        "{question}"
    );
    for (behaviour, words) in [
        (Behaviour::Answers(500), "it answers HTTP 500"),
        (Behaviour::Redirects(receiver.url()), "redirects are not followed"),
        (Behaviour::Talks, "its answer has more than 1048576 bytes"),
        (Behaviour::Hangs, "it did not answer in time"),
        (
            Behaviour::Says(json!("rubbish")),
            "it answers HTTP 200 \"rubbish\"; {\"verdict\"",
        ),
    ] {
        receiver.behave(behaviour);
        stack.until_held("query", "h1", "unknown", words).await;
    }
    receiver.behave(Behaviour::Says(json!({ "verdict": "allow" })));
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;
    stack.hang("h2").await;
    stack.client.until_fenced("h2").await;
    let last = receiver.received().pop().unwrap().event();
    assert_eq!(last["data"]["question"]["gone"], json!(["h1"]), "{last}");
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_that_cannot_be_asked_is_refused_in_a_policy_and_in_a_plan() {
    let stack = Stack::start(Ground::Standalone).await;
    stack.simulated_method("power", Resource::Power).await;
    let answer = stack.client.set_default_policy(policy(&["asked", "power"])).await;
    let words = [
        "policy.fencing.queries[0]: is \"asked\", and no method has this name; the name of a method of resource query is allowed",
        "policy.fencing.queries[1]: is \"power\", and its resource is power; the name of a method of resource query is allowed",
    ];
    refused(&answer, 400, "fencing.request.invalid", &words);
    let method = |url: &str| json!({ "name": "asked", "resource": "query", "driver": "prometheus", "parameters": { "url": url, "query": "up == 0" } });
    let answer = stack
        .client
        .post("/methods", method("http://me:pw@127.0.0.1:1"))
        .await;
    refused(
        &answer,
        400,
        "fencing.request.invalid",
        &[
            "is \"http://...@127.0.0.1:1\"; ",
            "without credentials is allowed",
        ],
    );
    assert!(!answer.body.to_string().contains("pw@"), "{}", answer.body);
    stack
        .client
        .post("/methods", method("http://127.0.0.1:1"))
        .await
        .ok(201);
    stack.client.set_default_policy(policy(&["asked"])).await.ok(200);
    let answer = stack.client.delete("/methods/asked").await;
    let words = ["is named by policy.fencing.queries of segment \"default\""];
    refused(&answer, 409, "fencing.in_use", &words);
    let levels = json!([{ "level": 1, "methods": ["asked"] }]);
    let plan = json!({
        "name": "p", "scope": { "kind": "default" },
        "stages": [{ "tasks": [{ "kind": "power.off", "levels": levels }] }],
    });
    let answer = stack.client.post("/plans", plan).await;
    refused(&answer, 400, "fencing.request.invalid", &["asked", "query"]);
    stack.stop().await;
}
