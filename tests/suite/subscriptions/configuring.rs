//! Configuring subscriptions: secrets, roles, redelivery, and what is refused.

use ringfence_api::Role;
use ringfence_tests::{Behaviour, Ground, Received, Receiver, Stack, assert_secrets_are_nowhere, eventually};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use super::subscribe;
use crate::api::refused;

crate::on_both_grounds!(
    a_secret_is_shown_once_is_not_stored_and_is_renewed_without_a_gap,
    an_event_can_be_delivered_again_with_its_own_id,
    a_subscription_that_cannot_work_is_refused_with_the_reason,
    only_admins_configure_subscriptions_and_see_their_addresses,
    deliveries_are_listed_in_pages,
);

async fn a_secret_is_shown_once_is_not_stored_and_is_renewed_without_a_gap(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let receiver = Receiver::start(Behaviour::Takes);
    let made = subscribe(&stack, "pager", &receiver, json!({})).await;
    let first = made["secret"].as_str().unwrap().to_owned();
    let rotated = client.post("/subscriptions/pager/rotate-secret", json!({})).await;
    assert_eq!(rotated.header("cache-control"), "no-store");
    let rotated = rotated.ok(200);
    let second = rotated["secret"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    assert!(rotated["previous_secret_until"].is_string(), "{rotated}");
    let verifies = |letter: &Received, secret: &str| {
        let webhook = Webhook::new(secret).unwrap();
        webhook.verify(&letter.body, &letter.headers).is_ok()
    };
    // The old secret signs from the first letter on, the new one within a second.
    let mut letters = 0;
    eventually(async || {
        letters += 1;
        let host = format!("h{letters}");
        client.seen(&host, "UP").await.ok(200);
        let is_about = |event: &Value| event["subject"] == *host;
        eventually(async || receiver.taken().iter().any(is_about)).await;
        let received = receiver.received();
        assert!(received.iter().all(|letter| verifies(letter, &first)));
        received.last().is_some_and(|letter| verifies(letter, &second))
    })
    .await;
    let one = receiver.received().pop().unwrap();
    // Another subscription's secret does not verify the signature, and neither does another body.
    let other = subscribe(&stack, "other", &receiver, json!({ "enabled": false })).await;
    let other = Webhook::new(other["secret"].as_str().unwrap()).unwrap();
    assert!(other.verify(&one.body, &one.headers).is_err());
    let mut body = one.body.clone();
    body[5] ^= 1;
    assert!(Webhook::new(&first).unwrap().verify(&body, &one.headers).is_err());
    let bare = |secret: &str| secret.strip_prefix("whsec_").unwrap().to_owned();
    assert_secrets_are_nowhere(&stack, &[&bare(&first), &bare(&second)]).await;
    stack.stop().await;
}

async fn an_event_can_be_delivered_again_with_its_own_id(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let receiver = Receiver::start(Behaviour::Takes);
    let made = subscribe(&stack, "pager", &receiver, json!({})).await;
    client.seen("h1", "UP").await.ok(200);
    let log = client
        .until("/subscriptions/pager/deliveries?status=delivered", |log| {
            log["deliveries"].as_array().is_some_and(|log| log.len() == 1)
        })
        .await;
    let first = &log["deliveries"][0];
    let path = format!(
        "/subscriptions/pager/deliveries/{}/redeliver",
        first["id"].as_str().unwrap()
    );
    let again = client.post(&path, json!({})).await;
    let place = again.header("location").to_owned();
    assert_eq!(again.ok(202)["kind"], "redelivery");
    let again = client
        .until(&place, |delivery| delivery["status"] == "delivered")
        .await;
    assert_eq!(again["event_id"], first["event_id"]);
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].event(), received[1].event());
    assert_eq!(received[0].header("webhook-id"), received[1].header("webhook-id"));
    let secret = Webhook::new(made["secret"].as_str().unwrap()).unwrap();
    secret.verify(&received[1].body, &received[1].headers).unwrap();
    let missing = client
        .post(
            &format!(
                "/subscriptions/pager/deliveries/{}/redeliver",
                uuid::Uuid::new_v4()
            ),
            json!({}),
        )
        .await;
    refused(&missing, 404, "fencing.delivery.not_found", &[]);
    client.delete("/subscriptions/pager").await.ok(204);
    refused(
        &client.get("/subscriptions/pager").await,
        404,
        "fencing.subscription.not_found",
        &["pager"],
    );
    stack.stop().await;
}

async fn a_subscription_that_cannot_work_is_refused_with_the_reason(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let bad: [(Value, &[&str]); 9] = [
        (json!({ "name": "", "url": "https://example.org/" }), &["name"]),
        (json!({ "name": "a" }), &["url", "missing"]),
        (
            json!({ "name": "a", "url": "gopher://example.org" }),
            &["url", "gopher", "https"],
        ),
        (
            json!({ "name": "a", "url": "https://u:hush@example.org" }),
            &["url", "password"],
        ),
        (
            json!({ "name": "a", "url": "https://example.org", "types": ["host.fence"] }),
            &["types[0]", "host.fence", "host.fenced", "host.*"],
        ),
        (
            json!({ "name": "a", "url": "https://example.org", "segments": ["rack-9"] }),
            &["segments[0]", "rack-9", "no such segment"],
        ),
        (
            json!({ "name": "a", "url": "https://example.org", "hosts": ["a b"] }),
            &["hosts[0]", "a b"],
        ),
        (
            json!({ "name": "a", "url": "https://example.org", "after": 99_999 }),
            &["after", "99999"],
        ),
        (
            json!({ "name": "a", "url": "https://example.org", "secret": "x" }),
            &["secret", "unknown field"],
        ),
    ];
    for (body, words) in bad {
        let answer = client.post("/subscriptions", body).await;
        refused(&answer, 400, "fencing.request.invalid", words);
        assert!(!answer.details().contains("hush"));
    }
    let receiver = Receiver::start(Behaviour::Takes);
    subscribe(&stack, "a", &receiver, json!({})).await;
    let again = json!({ "name": "a", "url": "https://example.org" });
    refused(
        &client.post("/subscriptions", again.clone()).await,
        409,
        "fencing.name.taken",
        &["a"],
    );
    let stale = client
        .send(
            client
                .request(reqwest::Method::PUT, "/subscriptions/a")
                .header("If-Match", "\"7\"")
                .json(&again),
        )
        .await;
    refused(&stale, 412, "fencing.revision.changed", &[]);
    stack.stop().await;
}

async fn only_admins_configure_subscriptions_and_see_their_addresses(ground: Ground) {
    let stack = Stack::start(ground).await;
    let receiver = Receiver::start(Behaviour::Takes);
    subscribe(&stack, "pager", &receiver, json!({})).await;
    for role in [Role::Reader, Role::Service, Role::Operator] {
        let client = stack.as_role(role);
        let shown = client.get("/subscriptions/pager").await.ok(200);
        assert_eq!(
            shown["url"],
            receiver.url().trim_end_matches("/hook"),
            "a path may be a secret"
        );
        let body = json!({ "name": "b", "url": "https://example.org" });
        refused(
            &client.post("/subscriptions", body.clone()).await,
            403,
            "fencing.forbidden",
            &[],
        );
        refused(
            &client.put("/subscriptions/pager", body).await,
            403,
            "fencing.forbidden",
            &[],
        );
        for path in ["rotate-secret", "test"] {
            let answer = client
                .post(&format!("/subscriptions/pager/{path}"), json!({}))
                .await;
            refused(&answer, 403, "fencing.forbidden", &[]);
        }
        refused(
            &client.delete("/subscriptions/pager").await,
            403,
            "fencing.forbidden",
            &[],
        );
    }
    let shown = stack.client.get("/subscriptions/pager").await.ok(200);
    assert_eq!(shown["url"], receiver.url());
    stack.stop().await;
}

async fn deliveries_are_listed_in_pages(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let receiver = Receiver::start(Behaviour::Takes);
    subscribe(&stack, "pager", &receiver, json!({})).await;
    for round in 0..5 {
        let state = if round % 2 == 0 { "UP" } else { "UNREACHABLE" };
        client.seen("h1", state).await.ok(200);
    }
    let all = client
        .until("/subscriptions/pager/deliveries", |log| {
            log["deliveries"].as_array().is_some_and(|log| log.len() == 5)
        })
        .await;
    let mut paged = Vec::new();
    let mut path = "/subscriptions/pager/deliveries?limit=2".to_owned();
    loop {
        let page = client.get(&path).await.ok(200);
        paged.extend(page["deliveries"].as_array().unwrap().clone());
        match page["links"][0]["href"].as_str() {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(Value::from(paged), all["deliveries"]);
    let path = "/subscriptions/pager/deliveries";
    for (query, words) in [
        ("status=lost", "status"),
        ("marker=x", "marker"),
        ("limit=0", "limit"),
    ] {
        refused(
            &client.get(&format!("{path}?{query}")).await,
            400,
            "fencing.request.invalid",
            &[words],
        );
    }
    stack.stop().await;
}
