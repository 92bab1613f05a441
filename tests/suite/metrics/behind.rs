//! Metrics of receivers that lag behind, and of a database that is away.

use ringfence_tests::{
    Behaviour, Ground, Numbers, Receiver, Site, Stack, StackOptions, eventually, power_plan,
};
use serde_json::json;

use super::{numbers_of, until};
use crate::subscriptions::subscribe;

crate::on_both_grounds!(subscriptions_and_the_age_of_their_waiting_events_are_measured,);

fn subscriptions(numbers: &Numbers) -> [f64; 3] {
    ["enabled", "disabled", "failed"].map(|state| {
        let label = format!("state=\"{state}\"");
        numbers.sum("ringfence_subscriptions", &[&label])
    })
}

fn oldest(numbers: &Numbers) -> f64 {
    assert!(numbers.has("ringfence_subscriptions_oldest_age_seconds"));
    numbers.sum("ringfence_subscriptions_oldest_age_seconds", &[])
}

async fn subscriptions_and_the_age_of_their_waiting_events_are_measured(ground: Ground) {
    let stack = Stack::start(ground).await;
    let receiver = Receiver::start(Behaviour::Answers(503));
    subscribe(&stack, "pager", &receiver, json!({})).await;
    subscribe(&stack, "quiet", &receiver, json!({ "enabled": false })).await;
    let numbers = until(&stack, |numbers| subscriptions(numbers) == [1.0, 1.0, 0.0]).await;
    assert_eq!(oldest(&numbers), 0.0, "no event waits yet");
    stack.client.seen("h1", "UP").await.ok(200);
    until(&stack, |numbers| oldest(numbers) > 0.0).await;
    receiver.behave(Behaviour::Takes);
    until(&stack, |numbers| oldest(numbers) == 0.0).await;
    assert_eq!(receiver.taken().len(), 1);
    let engine = numbers_of(&stack).await;
    let delivered = ["kind=\"event\"", "outcome=\"delivered\""];
    assert_eq!(engine.sum("ringfence_deliveries_total", &delivered), 1.0);
    receiver.behave(Behaviour::Answers(410));
    stack.client.seen("h1", "UNREACHABLE").await.ok(200);
    let numbers = until(&stack, |numbers| subscriptions(numbers) == [0.0, 1.0, 1.0]).await;
    assert_eq!(
        oldest(&numbers),
        0.0,
        "a disabled subscription has no waiting events"
    );
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_the_database_and_its_end_are_shown_in_the_metrics() {
    let mut stack = Stack::start_with(Site::with_own_peers().await, StackOptions::default()).await;
    stack.plan(power_plan()).await;
    let is_up = |numbers: &Numbers| numbers.sum("ringfence_database_up", &[]) == 1.0;
    until(&stack, is_up).await;
    let mut postgres = stack.site.postgres.take().unwrap();
    let postgres = tokio::task::spawn_blocking(move || {
        postgres.crash().unwrap();
        postgres
    });
    let mut postgres = postgres.await.unwrap();
    let api = until(&stack, |numbers| !is_up(numbers)).await;
    eventually(async || !is_up(&numbers_of(&stack).await)).await;
    let engine = numbers_of(&stack).await;
    // An old value would be taken for the present one.
    for numbers in [&api, &engine] {
        assert!(numbers.has("ringfence_database_up") && numbers.has("ringfence_build_info"));
        for name in [
            "ringfence_hosts",
            "ringfence_outbox_messages",
            "ringfence_subscriptions",
        ] {
            assert!(!numbers.has(name), "{name}");
        }
    }
    let postgres = tokio::task::spawn_blocking(move || {
        postgres.start_again().unwrap();
        postgres
    });
    stack.site.postgres = Some(postgres.await.unwrap());
    let api = until(&stack, is_up).await;
    eventually(async || is_up(&numbers_of(&stack).await)).await;
    assert_eq!(api.sum("ringfence_hosts", &[]), 1.0);
    stack.hang("h1").await;
    stack.client.fence("h1").await;
    stack.client.until_fenced("h1").await;
    stack.stop().await;
}
