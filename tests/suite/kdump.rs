//! A host whose kernel has crashed says so with the real `fence_kdump_send`, and keeps its power until its dump is over.

use ringfence_core::Resource;
use ringfence_lab::KdumpSender;
use ringfence_simulators::Condition;
use ringfence_tests::{Ground, Site, Stack, StackOptions, power_plan};
use ringfence_workers::WorkerConfig;
use serde_json::json;

use crate::on_both_grounds;

on_both_grounds!(
    a_host_that_writes_a_crash_dump_keeps_its_power_until_the_dump_is_over,
    a_host_that_writes_a_crash_dump_is_fenced_by_that_where_its_plan_counts_kdump,
);

/// A stack whose hosts are fenced by themselves and keep their power for a dump.
async fn waiting_for_dumps(ground: Ground, hosts: usize) -> Stack {
    let options = StackOptions {
        hosts,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    let policy = json!({ "automatic": true, "after_s": 1, "at_most_percent": 100, "kdump_timeout_s": 600 });
    let policy = json!({ "fencing": policy });
    stack.client.set_default_policy(policy).await.ok(200);
    stack.plan(power_plan()).await;
    stack.observe().await;
    stack
}

async fn has_address(stack: &Stack) {
    let given = json!({ "parameters": { "kdump": { "addresses": "127.0.0.1" } } });
    stack.client.patch("/hosts/h1", given).await.ok(200);
}

/// h1 sends messages to a worker that listens, and an engine knows of it.
async fn sends(stack: &mut Stack) -> KdumpSender {
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
    sender
}

async fn is_over(sender: KdumpSender) {
    tokio::task::spawn_blocking(move || drop(sender)).await.unwrap();
}

async fn a_host_that_writes_a_crash_dump_keeps_its_power_until_the_dump_is_over(ground: Ground) {
    let mut stack = waiting_for_dumps(ground, 2).await;
    has_address(&stack).await;
    let sender = sends(&mut stack).await;

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

    is_over(sender).await;
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;
    let told = stack.client.event_types("h1").await;
    let dump: Vec<_> = told.iter().filter(|kind| kind.contains("kdump")).collect();
    assert_eq!(dump, ["host.kdump_began", "host.kdump_ended"]);
    stack.stop().await;
}

async fn a_host_that_writes_a_crash_dump_is_fenced_by_that_where_its_plan_counts_kdump(ground: Ground) {
    let mut stack = waiting_for_dumps(ground, 1).await;
    let plan = json!({
        "name": "h1", "scope": { "kind": "host", "value": "h1" }, "stages": power_plan(),
        "sufficient_sets": [["power.off"], ["kdump"]],
    });
    let plan = stack.client.post("/plans", plan).await.ok(201);
    let warning = "plan h1 counts kdump, which host h1 cannot prove";
    assert!(plan["warnings"].to_string().contains(warning), "{plan}");
    has_address(&stack).await;
    let explained = stack.client.get("/hosts/h1/explanation").await.ok(200);
    let known = explained["fence"]["sufficient_sets"].to_string();
    assert!(known.contains("the host sends no kdump messages"), "{explained}");

    let sender = sends(&mut stack).await;
    stack.simulators.set_condition("h1", Condition::Crashed).unwrap();
    stack.client.seen("h1", "UNREACHABLE").await.ok(200);
    let fenced = stack.client.until_fenced("h1").await;
    let proofs = fenced["proofs"].as_array().unwrap();
    assert!(proofs.len() == 1 && proofs[0]["kind"] == "kdump", "{fenced}");
    assert!(stack.claims_refused_or_none("h1").await);
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], true);
    stack.judge("h1").await;

    is_over(sender).await;
    stack.simulators.set_condition("h1", Condition::Running).unwrap();
    stack.observe().await;
    let back = stack.client.get("/hosts/h1").await.ok(200);
    assert!(
        back["fencing_state"] == "FENCED" && !back["proof_ended"].is_null(),
        "{back}"
    );
    stack.judge("h1").await;
    stack.stop().await;
}
