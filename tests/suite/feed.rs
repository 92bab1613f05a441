//! The event feed, for listeners that are slower than the events.

use std::time::Duration;

use chrono::{DateTime, Utc};
use ringfence_core::EventKind;
use ringfence_db::NewEvent;
use ringfence_engine::Listener;
use ringfence_tests::{Ground, Numbers, Stack, eventually, power_plan};
use serde_json::{Value, json};
use uuid::Uuid;

crate::on_both_grounds!(
    a_listener_that_lags_behind_hears_every_event_once,
    events_passed_on_by_decisions_and_events_found_in_the_table_are_heard_once_in_order,
    a_listener_that_comes_before_the_first_event_hears_every_event,
);

/// More events than the feed keeps for slow listeners, and more than one read of the table returns. The last read is not full, so that
/// kept events follow it.
const MANY: usize = 6100;

/// Appends so many events with this data.
pub(crate) async fn happen(stack: &Stack, count: usize, at: DateTime<Utc>, data: &Value) {
    let event = |_| NewEvent {
        id: Uuid::new_v4(),
        host: None,
        kind: EventKind::SubscriptionDisabled,
        occurred_at: at,
        data: data.clone(),
    };
    let events: Vec<_> = (0..count).map(event).collect();
    let mut tx = stack.api.db().begin().await.unwrap();
    ringfence_db::append_events(&mut tx, &events).await.unwrap();
    tx.commit().await.unwrap();
}

async fn last(stack: &Stack) -> u64 {
    ringfence_db::last_sequence(&mut stack.api.db().reader())
        .await
        .unwrap()
}

async fn heard(listener: &mut Listener, up_to: u64) -> Vec<u64> {
    let mut heard = Vec::new();
    while heard.last() != Some(&up_to) {
        heard.push(listener.next().await.unwrap().sequence);
        assert!(heard.len() < 2 * MANY, "the last event does not come");
    }
    heard
}

async fn a_listener_that_lags_behind_hears_every_event_once(ground: Ground) {
    let stack = Stack::start(ground).await;
    eventually(async || last(&stack).await > 0).await;
    let begun = last(&stack).await;
    let mut listener = stack.api.listen(begun - 1, None);
    // From here on the listener hears events from the feed, and does not read the table.
    assert_eq!(heard(&mut listener, begun).await, [begun]);
    happen(&stack, 1, stack.api.clock().now(), &json!({})).await;
    assert_eq!(heard(&mut listener, begun + 1).await, [begun + 1]);

    let end = begun + 1 + MANY as u64;
    happen(&stack, MANY, stack.api.clock().now(), &json!({})).await;
    eventually(async || last(&stack).await == end).await;
    // All events were passed on before the listener asked for the next: the feed keeps only the later part of them.
    eventually(async || {
        Numbers::of(&stack.client)
            .await
            .sum("ringfence_event_feed_lag_events", &[])
            == 0.0
    })
    .await;
    let expected: Vec<u64> = (begun + 2..=end).collect();
    assert!(
        heard(&mut listener, end).await == expected,
        "an event is missing or doubled"
    );
    // The listener goes on with new events.
    happen(&stack, 1, stack.api.clock().now(), &json!({})).await;
    assert_eq!(heard(&mut listener, end + 1).await, [end + 1]);
    stack.stop().await;
}

/// A decision that runs alone passes its events on itself, while the feed's reader finds events of other writers.
async fn events_passed_on_by_decisions_and_events_found_in_the_table_are_heard_once_in_order(ground: Ground) {
    const TURNS: u64 = 40;
    let stack = Stack::start_without_workers(ground).await;
    stack.plan(power_plan()).await;
    eventually(async || last(&stack).await > 0).await;
    let begun = last(&stack).await;
    let mut listener = stack.api.listen(begun - 1, None);
    assert_eq!(heard(&mut listener, begun).await, [begun]);
    let deciding = async {
        for turn in 0..TURNS {
            let state = if turn % 2 == 0 { "UP" } else { "UNKNOWN" };
            stack.client.seen("h1", state).await.ok(200);
        }
    };
    let others = async {
        for _ in 0..TURNS {
            happen(&stack, 1, stack.api.clock().now(), &json!({})).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::join!(deciding, others);
    let end = begun + 2 * TURNS;
    eventually(async || last(&stack).await == end).await;
    assert_eq!(
        heard(&mut listener, end).await,
        (begun + 1..=end).collect::<Vec<_>>()
    );
    stack.stop().await;
}

/// The table is read before the process knows its own position in it, which is behind events that were committed since.
async fn a_listener_that_comes_before_the_first_event_hears_every_event(ground: Ground) {
    let stack = Stack::start_without_workers(ground).await;
    eventually(async || last(&stack).await > 0).await;
    let begun = last(&stack).await;
    let engine = stack.unstarted_engine().await;
    let mut listener = engine.listen(begun - 1, None);
    assert_eq!(heard(&mut listener, begun).await, [begun]);
    let more = tokio::time::timeout(Duration::from_millis(100), listener.next()).await;
    assert!(more.is_err(), "an event came that was not appended");

    happen(&stack, 3, stack.api.clock().now(), &json!({})).await;
    eventually(async || last(&stack).await == begun + 3).await;
    let running = engine.start_writer();
    let all = [begun + 1, begun + 2, begun + 3];
    let hearing = heard(&mut listener, begun + 3);
    let after = tokio::time::timeout(Duration::from_secs(20), hearing).await;
    assert_eq!(after.unwrap(), all);
    happen(&stack, 1, stack.api.clock().now(), &json!({})).await;
    assert_eq!(heard(&mut listener, begun + 4).await, [begun + 4]);
    running.stop().await;
    stack.stop().await;
}
