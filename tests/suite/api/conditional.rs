//! Entity tags.

use reqwest::Method;
use ringfence_tests::{Ground, Stack};
use serde_json::{Value, json};

use super::refused;

crate::on_both_grounds!(changes_are_conditional_on_what_was_read,);

async fn changes_are_conditional_on_what_was_read(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let answer = client.get("/hosts/h1").await;
    let tag = answer.header("ETag").to_owned();
    let patch = |tag: &str, body: Value| {
        client.send(
            client
                .request(Method::PATCH, "/hosts/h1")
                .header("If-Match", tag)
                .json(&body),
        )
    };
    let host = patch(&tag, json!({ "type": "compute", "zone": "rack-2" }))
        .await
        .ok(200);
    assert_eq!(
        (host["type"].as_str(), host["zone"].as_str()),
        (Some("compute"), Some("rack-2"))
    );
    refused(
        &patch(&tag, json!({ "zone": "rack-3" })).await,
        412,
        "fencing.revision.changed",
        &[],
    );
    refused(
        &patch("seven", json!({ "zone": "rack-3" })).await,
        400,
        "fencing.request.invalid",
        &["If-Match", "seven"],
    );
    let host = patch("*", json!({ "type": null })).await.ok(200);
    assert_eq!(host["type"], Value::Null);
    assert_eq!(host["zone"], "rack-2");
    stack.stop().await;
}
