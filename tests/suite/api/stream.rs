//! The stream of events.

use std::time::Duration;

use chrono::TimeDelta;
use reqwest::{Method, Response};
use ringfence_api::hash_token;
use ringfence_engine::{ClockSource, RetentionConfig};
use ringfence_tests::{Client, Ground, Site, Stack, StackOptions, eventually, now, power_plan};
use serde_json::json;

use super::refused;
use crate::feed::happen;

crate::on_both_grounds!(
    a_stream_resumes_at_the_listeners_last_event,
    a_stream_that_lags_too_far_behind_says_so_and_ends,
);

async fn open(client: &Client, path: &str) -> Response {
    let stream = client.request(Method::GET, path).send().await.unwrap();
    assert_eq!(stream.status().as_u16(), 200);
    stream
}

/// Reads the stream until this text, or to its end.
async fn read(stream: &mut Response, until: Option<&str>) -> String {
    let mut text = String::new();
    while until.is_none_or(|word| !text.contains(word)) {
        match stream.chunk().await.unwrap() {
            Some(chunk) => text.push_str(&String::from_utf8_lossy(&chunk)),
            None => break,
        }
    }
    text
}

fn ids(text: &str) -> Vec<u64> {
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: "));
    ids.map(|id| id.parse().unwrap()).collect()
}

async fn a_stream_resumes_at_the_listeners_last_event(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let client = &stack.client;
    let mut stream = client
        .request(Method::GET, "/events/stream")
        .header("Last-Event-ID", "0")
        .send()
        .await
        .unwrap();
    assert_eq!(stream.status().as_u16(), 200);
    stack.hang("h1").await;
    client.fence("h1").await;
    let mut text = String::new();
    while !text.contains("event: operation.succeeded") {
        text.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
    }
    let ids: Vec<u64> = text
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .map(|id| id.parse().unwrap())
        .collect();
    // The first block has no event: it says where the stream begins.
    assert_eq!(ids, (0..ids.len() as u64).collect::<Vec<_>>());
    let middle = ids[2].to_string();
    let mut again = client
        .request(Method::GET, "/events/stream?host=h1")
        .header("Last-Event-ID", &middle)
        .send()
        .await
        .unwrap();
    let mut text = String::new();
    while !text.contains("event: operation.succeeded") {
        text.push_str(&String::from_utf8_lossy(&again.chunk().await.unwrap().unwrap()));
    }
    let again: Vec<u64> = text
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .map(|id| id.parse().unwrap())
        .collect();
    assert_eq!(again, ids[2..]);
    refused(
        &client.get("/events/stream?after=x").await,
        400,
        "fencing.request.invalid",
        &["after", "x"],
    );
    stack.stop().await;
}

/// The stream's connection is full, and events that it has not sent are removed meanwhile.
async fn a_stream_that_lags_too_far_behind_says_so_and_ends(ground: Ground) {
    const MANY: usize = 600;
    let options = StackOptions {
        clock: ClockSource::Manual(now()),
        hosts: 0,
        retention: RetentionConfig {
            events: Some(TimeDelta::days(1)),
            look_every: Duration::from_millis(100),
            at_once: 200,
            ..RetentionConfig::default()
        },
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    // More events than the connection holds.
    let data = json!({ "words": "x".repeat(64 * 1024) });
    happen(&stack, MANY, stack.api.clock().now(), &data).await;
    let there = format!("/events?after={}", MANY - 1);
    let is_there = |list: &serde_json::Value| list["events"][0].is_object();
    stack.client.until(&there, is_there).await;
    let mut stream = open(&stack.client, "/events/stream?after=0").await;
    let begun = read(&mut stream, Some("id: 1\n")).await;

    for engine in stack.engines.iter().map(|(engine, _)| engine).chain([&stack.api]) {
        engine.clock().advance(TimeDelta::days(2));
    }
    let removed = MANY as u64 - 1;
    eventually(async || stack.client.get(&there).await.ok(200)["removed_up_to"] == removed).await;
    let text = begun + &read(&mut stream, None).await;
    let ids = ids(&text);
    // Events that were read before the removal still come, without a gap; then the stream says which events are gone.
    assert_eq!(ids, (0..ids.len() as u64).collect::<Vec<_>>());
    let last = ids.len() as u64 - 1;
    assert!(last > 0 && last < removed, "{last}");
    let gone = json!({ "after": last, "removed_up_to": removed });
    let end = format!("event: events.gone\ndata: {gone}\n\n");
    assert!(
        text.ends_with(&end),
        "{:?}",
        &text[text.len().saturating_sub(200)..]
    );
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_stream_sends_heartbeats() {
    let stack = Stack::start(Ground::Standalone).await;
    let mut stream = open(&stack.client, "/events/stream").await;
    let text = read(&mut stream, Some(": still here\n\n")).await;
    // The stream has nothing but the heartbeat and its first block.
    assert_eq!(ids(&text).len(), 1, "{text}");
    assert!(!text.contains("event:"), "{text}");
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_or_expired_static_token_ends_its_streams() {
    let stack = Stack::start(Ground::Standalone).await;
    let file = stack.site.dir.path().join("tokens.toml");
    let others = std::fs::read_to_string(&file).unwrap();
    let entry = |name: &str, more: &str| {
        let hash = hash_token(name);
        format!("[[token]]\nname = \"{name}\"\nrole = \"reader\"\nsha256 = \"{hash}\"\n{more}")
    };
    let both = format!("{others}{}{}", entry("taken", ""), entry("ending", ""));
    std::fs::write(&file, both).unwrap();
    let of = |token: &str| stack.client.with_token(Some(token));
    eventually(async || of("taken").get("/hosts").await.status == 200).await;

    let mut taken = open(&of("taken"), "/events/stream").await;
    let mut ended = open(&of("ending"), "/events/stream").await;
    let mut stays = open(&stack.client, "/events/stream").await;
    let expires_at = (now() + TimeDelta::seconds(4)).to_rfc3339();
    let ending = entry("ending", &format!("expires_at = \"{expires_at}\"\n"));
    std::fs::write(&file, format!("{others}{ending}")).unwrap();
    let text = read(&mut taken, None).await;
    assert_eq!(ids(&text).len(), 1, "{text}");
    assert_eq!(of("taken").get("/hosts").await.status, 401);
    read(&mut ended, None).await;
    assert_eq!(of("ending").get("/hosts").await.status, 401);

    // Streams of other tokens go on.
    stack.client.seen("h1", "UP").await.ok(200);
    read(&mut stays, Some("event: host.failure_state")).await;
    stack.stop().await;
}
