//! Events, as those hear them who are slower than they come.

use std::time::Duration;

use chrono::{DateTime, Utc};
use ringfence_core::EventKind;
use ringfence_db::NewEvent;
use ringfence_engine::Listener;
use ringfence_tests::{Ground, Numbers, Stack, eventually, power_plan};
use serde_json::{Value, json};
use uuid::Uuid;

crate::on_both_grounds!(
    who_lags_behind_misses_nothing_and_hears_nothing_twice,
    what_decisions_pass_on_themselves_and_what_is_found_by_looking_is_heard_once_and_in_order,
    who_listens_before_anything_is_passed_on_misses_nothing,
);

/// More than are kept for listeners that are a little behind, and more than one look at the table reads. The last look is not full, so
/// that what was kept meanwhile is heard next.
const MANY: usize = 6100;

/// Events come about, all with these particulars.
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
        assert!(heard.len() < 2 * MANY, "the last one never comes");
    }
    heard
}

async fn who_lags_behind_misses_nothing_and_hears_nothing_twice(ground: Ground) {
    let stack = Stack::start(ground).await;
    eventually(async || last(&stack).await > 0).await;
    let begun = last(&stack).await;
    let mut listener = stack.api.listen(begun - 1, None);
    // From here on it listens to what happens, and does not look at the table.
    assert_eq!(heard(&mut listener, begun).await, [begun]);
    happen(&stack, 1, stack.api.clock().now(), &json!({})).await;
    assert_eq!(heard(&mut listener, begun + 1).await, [begun + 1]);

    let end = begun + 1 + MANY as u64;
    happen(&stack, MANY, stack.api.clock().now(), &json!({})).await;
    eventually(async || last(&stack).await == end).await;
    // All were passed on while it was at something else: what is kept for it begins in the middle.
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
        "there is a gap, or a double"
    );
    // And it goes on with what happens.
    happen(&stack, 1, stack.api.clock().now(), &json!({})).await;
    assert_eq!(heard(&mut listener, end + 1).await, [end + 1]);
    stack.stop().await;
}

/// A decision that is alone passes its events on by itself, while the feed's own reader looks for those of others.
async fn what_decisions_pass_on_themselves_and_what_is_found_by_looking_is_heard_once_and_in_order(
    ground: Ground,
) {
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

/// The table is read before the process has its own place in it, which is behind what has been committed meanwhile.
async fn who_listens_before_anything_is_passed_on_misses_nothing(ground: Ground) {
    let stack = Stack::start_without_workers(ground).await;
    eventually(async || last(&stack).await > 0).await;
    let begun = last(&stack).await;
    let engine = stack.unstarted_engine().await;
    let mut listener = engine.listen(begun - 1, None);
    assert_eq!(heard(&mut listener, begun).await, [begun]);
    let more = tokio::time::timeout(Duration::from_millis(100), listener.next()).await;
    assert!(more.is_err(), "nothing else has happened");

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
