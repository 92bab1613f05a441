//! The formats of events.

use ringfence_tests::{Behaviour, Ground, Receiver, Stack, eventually};
use serde_json::{Value, json};

use super::subscribe;
use crate::api::refused;

crate::on_both_grounds!(
    each_receiver_gets_events_in_its_format,
    a_format_that_does_not_fit_the_address_is_refused,
);

async fn each_receiver_gets_events_in_its_format(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    for (format, begins) in [
        ("slack", "*h1: host.failure_state*"),
        ("mattermost", "**h1: host.failure\\_state**"),
    ] {
        let receiver = Receiver::start(Behaviour::Takes);
        let made = subscribe(&stack, format, &receiver, json!({ "format": format })).await;
        assert_eq!(made["format"], format);
        client
            .post(&format!("/subscriptions/{format}/test"), json!({}))
            .await
            .ok(202);
        eventually(async || receiver.received().len() == 1).await;
        let test = receiver.received()[0].event()["text"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            test.contains(&format!("A test of subscription {format}")),
            "{test}"
        );
        let seen = if format == "slack" { "UP" } else { "UNREACHABLE" };
        client.seen("h1", seen).await.ok(200);
        eventually(async || receiver.received().len() == 2).await;
        let received = &receiver.received()[1];
        assert_eq!(received.header("content-type"), "application/json");
        let event = received.event();
        assert_eq!(event.as_object().unwrap().keys().collect::<Vec<_>>(), ["text"]);
        let text = event["text"].as_str().unwrap();
        assert!(
            text.starts_with(begins) && text.contains(&format!("to: {seen}")),
            "{text}"
        );
        client.delete(&format!("/subscriptions/{format}")).await.ok(204);
    }
    let receiver = Receiver::start(Behaviour::Takes);
    subscribe(&stack, "teams", &receiver, json!({ "format": "teams" })).await;
    client.seen("h1", "UP").await.ok(200);
    eventually(async || receiver.received().len() == 1).await;
    let card = receiver.received()[0].event()["attachments"][0]["content"].clone();
    assert_eq!(card["type"], "AdaptiveCard");
    assert_eq!(card["body"][0]["text"], "h1: host.failure_state");
    let facts = card["body"][1]["facts"].as_array().unwrap();
    assert!(facts.contains(&json!({ "title": "to", "value": "UP" })), "{card}");
    stack.stop().await;
}

async fn a_format_that_does_not_fit_the_address_is_refused(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let invalid = "fencing.request.invalid";
    let body = |url: &str, more: Value| {
        let mut body = json!({ "name": "chat", "url": url, "enabled": false });
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let slack = "https://hooks.slack.com/services/T0/B0/x";
    let refusal = client
        .post("/subscriptions", body(slack, json!({ "format": "cloudevents" })))
        .await;
    refused(
        &refusal,
        400,
        invalid,
        &["format: is cloudevents", "hooks.slack.com", "slack is allowed"],
    );
    let refusal = client
        .post("/subscriptions", body(slack, json!({ "format": "smoke" })))
        .await;
    refused(&refusal, 400, invalid, &["format", "smoke", "mattermost"]);
    let refusal = client
        .post("/subscriptions", body("mailto:ops@example.org", json!({})))
        .await;
    refused(
        &refusal,
        400,
        invalid,
        &["url: is an address of e-mail", "Alertmanager"],
    );
    // A format that follows from the address can be left out.
    for (url, format) in [
        (slack, "slack"),
        ("https://prod-7.westeurope.logic.azure.com/workflows/x", "teams"),
        ("https://chat.example.org/hooks/x", "cloudevents"),
    ] {
        let made = client.post("/subscriptions", body(url, json!({}))).await.ok(201);
        assert_eq!(made["format"], format, "{url}");
        client.delete("/subscriptions/chat").await.ok(204);
    }
    stack.stop().await;
}
