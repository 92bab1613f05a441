//! Events on a broker, as a listener gets them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use lapin::options::{BasicConsumeOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties, Consumer};
use ringfence_bus::{AmqpConfig, AmqpExchange, ExchangeConfig};
use ringfence_engine::{EventSink, SinkForm};
use ringfence_tests::{Ground, Site, Stack, StackOptions, eventually, power_plan};
use serde_json::{Value, json};

use super::all_numbers;
use crate::metrics::numbers_of;

fn exchange(stack: &Stack) -> EventSink {
    exchange_at(stack.site.amqp_url.as_deref().unwrap(), name(stack))
}

/// The exchange with this name at a broker that need not run.
pub fn exchange_at(url: &str, name: String) -> EventSink {
    EventSink {
        name: "exchange",
        form: SinkForm::CloudEvents,
        announcer: Arc::new(AmqpExchange::connect_when_there(
            AmqpConfig::new(url, "test").unwrap(),
            ExchangeConfig {
                name,
                is_ours: true,
                durable: true,
                queue: None,
            },
        )),
    }
}

fn name(stack: &Stack) -> String {
    format!("{}.events", stack.site.prefix)
}

pub fn tell(stack: &mut Stack) {
    let event_sink = exchange(stack);
    for (engine, running) in &mut stack.engines {
        running.as_mut().unwrap().tell(engine, event_sink.clone());
    }
}

/// Consumes messages whose routing key matches `pattern`.
pub async fn listen(stack: &Stack, connection: &Connection, pattern: &str) -> Consumer {
    let channel = connection.create_channel().await.unwrap();
    let queue = channel
        .queue_declare(
            "".into(),
            QueueDeclareOptions {
                exclusive: true,
                ..QueueDeclareOptions::default()
            },
            FieldTable::default(),
        )
        .await
        .unwrap();
    let queue = queue.name().clone();
    channel
        .queue_bind(
            queue.clone(),
            name(stack).as_str().into(),
            pattern.into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await
        .unwrap();
    channel
        .basic_consume(
            queue,
            "".into(),
            BasicConsumeOptions {
                no_ack: true,
                ..BasicConsumeOptions::default()
            },
            FieldTable::default(),
        )
        .await
        .unwrap()
}

/// The messages until none has come for a second, with their routing keys.
pub async fn heard(consumer: &mut Consumer) -> Vec<(String, Value)> {
    let mut heard = Vec::new();
    while let Ok(Some(delivery)) = tokio::time::timeout(Duration::from_secs(1), consumer.next()).await {
        let delivery = delivery.unwrap();
        let event: cloudevents::Event = serde_json::from_slice(&delivery.data).unwrap();
        let body: Value = serde_json::from_slice(&delivery.data).unwrap();
        assert_eq!(body["id"], cloudevents::AttributesReader::id(&event));
        let properties = &delivery.properties;
        assert_eq!(
            properties.message_id().as_ref().unwrap().as_str(),
            body["id"].as_str().unwrap()
        );
        heard.push((delivery.routing_key.to_string(), body["data"].clone()));
    }
    heard
}

pub async fn broker(stack: &Stack) -> Connection {
    let url = stack.site.amqp_url.as_deref().unwrap();
    Connection::connect(url, ConnectionProperties::default())
        .await
        .unwrap()
}

/// The number of the last event that the exchange has.
pub async fn told_up_to(stack: &Stack) -> u64 {
    let event_sinks = ringfence_db::list_event_sinks(&mut stack.api.db().reader())
        .await
        .unwrap();
    event_sinks
        .iter()
        .find(|(name, _)| name == "exchange")
        .map_or(0, |(_, number)| *number)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listeners_of_the_exchange_get_the_chosen_events_in_order() {
    let mut stack = Stack::start_with(
        Site::new(Ground::Distributed).await,
        StackOptions {
            engines: 2,
            hosts: 2,
            ..StackOptions::default()
        },
    )
    .await;
    stack.plan(power_plan()).await;
    let client = stack.client.clone();
    client
        .post("/segments", json!({ "name": "rack.2" }))
        .await
        .ok(201);
    client
        .post("/hosts", json!({ "name": "h9", "segment": "rack.2" }))
        .await
        .ok(201);
    tell(&mut stack);
    eventually(async || told_up_to(&stack).await > 0).await;
    let begun_at = told_up_to(&stack).await;
    // The first published event makes the exchange.
    client.seen("h2", "UP").await.ok(200);
    eventually(async || told_up_to(&stack).await > begun_at).await;
    let from = told_up_to(&stack).await;
    let connection = broker(&stack).await;
    let mut everything = listen(&stack, &connection, "#").await;
    let mut fences = listen(&stack, &connection, "host.*.host.fenced").await;
    let mut rack = listen(&stack, &connection, "host.rack_2.#").await;
    client.seen("h9", "UP").await.ok(200);
    stack.hang("h1").await;
    let operation = client.fence("h1").await;
    client.until_settled(&operation).await;
    let expected = all_numbers(&stack, from).await;
    eventually(async || told_up_to(&stack).await >= *expected.last().unwrap()).await;
    let all = heard(&mut everything).await;
    let numbers: Vec<_> = all
        .iter()
        .map(|(_, event)| event["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, expected);
    let listed = client
        .get(&format!("/events?after={from}&limit=1000"))
        .await
        .ok(200);
    let told: Vec<_> = all.into_iter().map(|(_, event)| event).collect();
    assert_eq!(Value::from(told), listed["events"]);
    let fences = heard(&mut fences).await;
    assert_eq!(fences.len(), 1);
    assert_eq!(fences[0].0, "host.default.host.fenced");
    assert_eq!(fences[0].1["host"], "h1");
    let rack = heard(&mut rack).await;
    assert_eq!(rack.len(), 1);
    assert_eq!(
        (&*rack[0].0, &rack[0].1["host"]),
        ("host.rack_2.host.failure_state", &json!("h9"))
    );
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_during_an_outage_of_the_broker_are_published_after_it() {
    let mut stack = Stack::start_with(
        Site::with_own_peers().await,
        StackOptions {
            workers: 0,
            ..StackOptions::default()
        },
    )
    .await;
    tell(&mut stack);
    let client = stack.client.clone();
    eventually(async || {
        !ringfence_db::list_event_sinks(&mut stack.api.db().reader())
            .await
            .unwrap()
            .is_empty()
    })
    .await;
    client.seen("h1", "UP").await.ok(200);
    let last = *all_numbers(&stack, 0).await.last().unwrap();
    eventually(async || told_up_to(&stack).await >= last).await;
    // A durable queue, which keeps events that are published while no listener is connected.
    let connection = broker(&stack).await;
    let channel = connection.create_channel().await.unwrap();
    let durable = QueueDeclareOptions::durable();
    channel
        .queue_declare("kept".into(), durable, FieldTable::default())
        .await
        .unwrap();
    channel
        .queue_bind(
            "kept".into(),
            name(&stack).as_str().into(),
            "#".into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await
        .unwrap();
    stack.site.rabbit.as_mut().unwrap().crash().unwrap();
    for state in ["UNREACHABLE", "UP", "UNREACHABLE"] {
        client.seen("h1", state).await.ok(200);
    }
    let expected = all_numbers(&stack, last).await;
    assert_eq!(expected.len(), 3);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(
        told_up_to(&stack).await,
        last,
        "events count as published while the broker is away"
    );
    let event_sink = ["event_sink=\"exchange\""];
    eventually(async || {
        let numbers = numbers_of(&stack).await;
        numbers.sum("ringfence_event_sink_failures_total", &event_sink) > 0.0
            && numbers.sum("ringfence_event_sink_oldest_age_seconds", &event_sink) > 0.0
    })
    .await;
    stack.site.rabbit.as_mut().unwrap().start_again().unwrap();
    eventually(async || told_up_to(&stack).await >= expected[2]).await;
    eventually(async || {
        let numbers = numbers_of(&stack).await;
        numbers.sum("ringfence_event_sink_told_events_total", &event_sink) >= 3.0
            && numbers.sum("ringfence_event_sink_oldest_age_seconds", &event_sink) == 0.0
    })
    .await;
    let connection = broker(&stack).await;
    let channel = connection.create_channel().await.unwrap();
    let mut kept = channel
        .basic_consume(
            "kept".into(),
            "".into(),
            BasicConsumeOptions {
                no_ack: true,
                ..BasicConsumeOptions::default()
            },
            FieldTable::default(),
        )
        .await
        .unwrap();
    let mut numbers: Vec<_> = heard(&mut kept)
        .await
        .iter()
        .map(|(_, event)| event["sequence"].as_u64().unwrap())
        .collect();
    numbers.dedup();
    assert_eq!(numbers, expected);
    stack.stop().await;
}
