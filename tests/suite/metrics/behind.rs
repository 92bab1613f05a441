//! Who lags behind is seen to, and so is a database that is away.

use ringfence_tests::{
    Behaviour, Ground, Numbers, Receiver, Site, Stack, StackOptions, eventually, power_plan,
};
use serde_json::json;

use super::{numbers_of, until};
use crate::subscriptions::subscribe;

crate::on_both_grounds!(subscriptions_are_counted_and_what_waits_for_their_receivers_is_seen,);

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

async fn subscriptions_are_counted_and_what_waits_for_their_receivers_is_seen(ground: Ground) {
    let stack = Stack::start(ground).await;
    let receiver = Receiver::start(Behaviour::Answers(503));
    subscribe(&stack, "pager", &receiver, json!({})).await;
    subscribe(&stack, "quiet", &receiver, json!({ "enabled": false })).await;
    let numbers = until(&stack, |numbers| subscriptions(numbers) == [1.0, 1.0, 0.0]).await;
    assert_eq!(oldest(&numbers), 0.0, "nothing has happened yet");
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
    assert_eq!(oldest(&numbers), 0.0, "nobody waits for what is disabled");
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_is_seen_in_the_metrics_and_so_is_its_return() {
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
    // An old number would be taken for a present one.
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
