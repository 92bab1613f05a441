//! Subscriptions: their events, the order of the events, and receivers that fail.

mod configuring;
pub mod event_sinks;
mod forms;
mod hard_to_tell;
mod moving;
mod oslo;
mod receivers;
mod telling;

use ringfence_db::{EventHost, NewEvent};
use ringfence_tests::{Receiver, Stack};
use serde_json::{Value, json};
use uuid::Uuid;

/// Adds a subscription of all events with this receiver; returns it with its secret.
pub async fn subscribe(stack: &Stack, name: &str, receiver: &Receiver, more: Value) -> Value {
    let mut body = json!({ "name": name, "url": receiver.url() });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    stack.client.post("/subscriptions", body).await.ok(201)
}

/// The sequence numbers of CloudEvents.
pub fn numbers(events: &[Value]) -> Vec<u64> {
    events
        .iter()
        .map(|event| event["data"]["sequence"].as_u64().unwrap())
        .collect()
}

/// The sequence numbers of all events after `after`.
pub async fn all_numbers(stack: &Stack, after: u64) -> Vec<u64> {
    // A committed event may have no number yet.
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

/// Appends events of a host with this data in one transaction. The host's own state does not change with them, and must not change later.
pub async fn happen(stack: &Stack, host: &str, data: Vec<Value>) {
    let db = stack.api.db();
    let shown = stack.client.host(host).await;
    let events = stack.client.get("/events?limit=1000").await.ok(200);
    let mut newest_first = events["events"].as_array().unwrap().iter().rev();
    let last = newest_first.find(|event| event["host"] == host).unwrap();
    let last = last["host_sequence"].as_u64().unwrap();
    let segments = ringfence_db::list_segments(&mut db.reader(), 100).await.unwrap();
    let segment = segments
        .iter()
        .find(|segment| shown["segment"] == segment.name)
        .unwrap();
    let event = |(number, data)| NewEvent {
        id: Uuid::new_v4(),
        host: Some(EventHost {
            id: ringfence_core::HostId(shown["id"].as_str().unwrap().parse().unwrap()),
            name: host.to_owned(),
            segment_id: segment.id,
            sequence: last + number,
            generation: ringfence_core::Generation(1),
        }),
        kind: ringfence_core::EventKind::HostUpdated,
        occurred_at: stack.api.clock().now(),
        data,
    };
    let events: Vec<_> = (1..).zip(data).map(event).collect();
    ringfence_db::append_events(&mut db.reader(), &events)
        .await
        .unwrap();
    while ringfence_db::number_events(db).await.unwrap() > 0 {}
}
