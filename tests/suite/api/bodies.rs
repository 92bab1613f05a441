//! Errors of the API for wrong request bodies.

use reqwest::Method;
use ringfence_tests::{Ground, Stack};
use serde_json::json;

use super::{raw, refused};

crate::on_both_grounds!(bad_bodies_are_refused_with_the_field_the_value_and_what_is_allowed,);

async fn bad_bodies_are_refused_with_the_field_the_value_and_what_is_allowed(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let invalid = "fencing.request.invalid";
    let json_type = "application/json";
    let answer = client
        .post("/hosts", json!({ "name": "h2", "colour": "red" }))
        .await;
    refused(&answer, 400, invalid, &["colour", "unknown field", "zone"]);
    let answer = client.post("/hosts", json!({ "name": 7 })).await;
    refused(&answer, 400, invalid, &["name", "7", "string"]);
    let answer = client.post("/hosts", json!({ "name": "h".repeat(256) })).await;
    refused(&answer, 400, invalid, &["name", "256", "255"]);
    let answer = client.post("/hosts", json!({ "name": "two words" })).await;
    refused(&answer, 400, invalid, &["name", "two words", "letters"]);
    let answer = client
        .post(
            "/hosts",
            json!({ "name": "0d1b5d2e-7a2f-4f6e-9a52-0f5f3a1d2c3b" }),
        )
        .await;
    refused(&answer, 400, invalid, &["UUID"]);
    let answer = client
        .post("/hosts", json!({ "name": "h2", "backend": "vmware" }))
        .await;
    refused(&answer, 400, invalid, &["backend", "vmware", "nova"]);
    let answer = client
        .post("/hosts", json!({ "name": "h2", "segment": "nowhere" }))
        .await;
    refused(&answer, 404, "fencing.segment.not_found", &["nowhere"]);
    let answer = client.post("/hosts", json!({ "name": "h1" })).await;
    refused(&answer, 409, "fencing.name.taken", &["h1"]);
    let secret = json!({ "name": "h2", "parameters": { "bmc": { "password": "hunter2" } } });
    let answer = client.post("/hosts", secret).await;
    refused(&answer, 400, invalid, &["parameters.bmc.password", "env:NAME"]);
    assert!(!answer.details().contains("hunter2"));
    let answer = raw(client, Method::POST, "/hosts", json_type, "{\"name\": \"h2\"").await;
    refused(&answer, 400, invalid, &["EOF"]);
    let answer = raw(client, Method::POST, "/hosts", json_type, "{\"name\": \"h2\"} {}").await;
    refused(&answer, 400, invalid, &["trailing"]);
    let answer = raw(client, Method::POST, "/hosts", json_type, vec![0xff, 0xfe]).await;
    refused(&answer, 400, invalid, &[]);
    let answer = raw(client, Method::POST, "/hosts", "text/plain", "{\"name\": \"h2\"}").await;
    refused(
        &answer,
        415,
        "fencing.request.not_json",
        &["text/plain", "application/json"],
    );
    let compressed = client.request(Method::POST, "/hosts");
    let compressed = compressed
        .header("content-encoding", "gzip")
        .json(&json!({ "name": "h2" }));
    let answer = client.send(compressed).await;
    refused(&answer, 415, "fencing.request.encoded", &["gzip"]);
    let answer = raw(
        client,
        Method::POST,
        "/hosts",
        json_type,
        format!("{{\"name\": \"{}\"}}", "x".repeat(70_000)),
    )
    .await;
    refused(&answer, 413, "fencing.request.too_large", &["65536"]);
    // `1.0` is a whole number: what is wrong here is the reason.
    let word = r#"{"generation":1.0,"reason":7}"#;
    let answer = raw(client, Method::POST, "/hosts/h1/confirm-fenced", json_type, word).await;
    refused(&answer, 400, invalid, &["reason", "7", "string"]);
    let word = r#"{"generation":1.5,"reason":"seen"}"#;
    let answer = raw(client, Method::POST, "/hosts/h1/confirm-fenced", json_type, word).await;
    refused(&answer, 400, invalid, &["generation", "1.5"]);
    for reason in ["", "   ", &"r".repeat(256), "two\nlines"] {
        let answer = client.post("/hosts/h1/fence", json!({ "reason": reason })).await;
        refused(&answer, 400, invalid, &["reason"]);
    }
    let answer = client.post("/hosts/h1/fence", json!({})).await;
    refused(&answer, 400, invalid, &["reason", "missing"]);
    let answer = client.post("/hosts/h1/fence", json!({ "reason": "test" })).await;
    refused(&answer, 409, "fencing.plan.missing", &["h1"]);
    let answer = client.post("/hosts/h9/fence", json!({ "reason": "test" })).await;
    refused(&answer, 404, "fencing.host.not_found", &["h9"]);
    let answer = client
        .post(
            "/hosts/h1/confirm-fenced",
            json!({ "generation": -1, "reason": "test" }),
        )
        .await;
    refused(&answer, 400, invalid, &["generation", "-1"]);
    let seen = json!({ "failure_state": "DOWN", "source": "m", "observed_at": "2026-01-01T00:00:00Z" });
    let answer = client.put("/hosts/h1/failure-state", seen).await;
    refused(&answer, 400, invalid, &["failure_state", "DOWN", "UNREACHABLE"]);
    let seen = json!({ "failure_state": "UP", "source": "m", "observed_at": "yesterday" });
    let answer = client.put("/hosts/h1/failure-state", seen).await;
    refused(&answer, 400, invalid, &["observed_at"]);
    let seen = json!({ "failure_state": "UP", "source": "m", "observed_at": "2199-01-01T00:00:00Z" });
    let answer = client.put("/hosts/h1/failure-state", seen).await;
    refused(&answer, 400, invalid, &["observed_at", "ahead"]);
    client.seen("h1", "UP").await.ok(200);
    // A late UP still counts; a late UNREACHABLE says nothing.
    let seen =
        json!({ "failure_state": "UNREACHABLE", "source": "test", "observed_at": "2020-01-01T00:00:00Z" });
    let answer = client.put("/hosts/h1/failure-state", seen).await;
    refused(&answer, 409, "fencing.observation.stale", &["2020"]);
    assert_eq!(
        client.get("/hosts").await.ok(200)["hosts"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    stack.stop().await;
}
