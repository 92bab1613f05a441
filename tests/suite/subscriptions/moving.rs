//! Subscriptions that another engine takes over, that are moved to another event, or whose filter changes.

use ringfence_db::{DeliveryKind, DeliveryRow, DeliveryStatus};
use ringfence_tests::{Behaviour, Ground, Receiver, Site, Stack, StackOptions, eventually};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{all_numbers, happen, numbers, subscribe};

crate::on_both_grounds!(
    the_next_holder_does_not_repeat_the_thousands_of_events_delivered_after_a_waiting_event,
    a_subscription_that_is_moved_back_gets_earlier_events_again,
    a_subscription_that_is_moved_past_a_waiting_event_stops_trying_it,
    an_event_that_no_longer_passes_the_filter_is_not_tried_again,
    a_delivery_left_pending_before_the_subscriptions_position_is_ended,
);

async fn stack_of(ground: Ground, hosts: usize) -> Stack {
    let options = StackOptions {
        hosts,
        ..StackOptions::default()
    };
    Stack::start_with(Site::new(ground).await, options).await
}

async fn put(stack: &Stack, receiver: &Receiver, more: Value) {
    let mut body = json!({ "name": "pager", "url": receiver.url() });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    stack.client.put("/subscriptions/pager", body).await.ok(200);
}

async fn until_done_up_to(stack: &Stack, number: u64) -> Value {
    let is_done = |shown: &Value| shown["after"].as_u64() == Some(number);
    stack.client.until("/subscriptions/pager", is_done).await
}

async fn last_number(stack: &Stack) -> u64 {
    ringfence_db::number_events(stack.api.db()).await.unwrap();
    ringfence_db::last_sequence(&mut stack.api.db().reader())
        .await
        .unwrap()
}

/// Waits until the delivery log has so many lines: a delivery without a line is repeated when another engine takes over.
async fn until_written(stack: &Stack, subscription: &Value, lines: usize) {
    let id = ringfence_core::SubscriptionId(subscription["id"].as_str().unwrap().parse().unwrap());
    eventually(async || {
        let log = ringfence_db::deliveries_after(&mut stack.api.db().reader(), id, 0, 10_000).await;
        log.unwrap().len() == lines
    })
    .await;
}

/// The only delivery with this status.
async fn the_one(stack: &Stack, status: &str) -> Value {
    let path = format!("/subscriptions/pager/deliveries?status={status}");
    let is_one = |log: &Value| log["deliveries"].as_array().unwrap().len() == 1;
    stack.client.until(&path, is_one).await["deliveries"][0].clone()
}

fn taken_of(receiver: &Receiver, host: &str) -> usize {
    let taken = receiver.taken();
    taken.iter().filter(|event| event["subject"] == host).count()
}

async fn the_next_holder_does_not_repeat_the_thousands_of_events_delivered_after_a_waiting_event(
    ground: Ground,
) {
    let stack = stack_of(ground, 6).await;
    let receiver = Receiver::start(Behaviour::AnswersForHost(500, "h1".to_owned()));
    let made = subscribe(&stack, "pager", &receiver, json!({})).await;
    stack.client.seen("h1", "UP").await.ok(200);
    for host in ["h2", "h3", "h4", "h5"] {
        happen(&stack, host, vec![json!({}); 600]).await;
    }
    until_written(&stack, &made, 2401).await;
    // A new holder takes over: it finds these events delivered, and continues after them.
    stack
        .client
        .post("/subscriptions/pager/rotate-secret", json!({}))
        .await
        .ok(200);
    stack.client.seen("h6", "UP").await.ok(200);
    until_written(&stack, &made, 2402).await;
    receiver.behave(Behaviour::Takes);
    put(&stack, &receiver, json!({ "enabled": false })).await;
    put(&stack, &receiver, json!({ "enabled": true })).await;
    until_done_up_to(&stack, last_number(&stack).await).await;
    // Only a delivery that was under way at the takeover may have come twice.
    for host in ["h2", "h3", "h4", "h5"] {
        assert_eq!(taken_of(&receiver, host), 600, "{host}");
    }
    stack.stop().await;
}

async fn a_subscription_that_is_moved_back_gets_earlier_events_again(ground: Ground) {
    let stack = stack_of(ground, 1).await;
    let receiver = Receiver::start(Behaviour::Takes);
    let begun = subscribe(&stack, "pager", &receiver, json!({})).await["after"]
        .as_u64()
        .unwrap();
    for state in ["UP", "UNREACHABLE", "UP"] {
        stack.client.seen("h1", state).await.ok(200);
    }
    let all = all_numbers(&stack, begun).await;
    assert_eq!(all.len(), 3);
    until_done_up_to(&stack, all[2]).await;
    put(&stack, &receiver, json!({ "after": all[0] })).await;
    eventually(async || receiver.taken().len() >= 5).await;
    until_done_up_to(&stack, all[2]).await;
    let told = numbers(&receiver.taken());
    assert_eq!(told, [all[0], all[1], all[2], all[1], all[2]]);
    let ids = |n: usize| receiver.taken()[n]["id"].clone();
    assert_eq!((ids(1), ids(2)), (ids(3), ids(4)));
    // The log has one line for each event, of its last delivery.
    let log = stack.client.get("/subscriptions/pager/deliveries").await.ok(200);
    assert_eq!(log["deliveries"].as_array().unwrap().len(), 3, "{log}");
    // Setting the present position again moves nothing: no event comes again.
    put(&stack, &receiver, json!({ "after": all[2] })).await;
    stack.client.seen("h1", "UNREACHABLE").await.ok(200);
    eventually(async || receiver.taken().len() >= 6).await;
    assert_eq!(numbers(&receiver.taken())[5], all[2] + 1);
    stack.stop().await;
}

async fn a_subscription_that_is_moved_past_a_waiting_event_stops_trying_it(ground: Ground) {
    let stack = stack_of(ground, 2).await;
    let receiver = Receiver::start(Behaviour::AnswersForHost(500, "h1".to_owned()));
    subscribe(&stack, "pager", &receiver, json!({})).await;
    stack.client.seen("h1", "UP").await.ok(200);
    let stuck_at = last_number(&stack).await;
    stack.client.seen("h2", "UP").await.ok(200);
    the_one(&stack, "delivered").await;
    let tried = the_one(&stack, "pending").await;
    assert_eq!(tried["sequence"], stuck_at);
    put(&stack, &receiver, json!({ "after": stuck_at })).await;
    let shown = until_done_up_to(&stack, last_number(&stack).await).await;
    assert_eq!(shown["retrying"], 0, "{shown}");
    let over = the_one(&stack, "failed").await;
    assert_eq!(over["id"], tried["id"]);
    assert!(over["detail"].as_str().unwrap().contains("gone past"), "{over}");
    // Delivered events after the new position do not come again, and the host's later events come.
    receiver.behave(Behaviour::Takes);
    stack.client.seen("h1", "UNREACHABLE").await.ok(200);
    eventually(async || taken_of(&receiver, "h1") == 1).await;
    assert_eq!(
        numbers(&receiver.taken()),
        [stuck_at + 1, last_number(&stack).await]
    );
    stack.stop().await;
}

async fn an_event_that_no_longer_passes_the_filter_is_not_tried_again(ground: Ground) {
    let stack = stack_of(ground, 2).await;
    let receiver = Receiver::start(Behaviour::AnswersForHost(500, "h1".to_owned()));
    subscribe(&stack, "pager", &receiver, json!({})).await;
    stack.client.seen("h1", "UP").await.ok(200);
    let tried = the_one(&stack, "pending").await;
    put(&stack, &receiver, json!({ "hosts": ["h2"] })).await;
    let shown = until_done_up_to(&stack, last_number(&stack).await).await;
    assert_eq!(shown["retrying"], 0, "{shown}");
    let over = the_one(&stack, "failed").await;
    assert_eq!(over["id"], tried["id"]);
    assert!(over["detail"].as_str().unwrap().contains("filter"), "{over}");
    stack.client.seen("h2", "UP").await.ok(200);
    eventually(async || taken_of(&receiver, "h2") == 1).await;
    stack.stop().await;
}

async fn a_delivery_left_pending_before_the_subscriptions_position_is_ended(ground: Ground) {
    let stack = stack_of(ground, 1).await;
    let receiver = Receiver::start(Behaviour::Takes);
    let made = subscribe(&stack, "pager", &receiver, json!({ "enabled": false })).await;
    let now = stack.api.clock().now();
    let left = DeliveryRow {
        id: Uuid::new_v4(),
        subscription_id: ringfence_core::SubscriptionId(made["id"].as_str().unwrap().parse().unwrap()),
        kind: DeliveryKind::Event,
        sequence: made["after"].as_u64(),
        message_id: Uuid::new_v4(),
        event_type: "host.created".to_owned(),
        host: Some("h1".to_owned()),
        status: DeliveryStatus::Pending,
        tries: 3,
        created_at: now,
        tried_at: Some(now),
        next_at: Some(now),
        answer: Some(500),
        detail: Some("answered 500".to_owned()),
        took_ms: Some(1),
    };
    let left = [left];
    ringfence_db::save_deliveries(&mut stack.api.db().reader(), &left)
        .await
        .unwrap();
    let shown = stack.client.get("/subscriptions/pager").await.ok(200);
    assert_eq!(shown["retrying"], 0, "{shown}");
    put(&stack, &receiver, json!({})).await;
    assert_eq!(the_one(&stack, "failed").await["id"], left[0].id.to_string());
    assert!(receiver.received().is_empty());
    stack.stop().await;
}
