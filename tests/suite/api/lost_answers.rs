//! A request that was carried out and whose answer is lost: the database refuses to keep the answer, as if the process had died just
//! before.

use reqwest::Method;
use ringfence_tests::{
    Answer, Behaviour, DatabaseProxy, Ground, Receiver, Site, Stack, StackOptions, power_plan,
};
use serde_json::{Value, json};

crate::on_both_grounds!(a_request_whose_answer_was_lost_is_answered_by_what_it_has_changed,);

const SQLITE: &str =
    "CREATE TRIGGER lost BEFORE UPDATE OF answer ON idempotency_keys WHEN NEW.answer IS NOT NULL
    BEGIN SELECT RAISE(ABORT, 'lost'); END";
const POSTGRESQL: &str = "CREATE FUNCTION lost() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'lost'; END $$;
    CREATE TRIGGER lost BEFORE UPDATE OF answer ON idempotency_keys
        FOR EACH ROW WHEN (NEW.answer IS NOT NULL) EXECUTE FUNCTION lost()";

/// Sends a request, loses its answer, and sends it again.
async fn lose(stack: &Stack, path: &str, body: Value) -> (Answer, Answer) {
    let key = format!("key-of-{path}");
    let lost = stack.client.post_once(path, &key, body.clone()).await;
    let again = stack.client.post_once(path, &key, body).await;
    assert_eq!(again.status, lost.status, "{path}: {} {}", lost.body, again.body);
    assert_eq!(again.header("Idempotent-Replayed"), "true", "{path}");
    assert_eq!(lost.header("Idempotent-Replayed"), "", "{path}");
    // The operation goes on meanwhile, and the second answer shows its present state.
    let is_operation = lost.body["stages"].is_array() && lost.body["status"].is_string();
    let headers = ["Location", "Content-Type", "ETag"];
    for header in headers.iter().take(if is_operation { 2 } else { 3 }) {
        assert_eq!(again.header(header), lost.header(header), "{path}: {header}");
    }
    (lost, again)
}

async fn a_request_whose_answer_was_lost_is_answered_by_what_it_has_changed(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let receiver = Receiver::start(Behaviour::Takes);
    stack
        .site
        .past(match ground {
            Ground::Standalone => SQLITE,
            Ground::Distributed => POSTGRESQL,
        })
        .await;
    let method =
        json!({ "name": "m", "resource": "power", "driver": "simulated", "parameters": { "device": "h1" } });
    for (path, body) in [
        ("/segments", json!({ "name": "rack-1" })),
        ("/methods", method),
        ("/plans", json!({ "name": "by-hand", "stages": [] })),
        ("/hosts", json!({ "name": "h2" })),
        (
            "/subscriptions",
            json!({ "name": "s", "url": receiver.url(), "enabled": false }),
        ),
    ] {
        let (lost, again) = lose(&stack, path, body).await;
        assert_eq!(lost.status, 201, "{}", lost.body);
        assert_eq!(again.body, lost.body, "{path}");
    }
    let (lost, again) = lose(&stack, "/subscriptions/s/rotate-secret", json!({})).await;
    assert_eq!(again.body["secret"], lost.body["secret"]);
    assert!(lost.body["secret"].is_string(), "{}", lost.body);
    let (lost, again) = lose(&stack, "/subscriptions/s/test", json!({})).await;
    assert_eq!((lost.status, &again.body["id"]), (202, &lost.body["id"]));

    client.seen("h1", "UNREACHABLE").await.ok(200);
    let because = json!({ "reason": "no heartbeat" });
    let (fence, again) = lose(&stack, "/hosts/h1/fence", because.clone()).await;
    assert_eq!((fence.status, &again.body["id"]), (202, &fence.body["id"]));
    let operation = client.until_settled(&fence.body).await;
    let operation = format!("/operations/{}", operation["id"].as_str().unwrap());
    let (retry, _) = lose(&stack, &format!("{operation}/retry"), because.clone()).await;
    assert_eq!(retry.status, 200);
    client.until(&operation, |o| o["status"] != "running").await;
    let (cancel, again) = lose(&stack, &format!("{operation}/cancel"), because.clone()).await;
    assert_eq!((cancel.status, again.body), (200, cancel.body));
    let word = json!({ "generation": 1, "reason": "pulled the plug" });
    let (confirm, again) = lose(&stack, "/hosts/h1/confirm-fenced", word).await;
    assert_eq!(
        (confirm.status, &again.body["generation"]),
        (200, &confirm.body["generation"])
    );
    assert_eq!(again.body["fencing_state"], "FENCED");
    let (rejoin, again) = lose(&stack, "/hosts/h1/rejoin", because).await;
    assert_eq!((rejoin.status, &again.body["id"]), (202, &rejoin.body["id"]));

    for (action, times) in [
        ("operation.started", 3),
        ("operation.retry", 1),
        ("operation.cancel", 1),
        ("subscription.secret_rotated", 1),
        ("subscription.tested", 1),
    ] {
        let audit = client.get(&format!("/audit?action={action}")).await.ok(200);
        let audit = audit["audit"].as_array().unwrap();
        let found = audit.iter().filter(|line| line["action"] == action).count();
        assert_eq!(found, times, "{action}");
    }
    stack.stop().await;
}

/// Sends a request that the database commits and whose commit has no answer, so that the service decides it again.
async fn send_and_lose_answer(
    stack: &Stack,
    database: &DatabaseProxy,
    action: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Answer {
    database.hide(action);
    let mut request = stack.client.request(Method::POST, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = stack.client.send(request.json(&json!({ "reason": "x" }))).await;
    assert!(
        database.has_hidden(),
        "{path}: no statement of the request contains the action"
    );
    let audit = stack.client.get(&format!("/audit?action={action}")).await.ok(200);
    let lines = audit["audit"].as_array().unwrap();
    let made = lines.iter().filter(|line| line["action"] == action).count();
    assert_eq!(made, 1, "{path}: {}", answer.body);
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_committed_change_whose_answer_was_lost_does_not_refuse_its_own_request() {
    let mut site = Site::new(Ground::Distributed).await;
    let database = DatabaseProxy::before(&site.database_url).await;
    site.database_url = database.url().to_owned();
    let options = StackOptions {
        workers: 0,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(site, options).await;
    let client = &stack.client;
    stack.plan(power_plan()).await;
    client.seen("h1", "UNREACHABLE").await.ok(200);

    // The first try has begun the fence and so changed the entity tag that the second try still sends.
    let tag = client.get("/hosts/h1").await.header("ETag").to_owned();
    let headers = [("If-Match", tag.as_str()), ("Idempotency-Key", "fence")];
    let fence = send_and_lose_answer(
        &stack,
        &database,
        "operation.started",
        "/hosts/h1/fence",
        &headers,
    )
    .await;
    assert_eq!(fence.status, 202, "{}", fence.body);
    let operation = format!("/operations/{}", fence.body["id"].as_str().unwrap());

    // The first try has cancelled the operation, which cannot be cancelled again.
    let path = format!("{operation}/cancel");
    let headers = [("Idempotency-Key", "cancel")];
    let cancel = send_and_lose_answer(&stack, &database, "operation.cancel", &path, &headers).await;
    assert_eq!(cancel.status, 200, "{}", cancel.body);
    assert_eq!(cancel.body["status"], "cancelled");
    let again = client.post_once(&path, "cancel", json!({ "reason": "x" })).await;
    assert_eq!(
        (again.status, &again.body["status"]),
        (200, &cancel.body["status"])
    );
    // Without a key the service cannot know that this caller has cancelled the operation.
    let refused = client.post(&path, json!({ "reason": "x" })).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    stack.stop().await;
}
