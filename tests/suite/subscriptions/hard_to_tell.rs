//! Events that a broker cannot take as they are.

use ringfence_tests::{Ground, Site, Stack, StackOptions, eventually};
use serde_json::json;

use super::event_sinks::{broker, heard, listen, tell, told_up_to};
use super::{all_numbers, happen};
use crate::metrics::numbers_of;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_of_a_segment_with_the_longest_name_delays_no_other_event() {
    let site = Site::new(Ground::Distributed).await;
    let mut stack = Stack::start_with(site, StackOptions::default()).await;
    tell(&mut stack);
    let client = stack.client.clone();
    eventually(async || told_up_to(&stack).await > 0).await;
    client.seen("h1", "UP").await.ok(200);
    let from = *all_numbers(&stack, 0).await.last().unwrap();
    eventually(async || told_up_to(&stack).await >= from).await;
    let connection = broker(&stack).await;
    let mut everything = listen(&stack, &connection, "#").await;
    let name = "s".repeat(255);
    client.post("/segments", json!({ "name": name })).await.ok(201);
    let host = json!({ "name": "h9", "segment": name });
    client.post("/hosts", host).await.ok(201);
    client.seen("h1", "UNREACHABLE").await.ok(200);
    let last = *all_numbers(&stack, from).await.last().unwrap();
    eventually(async || told_up_to(&stack).await >= last).await;
    let heard = heard(&mut everything).await;
    let keys: Vec<_> = heard.iter().map(|(key, _)| key.as_str()).collect();
    let long = format!("host.{}~", "s".repeat(167));
    assert!(
        keys[0].starts_with(&long) && keys[0].ends_with(".host.created"),
        "{keys:?}"
    );
    assert_eq!(keys[1..], ["host.default.host.failure_state"]);
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_cannot_be_published_is_left_out_and_counted() {
    let options = StackOptions {
        workers: 0,
        ..StackOptions::default()
    };
    let mut stack = Stack::start_with(Site::with_own_peers().await, options).await;
    let (program, environment) = stack.site.rabbit.as_ref().unwrap().control();
    // The broker has a lower max_message_size.
    let limit =
        "application:set_env(rabbit, max_message_size, 50000), persistent_term:put(max_message_size, 50000).";
    let set = std::process::Command::new(program)
        .envs(environment)
        .args(["eval", limit])
        .status();
    assert!(set.unwrap().success());
    tell(&mut stack);
    let client = stack.client.clone();
    eventually(async || told_up_to(&stack).await > 0).await;
    client.seen("h1", "UP").await.ok(200);
    let from = *all_numbers(&stack, 0).await.last().unwrap();
    eventually(async || told_up_to(&stack).await >= from).await;
    let connection = broker(&stack).await;
    let mut everything = listen(&stack, &connection, "#").await;
    // The second event is larger than the broker takes, the fourth larger than Ringfence sends.
    let sizes = [10, 60_000, 20, 300_000, 30];
    let data = sizes.map(|size| json!({ "text": "x".repeat(size) }));
    happen(&stack, "h1", data.to_vec()).await;
    eventually(async || told_up_to(&stack).await >= from + 5).await;
    let mut numbers: Vec<_> = heard(&mut everything)
        .await
        .iter()
        .map(|(_, event)| event["sequence"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers, [from + 1, from + 3, from + 5]);
    let event_sink = ["event_sink=\"exchange\""];
    let counted = numbers_of(&stack).await;
    assert_eq!(
        counted.sum("ringfence_event_sink_left_out_events_total", &event_sink),
        2.0
    );
    stack.stop().await;
}
