//! Receivers that fail.

use chrono::TimeDelta;
use ringfence_engine::ClockSource;
use ringfence_tests::{Behaviour, Ground, Receiver, Site, Stack, StackOptions, eventually};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use super::subscribe;

crate::on_both_grounds!(
    every_fault_of_a_receiver_is_reported_and_delays_no_other_receiver,
    a_receiver_that_answers_410_is_disabled_with_an_event,
    a_subscription_is_disabled_after_a_day_of_failures_and_can_be_resumed,
    a_name_that_leads_to_this_machine_is_not_called,
);

/// Asks for a test delivery, and waits for its result.
async fn test(stack: &Stack, name: &str) -> Value {
    let answer = stack
        .client
        .post(&format!("/subscriptions/{name}/test"), json!({}))
        .await;
    let place = answer.header("location").to_owned();
    answer.ok(202);
    stack
        .client
        .until(&place, |delivery| delivery["status"] != "pending")
        .await
}

async fn every_fault_of_a_receiver_is_reported_and_delays_no_other_receiver(ground: Ground) {
    let stack = Stack::start(ground).await;
    let elsewhere = Receiver::start(Behaviour::Takes);
    let faults = [
        ("internal", Behaviour::Answers(500), "failed", "500"),
        (
            "moved",
            Behaviour::Redirects(elsewhere.url()),
            "failed",
            "redirects are not followed",
        ),
        ("hangs", Behaviour::Hangs, "failed", "did not answer within 10 s"),
        ("talks", Behaviour::Talks, "delivered", ""),
        ("fine", Behaviour::Takes, "delivered", ""),
    ];
    let receivers: Vec<_> = faults
        .iter()
        .map(|(_, behaviour, ..)| Receiver::start(behaviour.clone()))
        .collect();
    for ((name, ..), receiver) in faults.iter().zip(&receivers) {
        subscribe(&stack, name, receiver, json!({})).await;
    }
    // A port that is taken and not listened at: another test could take a free one.
    let closed = TcpSocket::new_v4().unwrap();
    closed.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/hook", closed.local_addr().unwrap());
    let closed_one = json!({ "name": "closed", "url": url });
    stack.client.post("/subscriptions", closed_one).await.ok(201);
    stack.client.seen("h1", "UP").await.ok(200);
    // Working receivers have their event while the others still fail.
    eventually(async || receivers[4].taken().len() == 1 && receivers[3].taken().len() == 1).await;
    for (name, _, status, detail) in &faults {
        let delivery = test(&stack, name).await;
        assert_eq!(delivery["status"], *status, "{name}: {delivery}");
        let told = delivery["detail"].as_str().unwrap_or_default();
        assert!(told.contains(detail), "{name}: {delivery}");
    }
    let delivery = test(&stack, "closed").await;
    assert!(
        delivery["detail"]
            .as_str()
            .unwrap()
            .contains("could not be reached"),
        "{delivery}"
    );
    assert!(elsewhere.received().is_empty());
    stack.stop().await;
}

async fn a_receiver_that_answers_410_is_disabled_with_an_event(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let gone = Receiver::start(Behaviour::Answers(410));
    let other = Receiver::start(Behaviour::Takes);
    subscribe(&stack, "gone", &gone, json!({})).await;
    subscribe(
        &stack,
        "other",
        &other,
        json!({ "types": ["subscription.disabled"] }),
    )
    .await;
    client.seen("h1", "UP").await.ok(200);
    let shown = client
        .until("/subscriptions/gone", |shown| shown["enabled"] == false)
        .await;
    assert!(
        shown["disabled_reason"].as_str().unwrap().contains("410"),
        "{shown}"
    );
    eventually(async || other.taken().len() == 1).await;
    let told = &other.taken()[0]["data"];
    assert_eq!(told["type"], "subscription.disabled");
    assert_eq!(
        (&told["data"]["subscription"], &told["host"]),
        (&json!("gone"), &Value::Null)
    );
    let events = client.get("/events?limit=1000").await.ok(200);
    assert_eq!(events["events"].as_array().unwrap().last().unwrap(), told);
    client.seen("h1", "UNREACHABLE").await.ok(200);
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    assert_eq!(gone.received().len(), 1);
    gone.behave(Behaviour::Takes);
    let body = json!({ "name": "gone", "url": gone.url(), "enabled": true });
    let shown = client.put("/subscriptions/gone", body).await.ok(200);
    assert_eq!(shown["disabled_reason"], Value::Null);
    // Deliveries continue where they stopped: no event is lost.
    eventually(async || gone.taken().len() >= 3).await;
    let kinds: Vec<_> = gone.taken().iter().map(|event| event["type"].clone()).collect();
    let expected = [
        "ringfence.host.failure_state",
        "ringfence.host.failure_state",
        "ringfence.subscription.disabled",
    ];
    let mut sorted: Vec<_> = kinds.iter().map(|kind| kind.as_str().unwrap()).collect();
    sorted.sort_unstable();
    assert_eq!(sorted, expected);
    stack.stop().await;
}

async fn a_subscription_is_disabled_after_a_day_of_failures_and_can_be_resumed(ground: Ground) {
    let start = chrono::DateTime::parse_from_rfc3339("2026-01-31T12:00:00Z")
        .unwrap()
        .to_utc();
    let options = StackOptions {
        clock: ClockSource::Manual(start),
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    let receiver = Receiver::start(Behaviour::Answers(500));
    subscribe(&stack, "pager", &receiver, json!({})).await;
    let body = json!({ "failure_state": "UP", "source": "test", "observed_at": start });
    stack.client.put("/hosts/h1/failure-state", body).await.ok(200);
    let advance = |by: TimeDelta| {
        stack.api.clock().advance(by);
        for (engine, _) in &stack.engines {
            engine.clock().advance(by);
        }
    };
    // Ten minutes at a time, with some real time for the tries that become due.
    for _ in 0..200 {
        if is_disabled(&stack).await {
            break;
        }
        advance(TimeDelta::minutes(10));
        tokio::time::sleep(std::time::Duration::from_millis(60)).await;
    }
    eventually(async || is_disabled(&stack).await).await;
    let shown = stack.client.get("/subscriptions/pager").await.ok(200);
    assert_eq!(shown["enabled"], false, "{shown}");
    assert!(
        shown["disabled_reason"].as_str().unwrap().contains("a day"),
        "{shown}"
    );
    let tried = receiver.received().len();
    assert!((10..=60).contains(&tried), "{tried}");
    // The subscription has another day.
    let body = json!({ "name": "pager", "url": receiver.url() });
    stack.client.put("/subscriptions/pager", body).await.ok(200);
    eventually(async || receiver.received().len() > tried).await;
    let shown = stack.client.get("/subscriptions/pager").await.ok(200);
    assert_eq!(shown["enabled"], true, "{shown}");
    receiver.behave(Behaviour::Takes);
    advance(TimeDelta::minutes(1));
    eventually(async || !receiver.taken().is_empty()).await;
    stack.stop().await;
}

async fn is_disabled(stack: &Stack) -> bool {
    stack.client.get("/subscriptions/pager").await.ok(200)["enabled"] == false
}

async fn a_name_that_leads_to_this_machine_is_not_called(ground: Ground) {
    let options = StackOptions {
        may_call_loopback: false,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    let receiver = Receiver::start(Behaviour::Takes);
    for url in [
        receiver.url(),
        format!("http://[::1]:{}/", receiver.port()),
        "http://169.254.169.254/latest/meta-data".to_owned(),
    ] {
        let body = json!({ "name": "near", "url": url });
        let answer = stack.client.post("/subscriptions", body).await;
        assert_eq!((answer.status, answer.code()), (400, "fencing.request.invalid"));
        assert!(
            answer.details().contains("not an address of the public internet"),
            "{}",
            answer.details()
        );
    }
    let url = format!("http://localhost:{}/", receiver.port());
    let body = json!({ "name": "near", "url": url });
    stack.client.post("/subscriptions", body).await.ok(201);
    let delivery = test(&stack, "near").await;
    let detail = delivery["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("not called:") && detail.contains("webhooks.allowed_networks"),
        "{detail}"
    );
    assert!(receiver.received().is_empty());
    stack.stop().await;
}
