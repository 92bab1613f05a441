//! Time: the self-fencing timeout, restarts, and a clock that is set to another time.

use std::time::Duration;

use chrono::TimeDelta;
use ringfence_core::Resource;
use ringfence_engine::ClockSource;
use ringfence_simulators::{Fault, FaultKind};
use ringfence_tests::{Ground, Site, Stack, StackOptions, eventually, now, power_plan};
use serde_json::json;

crate::on_both_grounds!(
    the_self_fencing_timeout_fences_an_unreachable_host,
    the_self_fencing_timeout_does_not_run_without_observed_silence,
    a_monitor_that_stops_reporting_proves_nothing,
    a_decision_that_is_due_before_the_next_pass_is_made_in_time,
    a_failed_fence_restarts_automatically_where_the_segment_says_so,
    a_clock_that_is_moved_by_a_day_strands_no_operation,
);

async fn with_policy(ground: Ground, policy: serde_json::Value) -> Stack {
    with_policy_and(ground, policy, StackOptions::default()).await
}

async fn with_policy_and(ground: Ground, policy: serde_json::Value, options: StackOptions) -> Stack {
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    stack.plan(power_plan()).await;
    stack.client.set_default_policy(policy).await.ok(200);
    stack.set_fault("h1", Resource::Power, Some(Fault::forever(FaultKind::Refuse)));
    stack
}

async fn the_self_fencing_timeout_fences_an_unreachable_host(ground: Ground) {
    let stack = with_policy(ground, json!({ "self_fencing_timeout_s": 2 })).await;
    stack.client.seen("h1", "UP").await.ok(200);
    let last_seen_at = Some(now());
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    let _monitor = stack.client.keep_missing("h1", last_seen_at);
    let host = stack.client.until_fenced("h1").await;
    assert_eq!(host["proofs"][0]["kind"], "self-fencing");
    let operation = stack.client.until_settled(&operation).await;
    assert_eq!(operation["status"], "succeeded");
    let seen = chrono::DateTime::parse_from_rfc3339(operation["created_at"].as_str().unwrap()).unwrap();
    let fenced = chrono::DateTime::parse_from_rfc3339(host["fenced_at"].as_str().unwrap()).unwrap();
    assert!(fenced - seen > TimeDelta::milliseconds(1_500), "{operation}");
    stack.stop().await;
}

/// A proof that must settle. The engine that made the decision knows the time; the next pass over due hosts is an hour away.
async fn a_decision_that_is_due_before_the_next_pass_is_made_in_time(ground: Ground) {
    let options = StackOptions {
        tick_every: Duration::from_secs(3600),
        ..StackOptions::default()
    };
    let stack = with_policy_and(ground, json!({ "settle_s": 2 }), options).await;
    stack.set_fault("h1", Resource::Power, None);
    stack.hang("h1").await;
    stack.client.fence("h1").await;
    let host = stack.client.until_fenced("h1").await;
    assert_eq!(host["proofs"][0]["kind"], "power.off");
    stack.stop().await;
}

/// The process's own clock stood still while the process was halted.
#[tokio::test]
async fn a_process_that_was_halted_decides_by_the_present_time() {
    let before = now();
    let options = StackOptions {
        clock: ClockSource::Counting(before - TimeDelta::seconds(200)),
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Distributed).await, options).await;
    stack.client.seen("h1", "UNREACHABLE").await.ok(200);
    let host = stack.client.host("h1").await;
    let updated_at = chrono::DateTime::parse_from_rfc3339(host["updated_at"].as_str().unwrap()).unwrap();
    assert!(
        (updated_at.to_utc() - before).abs() < TimeDelta::seconds(60),
        "{host}"
    );
    stack.stop().await;
}

async fn the_self_fencing_timeout_does_not_run_without_observed_silence(ground: Ground) {
    let stack = with_policy(ground, json!({ "self_fencing_timeout_s": 1 })).await;
    let operation = stack.client.fence("h1").await;
    let operation = stack.client.until_settled(&operation).await;
    assert_eq!(operation["status"], "needs_operator");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    // A monitor that has never heard the host does not count: it may not be able to hear it.
    let monitor = stack.client.keep_missing("h1", None);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    drop(monitor);
    // A monitor that does not say when it heard the host does not count: it may have heard it between two reports.
    stack.client.seen("h1", "UP").await.ok(200);
    let last_seen_at = Some(now());
    let monitor = stack.client.keep_missing("h1", None);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    drop(monitor);
    // A monitor with the time of the last contact that goes on reporting silence proves it, and ends the wait for an operator.
    let _monitor = stack.client.keep_missing("h1", last_seen_at);
    stack.client.until_fenced("h1").await;
    stack.stop().await;
}

/// Only a report proves that the host was silent until then.
async fn a_monitor_that_stops_reporting_proves_nothing(ground: Ground) {
    let stack = with_policy(ground, json!({ "self_fencing_timeout_s": 1 })).await;
    stack.client.seen("h1", "UP").await.ok(200);
    let last_seen_at = Some(now());
    stack.hang("h1").await;
    let silence = || stack.client.reports("h1", "UNREACHABLE", last_seen_at);
    silence().await.ok(200);
    stack.client.fence("h1").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    silence().await.ok(200);
    stack.client.until_fenced("h1").await;
    stack.stop().await;
}

async fn a_failed_fence_restarts_automatically_where_the_segment_says_so(ground: Ground) {
    let stack = with_policy(ground, json!({ "restarts": 3, "restart_delay_s": 1 })).await;
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_settled(&operation).await;
    stack.set_fault("h1", Resource::Power, None);
    stack.client.until_fenced("h1").await;
    let types = stack.client.event_types("h1").await;
    assert!(types.contains(&"operation.restarted".to_owned()), "{types:?}");
    stack.stop().await;
}

async fn a_clock_that_is_moved_by_a_day_strands_no_operation(ground: Ground) {
    let site = Site::new(ground).await;
    let start = "2026-01-01T00:00:00Z".parse().unwrap();
    let options = StackOptions {
        workers: 0,
        clock: ClockSource::Manual(start),
        ..StackOptions::default()
    };
    let mut stack = Stack::start_with(site, options).await;
    stack.plan(power_plan()).await;
    let operation = stack.client.fence("h1").await;
    // After a day the attempt's deadline is over: its outcome is unknown, never a success. No worker claims the next attempts, and the
    // clock stands still in between.
    let mut days = 0;
    let path = format!("/operations/{}", operation["id"].as_str().unwrap());
    let settled = loop {
        days += 1;
        move_clocks(&stack, 1);
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let operation = stack.client.get(&path).await.ok(200);
        if operation["status"] != "running" {
            break operation;
        }
        assert!(
            days < 60,
            "the operation did not settle within 60 days: {operation}"
        );
    };
    assert_eq!(settled["status"], "needs_operator");
    assert_eq!(
        settled["stages"][0]["tasks"][0]["attempts"][0]["outcome"],
        "unknown"
    );
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    // The clock is set back: a host's own time never runs backwards.
    move_clocks(&stack, -days);
    stack.add_worker().await;
    // The worker must run before the task: with a clock that stands still, a returned task would not be published again.
    eventually(async || {
        let ask = stack.client.post("/methods/power/check", json!({ "host": "h1" }));
        ask.await.status == 200
    })
    .await;
    stack.client.retry(&operation, "the clock is right again").await;
    stack.client.until_fenced("h1").await;
    stack.stop().await;
}

fn move_clocks(stack: &Stack, days: i64) {
    for (engine, _) in &stack.engines {
        engine.clock().advance(TimeDelta::days(days));
    }
    stack.api.clock().advance(TimeDelta::days(days));
}
