//! A host whose kernel has crashed says so with the real `fence_kdump_send`, and keeps its power until its dump is over.

use ringfence_core::Resource;
use ringfence_lab::KdumpSender;
use ringfence_tests::{Ground, Site, Stack, StackOptions, power_plan};
use ringfence_workers::WorkerConfig;
use serde_json::json;

use crate::on_both_grounds;

on_both_grounds!(a_host_that_writes_a_crash_dump_keeps_its_power_until_the_dump_is_over);

async fn a_host_that_writes_a_crash_dump_keeps_its_power_until_the_dump_is_over(ground: Ground) {
    let options = StackOptions {
        hosts: 2,
        ..StackOptions::default()
    };
    let mut stack = Stack::start_with(Site::new(ground).await, options).await;
    let given = json!({ "parameters": { "kdump": { "addresses": "127.0.0.1" } } });
    stack.client.patch("/hosts/h1", given).await.ok(200);
    let policy = json!({ "automatic": true, "after_s": 1, "at_most_percent": 100, "kdump_timeout_s": 600 });
    let policy = json!({ "fencing": policy });
    stack.client.set_default_policy(policy).await.ok(200);
    stack.plan(power_plan()).await;
    stack.observe().await;

    let listening = WorkerConfig {
        kdump_listen: Some("127.0.0.1:0".parse().unwrap()),
        resources: vec![Resource::Query],
        ..WorkerConfig::new("listener", "default")
    };
    let listener = stack.worker(listening, stack.site.bus("listener").await);
    let at = listener.kdump_address().unwrap();
    stack.workers.push(listener);
    let sender = tokio::task::spawn_blocking(move || KdumpSender::start(at))
        .await
        .unwrap()
        .unwrap();
    stack
        .client
        .until("/hosts/h1", |host| host["kdump"]["is_over"] == false)
        .await;

    stack.hang("h1").await;
    let operations = "/operations?host=h1&kind=fence";
    let held = stack
        .client
        .until(operations, |list| {
            let detail = list["operations"][0]["detail"].as_str().unwrap_or_default();
            detail.contains("power.off is held while the host writes a crash dump")
        })
        .await;
    assert_eq!(held["operations"][0]["status"], "running", "{held}");
    // A host that sends nothing is fenced meanwhile.
    stack.hang("h2").await;
    stack.client.until_fenced("h2").await;
    assert!(stack.claims_refused_or_none("h1").await);
    assert!(stack.simulators.may_write("h1"));

    tokio::task::spawn_blocking(move || drop(sender)).await.unwrap();
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;
    let told = stack.client.event_types("h1").await;
    let dump: Vec<_> = told.iter().filter(|kind| kind.contains("kdump")).collect();
    assert_eq!(dump, ["host.kdump_began", "host.kdump_ended"]);
    stack.stop().await;
}
