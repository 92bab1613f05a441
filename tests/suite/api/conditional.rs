//! Entity tags.

use reqwest::Method;
use ringfence_tests::{Answer, Client, Ground, Stack, power_plan};
use serde_json::{Value, json};

use super::refused;

crate::on_both_grounds!(
    a_change_with_a_stale_entity_tag_is_refused,
    configuration_is_changed_only_with_the_present_entity_tag,
    a_subscription_is_deleted_and_its_secret_renewed_only_with_the_present_entity_tag,
    an_answer_that_the_caller_has_already_is_304_without_a_body,
    actions_on_a_host_need_its_present_entity_tag,
    an_operation_is_cancelled_or_retried_only_with_its_present_entity_tag,
);

async fn a_change_with_a_stale_entity_tag_is_refused(ground: Ground) {
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

async fn send(
    client: &Client,
    method: Method,
    path: &str,
    tag: (&str, &str),
    body: Option<&Value>,
) -> Answer {
    let mut request = client.request(method, path).header(tag.0, tag.1);
    if let Some(body) = body {
        request = request.json(body);
    }
    client.send(request).await
}

async fn configuration_is_changed_only_with_the_present_entity_tag(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let method =
        json!({ "name": "m", "resource": "power", "driver": "simulated", "parameters": { "device": "h1" } });
    client.post("/methods", method.clone()).await.ok(201);
    client.post("/segments", json!({ "name": "s" })).await.ok(201);
    client
        .post("/plans", json!({ "name": "p", "stages": [] }))
        .await
        .ok(201);
    for (path, body) in [
        ("/plans/p", json!({ "name": "p", "stages": [] })),
        ("/segments/s", json!({ "name": "s", "description": "new" })),
        ("/methods/m", method),
    ] {
        let first = client.get(path).await.header("ETag").to_owned();
        let put = |tag| send(client, Method::PUT, path, ("If-Match", tag), Some(&body));
        let delete = |tag| send(client, Method::DELETE, path, ("If-Match", tag), None);
        let changed = put(&first).await;
        let second = changed.header("ETag").to_owned();
        changed.ok(200);
        assert_ne!(first, second, "{path}");
        refused(&put(&first).await, 412, "fencing.revision.changed", &["2", "1"]);
        refused(
            &delete(&first).await,
            412,
            "fencing.revision.changed",
            &["2", "1"],
        );
        assert_eq!(delete(&second).await.status, 204, "{path}");
    }
    let stale = send(client, Method::DELETE, "/hosts/h1", ("If-Match", "\"99\""), None).await;
    refused(&stale, 412, "fencing.revision.changed", &["99"]);
    stack.stop().await;
}

async fn a_subscription_is_deleted_and_its_secret_renewed_only_with_the_present_entity_tag(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let body = json!({ "name": "pager", "url": "http://127.0.0.1:9/" });
    let secret = client.post("/subscriptions", body).await.ok(201)["secret"].clone();
    let path = "/subscriptions/pager";
    let tag = async || client.get(path).await.header("ETag").to_owned();
    let (renewing, empty) = (format!("{path}/rotate-secret"), json!({}));
    let renew = |tag| send(client, Method::POST, &renewing, ("If-Match", tag), Some(&empty));
    let delete = |tag| send(client, Method::DELETE, path, ("If-Match", tag), None);
    let first = tag().await;
    let renewed = renew(&first).await;
    let second = renewed.header("ETag").to_owned();
    let next = renewed.ok(200)["secret"].clone();
    assert_ne!(next, secret);
    assert_ne!(second, first);

    refused(&renew(&first).await, 412, "fencing.revision.changed", &["2", "1"]);
    refused(
        &delete(&first).await,
        412,
        "fencing.revision.changed",
        &["2", "1"],
    );
    // A refused request has changed nothing: not even the secret.
    assert_eq!(tag().await, second);
    refused(
        &delete("seven").await,
        400,
        "fencing.request.invalid",
        &["If-Match"],
    );
    assert_eq!(delete(&second).await.status, 204);
    assert_eq!(client.get(path).await.status, 404);
    stack.stop().await;
}

async fn an_answer_that_the_caller_has_already_is_304_without_a_body(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let client = &stack.client;
    for path in ["/methods/power", "/plans/default", "/segments/default"] {
        let answer = client.get(path).await;
        let tag = answer.header("ETag").to_owned();
        for known in [tag.clone(), format!("\"77\", W/{tag}"), "*".to_owned()] {
            let again = send(client, Method::GET, path, ("If-None-Match", &known), None).await;
            assert_eq!(
                (again.status, again.header("ETag")),
                (304, tag.as_str()),
                "{known}"
            );
            assert_eq!(again.body, json!(""));
        }
        let other = send(client, Method::GET, path, ("If-None-Match", "\"77\""), None).await;
        assert_eq!(other.ok(200), answer.body, "{path}");
    }
    stack.stop().await;
}

/// A stack without workers: no result changes the host while the test uses its entity tags.
async fn without_workers(ground: Ground) -> Stack {
    let stack = Stack::start_without_workers(ground).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    stack
}

async fn actions_on_a_host_need_its_present_entity_tag(ground: Ground) {
    let stack = without_workers(ground).await;
    let client = &stack.client;
    let tag = client.get("/hosts/h1").await.header("ETag").to_owned();
    let report =
        json!({ "failure_state": "UNREACHABLE", "source": "t", "observed_at": ringfence_tests::now() });
    let reason = json!({ "reason": "a test" });
    let word = json!({ "reason": "a test", "generation": 0 });
    for (method, action, body) in [
        (Method::POST, "fence", &reason),
        (Method::POST, "confirm-fenced", &word),
        (Method::PUT, "failure-state", &report),
        // The host is UNFENCED: a rejoin would have nothing to do.
        (Method::POST, "rejoin", &reason),
    ] {
        let path = format!("/hosts/h1/{action}");
        let given = |tag| send(client, method.clone(), &path, ("If-Match", tag), Some(body));
        refused(&given("\"99\"").await, 412, "fencing.revision.changed", &["99"]);
        refused(
            &given("seven").await,
            400,
            "fencing.request.invalid",
            &["If-Match", "seven"],
        );
        // The refused request has changed nothing.
        assert_eq!(client.get("/hosts/h1").await.header("ETag"), tag, "{action}");
    }
    // An error of the request itself comes before the entity tag: the gate is closed, whatever tag is sent.
    let path = "/hosts/h1/evacuate";
    let early = send(client, Method::POST, path, ("If-Match", "\"99\""), Some(&reason)).await;
    assert_eq!(early.status, 409, "{}", early.body);

    let path = "/hosts/h1/fence";
    let begun = send(client, Method::POST, path, ("If-Match", &tag), Some(&reason)).await;
    assert_eq!(begun.status, 202, "{}", begun.body);
    // The fence has changed the host: a caller with the tag from before would join a fence that it does not know of.
    let late = send(client, Method::POST, path, ("If-Match", &tag), Some(&reason)).await;
    refused(&late, 412, "fencing.revision.changed", &[]);
    let any = send(client, Method::POST, path, ("If-Match", "*"), Some(&reason)).await;
    assert_eq!(any.ok(202)["id"], begun.body["id"]);
    stack.stop().await;
}

async fn an_operation_is_cancelled_or_retried_only_with_its_present_entity_tag(ground: Ground) {
    let mut stack = without_workers(ground).await;
    let reason = json!({ "reason": "a test" });
    let asked = send(
        &stack.client,
        Method::POST,
        "/hosts/h1/fence",
        ("X-A", "b"),
        Some(&reason),
    )
    .await;
    let first = asked.header("ETag").to_owned();
    let begun = asked.ok(202);
    assert_eq!(first, format!("\"{}\"", begun["revision"]));
    let path = format!("/operations/{}", begun["id"].as_str().unwrap());
    assert_eq!(stack.client.get(&path).await.header("ETag"), first);

    // A device that refuses: the operation waits for a person, and its entity tag changes.
    let refusing =
        ringfence_simulators::Fault::new(ringfence_simulators::FaultKind::Refuse, None, None).unwrap();
    let power = ringfence_core::Resource::Power;
    stack.set_fault("h1", power, Some(refusing));
    stack.add_worker().await;
    let client = &stack.client;
    let waiting = client.until(&path, |o| o["status"] == "needs_operator").await;
    let tag = format!("\"{}\"", waiting["revision"]);
    assert_ne!(tag, first);
    let act = async |what: &str, tag: &str| {
        let path = format!("{path}/{what}");
        send(client, Method::POST, &path, ("If-Match", tag), Some(&reason)).await
    };
    for action in ["retry", "cancel"] {
        refused(
            &act(action, &first).await,
            412,
            "fencing.revision.changed",
            &[first.trim_matches('"'), tag.trim_matches('"')],
        );
        refused(
            &act(action, "seven").await,
            400,
            "fencing.request.invalid",
            &["If-Match"],
        );
    }
    assert_eq!(client.get(&path).await.body, waiting);
    stack.set_fault("h1", power, None);
    act("retry", &tag).await.ok(200);
    client.until_fenced("h1").await;
    let over = client.get(&path).await;
    assert!(over.header("ETag") != tag);
    // The error about the ended operation comes before the one about the stale entity tag.
    assert_eq!(act("cancel", &tag).await.status, 409);
    stack.stop().await;
}
