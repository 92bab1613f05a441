//! Subscriptions: who is told of what, in which order, and what happens where a receiver does not take it.

mod configuring;
mod moving;
mod oslo;
pub mod outlets;
mod receivers;
mod telling;

use ringfence_tests::{Receiver, Stack};
use serde_json::{Value, json};

/// Adds a subscription that sends everything to this receiver; returns it with its secret.
pub async fn subscribe(stack: &Stack, name: &str, receiver: &Receiver, more: Value) -> Value {
    let mut body = json!({ "name": name, "url": receiver.url() });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    stack.client.post("/subscriptions", body).await.ok(201)
}

/// The numbers of CloudEvents.
pub fn numbers(events: &[Value]) -> Vec<u64> {
    events
        .iter()
        .map(|event| event["data"]["sequence"].as_u64().unwrap())
        .collect()
}

/// The numbers of all events of the site from `after` on.
pub async fn all_numbers(stack: &Stack, after: u64) -> Vec<u64> {
    // What was committed may have no number yet.
    ringfence_db::number_events(stack.api.db()).await.unwrap();
    let events = stack
        .client
        .get(&format!("/events?after={after}&limit=1000"))
        .await
        .ok(200);
    let events = events["events"].as_array().unwrap();
    events
        .iter()
        .map(|event| event["sequence"].as_u64().unwrap())
        .collect()
}
