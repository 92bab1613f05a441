//! `Idempotency-Key`: a repeated request gets the first answer, and is carried out once.

use chrono::TimeDelta;
use reqwest::Method;
use ringfence_api::Role;
use ringfence_engine::ClockSource;
use ringfence_tests::{Answer, Client, Ground, Site, Stack, StackOptions, eventually};
use serde_json::{Value, json};

use super::refused;

crate::on_both_grounds!(
    a_repeated_request_gets_the_first_answer_and_changes_nothing,
    concurrent_requests_with_one_key_are_carried_out_once,
    a_key_belongs_to_one_request_of_one_caller,
    a_refusal_is_repeated_and_a_lack_of_rights_is_not,
    bad_keys_are_refused,
    a_key_is_forgotten_after_a_day,
);

#[track_caller]
fn is_replayed(answer: &Answer) -> bool {
    answer.header("Idempotent-Replayed") == "true"
}

fn because(why: &str) -> Value {
    json!({ "reason": why })
}

/// A fence that waits for a person.
async fn waiting_fence(stack: &Stack) -> String {
    stack
        .client
        .post("/plans", json!({ "name": "by-hand", "stages": [] }))
        .await
        .ok(201);
    stack.client.seen("h1", "UNREACHABLE").await.ok(200);
    let operation = stack.client.fence("h1").await;
    stack.client.until_settled(&operation).await;
    format!("/operations/{}", operation["id"].as_str().unwrap())
}

/// How often an action is in the audit trail.
async fn times(client: &Client, action: &str) -> usize {
    let audit = client
        .get(&format!("/audit?action={action}&limit=1000"))
        .await
        .ok(200);
    let audit = audit["audit"].as_array().unwrap();
    audit.iter().filter(|line| line["action"] == action).count()
}

async fn a_repeated_request_gets_the_first_answer_and_changes_nothing(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let host = json!({ "name": "h2" });
    let first = client.post_once("/hosts", "make-h2", host.clone()).await;
    assert_eq!(first.status, 201, "{}", first.body);
    assert!(!is_replayed(&first));
    // The host has changed since; the answer is still the first one.
    client.seen("h2", "UP").await.ok(200);
    let again = client.post_once("/hosts", "make-h2", host.clone()).await;
    assert!(is_replayed(&again));
    assert_eq!((again.status, &again.body), (201, &first.body));
    for header in ["Location", "ETag", "Content-Type"] {
        assert_eq!(again.header(header), first.header(header), "{header}");
    }
    assert_ne!(
        again.header("x-openstack-request-id"),
        first.header("x-openstack-request-id")
    );
    refused(
        &client.post("/hosts", host).await,
        409,
        "fencing.name.taken",
        &["h2"],
    );

    let operation = waiting_fence(&stack).await;
    for (path, key) in [("retry", "try-1"), ("cancel", "stop-1")] {
        let path = format!("{operation}/{path}");
        let first = client.post_once(&path, key, because("new cable")).await;
        let first = first.ok(200);
        let again = client.post_once(&path, key, because("new cable")).await;
        assert!(is_replayed(&again));
        assert_eq!(again.ok(200), first);
    }
    let over = client
        .post(&format!("{operation}/cancel"), because("new cable"))
        .await;
    refused(&over, 409, "fencing.operation.over", &[]);
    assert_eq!(times(client, "operation.retry").await, 1);
    assert_eq!(times(client, "operation.cancel").await, 1);
    stack.stop().await;
}

async fn concurrent_requests_with_one_key_are_carried_out_once(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let operation = waiting_fence(&stack).await;
    let path = format!("{operation}/retry");
    let all = (0..8).map(|_| client.post_once(&path, "try", because("all at once")));
    let mut bodies = Vec::new();
    let mut carried_out = 0;
    for answer in futures_util::future::join_all(all).await {
        carried_out += usize::from(!is_replayed(&answer));
        bodies.push(answer.ok(200));
    }
    assert_eq!(carried_out, 1);
    assert!(bodies.iter().all(|body| *body == bodies[0]));
    assert_eq!(times(client, "operation.retry").await, 1);

    let segment = json!({ "name": "rack-1" });
    let all = (0..8).map(|_| client.post_once("/segments", "rack", segment.clone()));
    let answers = futures_util::future::join_all(all).await;
    let ids: Vec<Value> = answers
        .into_iter()
        .map(|answer| answer.ok(201)["id"].clone())
        .collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    assert_eq!(
        times(client, "segment.created").await,
        2,
        "the default one and this"
    );
    stack.stop().await;
}

async fn a_key_belongs_to_one_request_of_one_caller(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let reused = "fencing.idempotency.reused";
    client
        .post_once("/segments", "k", json!({ "name": "rack-1" }))
        .await
        .ok(201);
    let other_body = client
        .post_once("/segments", "k", json!({ "name": "rack-2" }))
        .await;
    refused(
        &other_body,
        409,
        reused,
        &["Idempotency-Key", "\"k\"", "repeat", "not used for a day"],
    );
    let other_path = client.post_once("/hosts", "k", json!({ "name": "rack-1" })).await;
    refused(&other_path, 409, reused, &[]);
    client.get("/segments/rack-2").await.ok(404);

    // Another caller with an equal key does not get this caller's answer.
    stack.plan(json!([])).await;
    client.seen("h1", "UNREACHABLE").await.ok(200);
    let fence = |role| {
        let caller = stack.as_role(role);
        async move { caller.post_once("/hosts/h1/fence", "k", because("silent")).await }
    };
    for role in [Role::Service, Role::Operator] {
        let answer = fence(role).await;
        assert!(!is_replayed(&answer));
        answer.ok(202);
        assert!(is_replayed(&fence(role).await));
    }
    assert_eq!(times(client, "operation.started").await, 1);
    stack.stop().await;
}

async fn a_refusal_is_repeated_and_a_lack_of_rights_is_not(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(json!([])).await;
    let client = &stack.client;
    client.seen("h1", "UP").await.ok(200);
    let fence = |key| client.post_once("/hosts/h1/fence", key, because("silent"));
    refused(&fence("k").await, 409, "fencing.host.up", &["UP"]);
    client.seen("h1", "UNREACHABLE").await.ok(200);
    let again = fence("k").await;
    assert_eq!((again.status, again.code()), (409, "fencing.host.up"));
    assert!(is_replayed(&again));
    fence("k2").await.ok(202);

    let without_token = client.with_token(None);
    let answer = without_token
        .post_once("/segments", "n", json!({ "name": "rack-1" }))
        .await;
    refused(&answer, 401, "fencing.unauthorized", &[]);
    let reader = stack.as_role(Role::Reader);
    for _ in 0..2 {
        let answer = reader
            .post_once("/segments", "n", json!({ "name": "rack-1" }))
            .await;
        refused(&answer, 403, "fencing.forbidden", &[]);
        assert!(!is_replayed(&answer));
    }
    stack.stop().await;
}

async fn bad_keys_are_refused(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let long = "k".repeat(256);
    let segment = json!({ "name": "rack-1" });
    for key in ["", "two words", "schl\u{fc}ssel", &long] {
        let answer = client.post_once("/segments", key, segment.clone()).await;
        let invalid = "fencing.request.invalid";
        refused(&answer, 400, invalid, &["Idempotency-Key", "1 to 255", "ASCII"]);
    }
    let twice = client
        .request(Method::POST, "/segments")
        .header("Idempotency-Key", "a")
        .header("Idempotency-Key", "b")
        .json(&segment);
    let answer = client.send(twice).await;
    refused(&answer, 400, "fencing.request.invalid", &["more than once"]);
    client.get("/segments/rack-1").await.ok(404);
    let most = "!".repeat(255);
    client.post_once("/segments", &most, segment).await.ok(201);
    // A request that is too large is refused for its size, also with a key.
    let large = json!({ "name": "x".repeat(70_000) });
    let answer = client.post_once("/segments", "large", large).await;
    refused(&answer, 413, "fencing.request.too_large", &["65536"]);
    stack.stop().await;
}

async fn a_key_is_forgotten_after_a_day(ground: Ground) {
    let start = chrono::DateTime::from_timestamp(1_800_000_000, 0).unwrap();
    let options = StackOptions {
        clock: ClockSource::Manual(start),
        workers: 0,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    let client = &stack.client;
    let make = |name: &'static str| client.post_once("/segments", "k", json!({ "name": name }));
    make("rack-1").await.ok(201);
    stack.api.clock().advance(TimeDelta::hours(24));
    assert!(is_replayed(&make("rack-1").await));
    stack.api.clock().advance(TimeDelta::seconds(1));
    let answer = make("rack-2").await;
    assert!(!is_replayed(&answer));
    answer.ok(201);

    // The key's row is gone as well: an engine that starts a day later removes it.
    let later = StackOptions {
        clock: ClockSource::Manual(start + TimeDelta::hours(49)),
        ..StackOptions::default()
    };
    let mut stack = stack;
    stack.add_engine(&later).await;
    let api = stack.api.clone();
    let caller = ringfence_db::KeyName {
        caller: "admin:a-admin",
        key: "k",
    };
    eventually(async || {
        let mut reader = api.db().reader();
        ringfence_db::key_row(&mut reader, caller)
            .await
            .unwrap()
            .is_none()
    })
    .await;
    stack.stop().await;
}
