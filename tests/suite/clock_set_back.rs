//! A clock that is set back: times that lie ahead of the clock are checked again, and reports that come later count as new.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use ringfence_backends::openstack::{Cloud, CloudSettings};
use ringfence_core::{Resource, Timestamp};
use ringfence_engine::{ClockSource, ObserverConfig};
use ringfence_simulators::{Fault, FaultKind};
use ringfence_tests::{FakeNova, Ground, Site, Stack, StackOptions, now, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(
    a_fence_that_waits_when_the_clock_is_set_back_goes_on,
    a_fence_that_waits_when_the_clock_is_set_back_while_no_engine_runs_goes_on,
    a_host_that_falls_silent_after_the_clock_was_set_back_is_noticed,
    a_host_that_falls_silent_after_the_clock_was_set_back_while_no_engine_ran_is_noticed,
);

/// A clock that is an hour ahead of the database's. After a few seconds the engine sets it to the database's time.
fn ahead() -> ClockSource {
    ClockSource::Counting(now() + TimeDelta::hours(1))
}

async fn until_set_back(stack: &Stack) {
    let (engine, _) = &stack.engines[0];
    ringfence_tests::eventually(async || engine.clock().set_at().is_some()).await;
}

/// A fence that has failed, and that starts again by itself in a few seconds.
async fn failed_fence(stack: &Stack) {
    stack.plan(power_plan()).await;
    let policy = json!({ "restarts": 1, "restart_delay_s": 15 });
    stack.client.set_default_policy(policy).await.ok(200);
    let refuse = Fault::forever(FaultKind::Refuse);
    stack.set_fault("h1", Resource::Power, Some(refuse));
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    let operation = stack.client.until_settled(&operation).await;
    assert_eq!(operation["status"], "needs_operator", "{operation}");
    stack.set_fault("h1", Resource::Power, None);
}

async fn a_fence_that_waits_when_the_clock_is_set_back_goes_on(ground: Ground) {
    let options = StackOptions {
        clock: ahead(),
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    failed_fence(&stack).await;
    stack.client.until_fenced("h1").await;
    stack.stop().await;
}

async fn a_fence_that_waits_when_the_clock_is_set_back_while_no_engine_runs_goes_on(ground: Ground) {
    let options = StackOptions {
        clock: ahead(),
        ..StackOptions::default()
    };
    let mut stack = Stack::start_with(Site::new(ground).await, options).await;
    failed_fence(&stack).await;
    stack.replace_engine(&StackOptions::default()).await;
    stack.client.until_fenced("h1").await;
    stack.stop().await;
}

/// A stack that watches a cloud, and a host of that cloud that is UP.
async fn watching(ground: Ground, nova: &FakeNova) -> (Stack, StackOptions) {
    let site = Site::new(ground).await;
    let file = site.dir.path().join("clouds.yaml");
    std::fs::write(&file, nova.clouds_file("east")).unwrap();
    let cloud = Arc::new(Cloud::new(CloudSettings {
        name: "east".to_owned(),
        file: Some(file),
        timeout: Duration::from_secs(20),
    }));
    let options = StackOptions {
        clock: ahead(),
        clouds: vec![cloud],
        observer: ObserverConfig {
            every: Duration::from_millis(500),
            down_after: TimeDelta::seconds(4),
            ..ObserverConfig::default()
        },
        ..StackOptions::default()
    };
    let stack = Stack::start_with(site, options.clone()).await;
    let of_cloud = json!({ "backend": "nova", "cloud": "east", "known_as": "c1" });
    stack.client.patch("/hosts/h1", of_cloud).await.ok(200);
    until_seen(&stack, "UP").await;
    (stack, options)
}

async fn until_seen(stack: &Stack, state: &str) -> Value {
    let is_so = |host: &Value| host["failure_state"] == state;
    stack.client.until("/hosts/h1", is_so).await
}

async fn a_host_that_falls_silent_after_the_clock_was_set_back_is_noticed(ground: Ground) {
    let nova = FakeNova::start(&["c1"]);
    let (stack, _) = watching(ground, &nova).await;
    until_set_back(&stack).await;
    nova.fall_silent("c1");
    assert_is_of_the_present(&until_seen(&stack, "UNREACHABLE").await);
    stack.stop().await;
}

async fn a_host_that_falls_silent_after_the_clock_was_set_back_while_no_engine_ran_is_noticed(
    ground: Ground,
) {
    let nova = FakeNova::start(&["c1"]);
    let (mut stack, options) = watching(ground, &nova).await;
    let options = StackOptions {
        clock: ClockSource::Database,
        ..options
    };
    stack.replace_engine(&options).await;
    nova.fall_silent("c1");
    assert_is_of_the_present(&until_seen(&stack, "UNREACHABLE").await);
    stack.stop().await;
}

fn assert_is_of_the_present(host: &Value) {
    let seen: Timestamp = host["failure_observed_at"].as_str().unwrap().parse().unwrap();
    assert!(seen < now() + TimeDelta::minutes(1), "{host}");
}
