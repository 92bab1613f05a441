//! The stream of events.

use reqwest::Method;
use ringfence_tests::{Ground, Stack, power_plan};

use super::refused;

crate::on_both_grounds!(events_are_streamed_from_where_the_listener_was,);

async fn events_are_streamed_from_where_the_listener_was(ground: Ground) {
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
    // The first block only says where the stream begins.
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
