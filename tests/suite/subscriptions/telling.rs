//! Which events are delivered, and in which order.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use cloudevents::AttributesReader;
use ringfence_engine::ClockSource;
use ringfence_tests::{Behaviour, Ground, Receiver, Site, Stack, StackOptions, eventually, power_plan};
use serde_json::{Value, json};
use standardwebhooks::Webhook;

use super::{all_numbers, numbers, subscribe};

crate::on_both_grounds!(
    a_subscriber_gets_the_events_of_a_fence_as_signed_cloud_events,
    only_events_that_pass_the_filter_are_delivered,
    an_undelivered_event_of_one_host_delays_no_other_host,
    another_engine_delivers_the_events_of_a_stopped_engine,
    no_event_is_lost_when_engines_die,
);

async fn a_subscriber_gets_the_events_of_a_fence_as_signed_cloud_events(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let receiver = Receiver::start(Behaviour::Takes);
    let made = subscribe(&stack, "pager", &receiver, json!({})).await;
    let secret = made["secret"].as_str().unwrap();
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_settled(&operation).await;
    let after = made["after"].as_u64().unwrap();
    let expected = all_numbers(&stack, after).await;
    assert!(expected.len() >= 5, "{expected:?}");
    eventually(async || receiver.taken().len() >= expected.len()).await;
    // Each event of the one host comes once, in order.
    assert_eq!(numbers(&receiver.taken()), expected);
    let listed = stack.client.get("/events?limit=1000").await.ok(200);
    for one in receiver.received() {
        Webhook::new(secret)
            .unwrap()
            .verify(&one.body, &one.headers)
            .unwrap();
        assert_eq!(
            one.header("content-type"),
            "application/cloudevents+json; charset=utf-8"
        );
        let event: cloudevents::Event = serde_json::from_slice(&one.body).unwrap();
        assert_eq!(event.source().as_str(), "/ringfence/test");
        assert_eq!(event.subject(), Some("h1"));
        assert_eq!(one.header("webhook-id"), event.id());
        let data = one.event()["data"].clone();
        assert!(listed["events"].as_array().unwrap().contains(&data), "{data}");
        assert_eq!(
            event.ty(),
            format!("ringfence.{}", data["type"].as_str().unwrap())
        );
    }
    let shown = stack
        .client
        .until("/subscriptions/pager", |shown| {
            shown["after"].as_u64() >= expected.last().copied()
        })
        .await;
    assert!(shown.get("secret").is_none(), "{shown}");
    let log = stack.client.get("/subscriptions/pager/deliveries").await.ok(200);
    let log = log["deliveries"].as_array().unwrap();
    assert_eq!(log.len(), expected.len());
    assert!(
        log.iter()
            .all(|one| one["status"] == "delivered" && one["answer"] == 200)
    );
    stack.stop().await;
}

async fn only_events_that_pass_the_filter_are_delivered(ground: Ground) {
    let stack = Stack::start_with(
        Site::new(ground).await,
        StackOptions {
            hosts: 2,
            ..StackOptions::default()
        },
    )
    .await;
    let client = &stack.client;
    client
        .post("/segments", json!({ "name": "rack-2" }))
        .await
        .ok(201);
    client
        .post("/hosts", json!({ "name": "h3", "segment": "rack-2" }))
        .await
        .ok(201);
    let receivers = [(); 4].map(|()| Receiver::start(Behaviour::Takes));
    let filters = [
        json!({ "types": ["host.failure_state"] }),
        json!({ "types": ["host.*"], "hosts": ["h2"] }),
        json!({ "segments": ["rack-2"] }),
        json!({ "types": ["operation.*"] }),
    ];
    for (i, (receiver, filter)) in receivers.iter().zip(filters).enumerate() {
        subscribe(&stack, &format!("s{i}"), receiver, filter).await;
    }
    let everything = Receiver::start(Behaviour::Takes);
    let made = subscribe(&stack, "everything", &everything, json!({ "after": 0 })).await;
    assert_eq!(made["after"], 0);
    for host in ["h1", "h2", "h3"] {
        client.seen(host, "UP").await.ok(200);
    }
    client
        .patch("/hosts/h2", json!({ "type": "blade" }))
        .await
        .ok(200);
    let all = all_numbers(&stack, 0).await;
    eventually(async || numbers(&everything.taken()).len() == all.len()).await;
    for i in 0..receivers.len() {
        let path = format!("/subscriptions/s{i}");
        client
            .until(&path, |shown| shown["after"].as_u64() == all.last().copied())
            .await;
    }
    let told = |i: usize| {
        let taken = receivers[i].taken();
        let kinds = taken.iter().map(|event| {
            let data = &event["data"];
            format!(
                "{} {}",
                data["host"].as_str().unwrap(),
                data["type"].as_str().unwrap()
            )
        });
        let mut kinds: Vec<_> = kinds.collect();
        kinds.sort();
        kinds
    };
    assert_eq!(
        told(0),
        [
            "h1 host.failure_state",
            "h2 host.failure_state",
            "h3 host.failure_state"
        ]
    );
    assert_eq!(told(1), ["h2 host.failure_state", "h2 host.updated"]);
    assert_eq!(told(2), ["h3 host.failure_state"]);
    assert!(told(3).is_empty());
    stack.stop().await;
}

async fn an_undelivered_event_of_one_host_delays_no_other_host(ground: Ground) {
    let stack = Stack::start_with(
        Site::new(ground).await,
        StackOptions {
            hosts: 3,
            ..StackOptions::default()
        },
    )
    .await;
    let client = &stack.client;
    let receiver = Receiver::start(Behaviour::AnswersForHost(500, "h1".to_owned()));
    subscribe(&stack, "pager", &receiver, json!({})).await;
    for state in ["UP", "UNREACHABLE", "UP"] {
        for host in ["h1", "h2", "h3"] {
            client.seen(host, state).await.ok(200);
        }
    }
    eventually(async || receiver.taken().len() == 6).await;
    let path = "/subscriptions/pager/deliveries?status=pending";
    let waiting = client
        .until(path, |log| !log["deliveries"].as_array().unwrap().is_empty())
        .await;
    let waiting = &waiting["deliveries"];
    assert_eq!(
        waiting.as_array().unwrap().len(),
        1,
        "only the host's first waiting event is tried: {waiting}"
    );
    assert_eq!(waiting[0]["answer"], 500);
    assert!(
        waiting[0]["detail"].as_str().unwrap().contains("500"),
        "{waiting}"
    );
    assert_eq!(client.get("/subscriptions/pager").await.ok(200)["retrying"], 1);
    receiver.behave(Behaviour::Takes);
    eventually(async || receiver.taken().len() == 9).await;
    let mut by_host: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for event in receiver.taken() {
        let host = event["subject"].as_str().unwrap().to_owned();
        by_host
            .entry(host)
            .or_default()
            .push(event["data"]["host_sequence"].as_u64().unwrap());
    }
    assert_eq!(by_host.len(), 3);
    for numbers in by_host.values() {
        assert!(numbers.is_sorted() && numbers.len() == 3, "{by_host:?}");
    }
    // Every try of an event has one id.
    let ids: Vec<_> = receiver
        .received()
        .iter()
        .filter(|one| one.event()["subject"] == "h1")
        .map(|one| (one.event()["id"].clone(), one.header("webhook-id").to_owned()))
        .collect();
    assert!(ids.iter().all(|(id, header)| id == header));
    assert_eq!(ids[0], ids[1]);
    stack.stop().await;
}

async fn another_engine_delivers_the_events_of_a_stopped_engine(ground: Ground) {
    let options = StackOptions::default();
    let mut stack = Stack::start_with(Site::new(ground).await, options.clone()).await;
    let receiver = Receiver::start(Behaviour::Answers(503));
    subscribe(&stack, "pager", &receiver, json!({})).await;
    stack.client.seen("h1", "UP").await.ok(200);
    eventually(async || !receiver.received().is_empty()).await;
    let (_, running) = stack.engines.remove(0);
    running.unwrap().stop().await;
    receiver.behave(Behaviour::Takes);
    stack.client.seen("h1", "UNREACHABLE").await.ok(200);
    stack.add_engine(&options).await;
    eventually(async || receiver.taken().len() == 2).await;
    let kinds: Vec<_> = receiver
        .taken()
        .iter()
        .map(|event| event["data"]["host_sequence"].clone())
        .collect();
    assert_eq!(kinds, [json!(2), json!(3)]);
    stack.stop().await;
}

/// Two engines; the engine that holds the subscription is stopped like a killed process, again and again.
async fn no_event_is_lost_when_engines_die(ground: Ground) {
    let start = chrono::DateTime::parse_from_rfc3339("2026-01-31T12:00:00Z")
        .unwrap()
        .to_utc();
    let options = StackOptions {
        clock: ClockSource::Manual(start),
        hosts: 2,
        ..StackOptions::default()
    };
    let mut stack = Stack::start_with(Site::new(ground).await, options.clone()).await;
    let receiver = Receiver::start(Behaviour::Takes);
    let made = subscribe(&stack, "pager", &receiver, json!({})).await;
    for round in 0..4 {
        for state in ["UP", "UNREACHABLE"] {
            for host in ["h1", "h2"] {
                let at = start + TimeDelta::seconds(round + 1);
                let body = json!({ "failure_state": state, "source": "test", "observed_at": at, "boot_id": format!("{round}") });
                stack
                    .client
                    .put(&format!("/hosts/{host}/failure-state"), body)
                    .await
                    .ok(200);
            }
        }
        // The last delivery may or may not be in the log.
        eventually(async || receiver.taken().len() > usize::try_from(round).unwrap()).await;
        let (engine, running) = stack.engines.remove(0);
        drop(running);
        let now = engine.clock().now() + TimeDelta::seconds(31);
        stack
            .add_engine(&StackOptions {
                clock: ClockSource::Manual(now),
                ..options.clone()
            })
            .await;
        stack.api.clock().advance(TimeDelta::seconds(31));
    }
    let expected = all_numbers(&stack, made["after"].as_u64().unwrap()).await;
    let distinct = || {
        let mut told = numbers(&receiver.taken());
        told.sort_unstable();
        told.dedup();
        told
    };
    eventually(async || distinct() == expected).await;
    let ids_by_number: BTreeMap<u64, Value> = receiver
        .taken()
        .into_iter()
        .map(|event| (event["data"]["sequence"].as_u64().unwrap(), event["id"].clone()))
        .collect();
    for event in receiver.taken() {
        assert_eq!(
            ids_by_number[&event["data"]["sequence"].as_u64().unwrap()],
            event["id"]
        );
    }
    stack.stop().await;
}
