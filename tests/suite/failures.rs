//! Processes and peers that die.

use std::time::Duration;

use ringfence_core::Resource;
use ringfence_simulators::{Fault, FaultKind};
use ringfence_tests::{Ground, Site, Stack, StackOptions, power_plan};
use serde_json::json;

crate::on_both_grounds!(
    the_task_of_a_worker_killed_during_an_off_goes_on_with_another_worker,
    an_engine_killed_before_any_step_takes_effect_loses_nothing,
    an_engine_killed_after_any_step_took_effect_loses_nothing,
    two_engines_and_two_workers_fence_twenty_hosts,
);

async fn the_task_of_a_worker_killed_during_an_off_goes_on_with_another_worker(ground: Ground) {
    let mut stack = Stack::start(ground).await;
    let times = json!({ "attempt_timeout_s": 30, "timeout_s": 60, "retries": 2, "pause_ms": 100 });
    let body = json!({ "name": "power", "driver": "simulated", "parameters": { "device": "${host.name}" }, "times": times });
    stack.client.post("/methods", body).await.ok(201);
    stack
        .client
        .post("/plans", json!({ "name": "default", "stages": power_plan() }))
        .await
        .ok(201);
    stack.set_fault("h1", Resource::Power, Some(Fault::forever(FaultKind::Silent)));
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_claimed(&operation).await;
    stack.workers.remove(0).abandon();
    stack.set_fault("h1", Resource::Power, None);
    stack.add_worker().await;
    stack.client.until_fenced("h1").await;
    let operation = stack.client.until_settled(&operation).await;
    let attempts = operation["stages"][0]["tasks"][0]["attempts"].as_array().unwrap();
    assert_eq!(attempts[0]["outcome"], "unknown");
    assert!(
        attempts[0]["detail"].as_str().unwrap().contains("lease"),
        "{operation}"
    );
    assert_eq!(attempts[1]["outcome"], "confirmed");
    stack.stop().await;
}

/// The process of the API and the first engine dies at each use of the bus in turn; another takes over.
async fn killed_at_each_step(ground: Ground, after: bool) {
    // One fence by power uses the bus for the task and for the answer to the claim; the other uses are to be safe.
    for uses in 0..4 {
        let site = Site::new(ground).await;
        let options = StackOptions {
            dies: Some((uses, after)),
            ..StackOptions::default()
        };
        let mut stack = Stack::start_with(site, options.clone()).await;
        stack.plan(power_plan()).await;
        stack.hang("h1").await;
        let client = stack.client.clone();
        let asked =
            tokio::spawn(async move { client.post("/hosts/h1/fence", json!({ "reason": "test" })).await });
        let died = stack.died.clone().unwrap();
        let _ = tokio::time::timeout(Duration::from_secs(3), died.cancelled()).await;
        // The dead process's loops end; messages that it had taken from the bus return to their queues.
        drop(stack.engines.remove(0));
        stack
            .add_engine(&StackOptions {
                dies: None,
                ..options
            })
            .await;
        asked.await.unwrap();
        stack.client.until_fenced("h1").await;
        assert!(!stack.simulators.may_write("h1"));
        // Events get their numbers, and so are shown, right after their commit.
        stack
            .client
            .until("/events?host=h1&limit=1000", |list| {
                list.to_string().contains("host.fenced")
            })
            .await;
        let types = stack.client.event_types("h1").await;
        assert_eq!(
            types.iter().filter(|kind| *kind == "host.fenced").count(),
            1,
            "{types:?}"
        );
        stack.stop().await;
    }
}

async fn an_engine_killed_before_any_step_takes_effect_loses_nothing(ground: Ground) {
    killed_at_each_step(ground, false).await;
}

async fn an_engine_killed_after_any_step_took_effect_loses_nothing(ground: Ground) {
    killed_at_each_step(ground, true).await;
}

async fn two_engines_and_two_workers_fence_twenty_hosts(ground: Ground) {
    let site = Site::new(ground).await;
    let options = StackOptions {
        engines: 2,
        workers: 2,
        hosts: 20,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(site, options).await;
    stack.plan(power_plan()).await;
    for number in 1..=20 {
        stack.hang(&format!("h{number}")).await;
    }
    for number in 1..=20 {
        stack.client.fence(&format!("h{number}")).await;
    }
    for number in 1..=20 {
        let name = format!("h{number}");
        stack.client.until_fenced(&name).await;
        assert!(!stack.simulators.may_write(&name));
    }
    let events = stack.client.get("/events?limit=1000").await.ok(200);
    let sequences: Vec<_> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["sequence"].as_u64().unwrap())
        .collect();
    let expected: Vec<_> = (1..=sequences.len() as u64).collect();
    assert_eq!(sequences, expected);
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_the_broker_longer_than_the_deadline_of_an_attempt_only_delays_a_fence() {
    let options = StackOptions {
        attempt_timeout_s: 4,
        ..StackOptions::default()
    };
    let mut stack = Stack::start_with(Site::with_own_peers().await, options).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    let mut rabbit = stack.site.rabbit.take().unwrap();
    // A single node writes its list of quorum queues up to half a second late; if it dies before that, it can never open the queue.
    tokio::time::sleep(Duration::from_secs(2)).await;
    rabbit = tokio::task::spawn_blocking(move || {
        rabbit.crash().unwrap();
        rabbit
    })
    .await
    .unwrap();
    let operation = stack.client.fence("h1").await;
    // The wait is seven times the attempt's deadline. Workers may need longer than that to reconnect to the broker.
    tokio::time::sleep(Duration::from_secs(28)).await;
    let path = format!("/operations/{}", operation["id"].as_str().unwrap());
    let waiting = stack.client.get(&path).await.ok(200);
    assert_eq!(waiting["status"], "running", "{waiting}");
    let attempts = &waiting["stages"][0]["tasks"][0]["attempts"];
    assert_eq!(attempts.as_array().unwrap().len(), 1, "{attempts}");
    assert_eq!(attempts[0]["status"], "dispatched");
    let rabbit = tokio::task::spawn_blocking(move || {
        rabbit.start_again().unwrap();
        rabbit
    });
    let rabbit = rabbit.await.unwrap();
    stack
        .client
        .until_within("/hosts/h1", Duration::from_secs(180), |host| {
            host["fencing_state"] == "FENCED"
        })
        .await;
    let ended = stack.client.until_settled(&operation).await;
    // The first attempt's message has waited for the broker.
    let attempts = &ended["stages"][0]["tasks"][0]["attempts"];
    assert_eq!(attempts.as_array().unwrap().len(), 1, "{attempts}");
    assert!(!stack.simulators.may_write("h1"));
    stack.site.rabbit = Some(rabbit);
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_restarts_loses_no_fence() {
    let mut stack = Stack::start_with(Site::with_own_peers().await, StackOptions::default()).await;
    stack.plan(power_plan()).await;
    let slow = Fault::new(FaultKind::Slow, None, Some(500)).unwrap();
    stack.set_fault("h1", Resource::Power, Some(slow));
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_claimed(&operation).await;
    let mut postgres = stack.site.postgres.take().unwrap();
    let postgres = tokio::task::spawn_blocking(move || {
        postgres.crash().unwrap();
        postgres
    })
    .await
    .unwrap();
    let answer = stack.client.get("/hosts/h1/gates").await;
    assert_eq!(
        (answer.status, answer.code()),
        (503, "fencing.database.unavailable")
    );
    let mut postgres = postgres;
    let postgres = tokio::task::spawn_blocking(move || {
        postgres.start_again().unwrap();
        postgres
    })
    .await
    .unwrap();
    stack.site.postgres = Some(postgres);
    stack.client.until_fenced("h1").await;
    assert!(!stack.simulators.may_write("h1"));
    stack.stop().await;
}
