//! A dry run, which says how a fence would go, and the explanation of a host's state.

mod prospects;
mod verdicts;

use std::time::Duration;

use ringfence_api::Role;
use ringfence_tests::{Ground, Site, Stack, StackOptions, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(
    a_dry_run_changes_nothing,
    durations_are_those_of_the_last_operation,
    the_explanation_shows_the_gates_as_they_will_be,
    a_reader_may_ask_for_an_explanation_and_not_for_a_dry_run,
);

fn reason(is_dry_run: bool) -> Value {
    json!({ "reason": "test", "dry_run": is_dry_run })
}

async fn dry_run(stack: &Stack, host: &str) -> Value {
    let path = format!("/hosts/{host}/fence");
    stack.client.post(&path, reason(true)).await.ok(200)
}

async fn explain(stack: &Stack, host: &str) -> Value {
    stack
        .client
        .get(&format!("/hosts/{host}/explanation"))
        .await
        .ok(200)
}

async fn with_hosts(ground: Ground, hosts: usize) -> Stack {
    let options = StackOptions {
        hosts,
        ..StackOptions::default()
    };
    Stack::start_with(Site::new(ground).await, options).await
}

/// Every row of the database except what engines say of themselves, once no row changes any more.
async fn rows(stack: &Stack) -> Vec<(String, String)> {
    let mut known = Vec::new();
    loop {
        let mut rows = stack.site.rows().await;
        rows.retain(|(table, _)| table != "leases" && table != "engines");
        if rows == known {
            return rows;
        }
        known = rows;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Asks in every way, also with an idempotency key, and checks that no row has changed.
async fn ask_and_compare_all_rows(stack: &Stack, host: &str, outcome: &str) {
    let before = rows(stack).await;
    let path = format!("/hosts/{host}/fence");
    let answer = stack
        .client
        .post_once(&path, "one-key", reason(true))
        .await
        .ok(200);
    assert_eq!(answer["fence"]["verdict"]["outcome"], outcome, "{answer}");
    assert_eq!(
        dry_run(stack, host).await["fence"],
        explain(stack, host).await["fence"]
    );
    assert_eq!(rows(stack).await, before, "{host}");
}

async fn a_dry_run_changes_nothing(ground: Ground) {
    let stack = with_hosts(ground, 4).await;
    ask_and_compare_all_rows(&stack, "h1", "refused").await;
    stack.plan(power_plan()).await;
    ask_and_compare_all_rows(&stack, "h1", "started").await;
    stack.client.seen("h2", "UP").await.ok(200);
    ask_and_compare_all_rows(&stack, "h2", "refused").await;
    // A fence that waits for a person is not changed.
    let by_hand = json!({ "name": "by-hand", "scope": { "kind": "host", "value": "h3" }, "stages": [] });
    stack.client.post("/plans", by_hand).await.ok(201);
    stack.client.fence("h3").await;
    ask_and_compare_all_rows(&stack, "h3", "joined").await;
    let word = json!({ "generation": 0, "reason": "test" });
    stack.client.post("/hosts/h4/confirm-fenced", word).await.ok(200);
    ask_and_compare_all_rows(&stack, "h4", "already_fenced").await;
    stack
        .client
        .post("/hosts/h4/rejoin", json!({ "reason": "test" }))
        .await
        .ok(202);
    ask_and_compare_all_rows(&stack, "h4", "started").await;
    // The dry run has not used the key: the first real request with that key is carried out.
    let path = "/hosts/h1/fence";
    let fenced = stack
        .client
        .post_once(path, "one-key", reason(false))
        .await
        .ok(202);
    let again = stack.client.post_once(path, "one-key", reason(false)).await;
    assert_eq!(again.header("idempotent-replayed"), "true");
    assert_eq!(again.ok(202)["id"], fenced["id"]);
    stack.stop().await;
}

async fn checked(ground: Ground, hosts: usize) -> Stack {
    let options = StackOptions {
        hosts,
        checks_every: Some(Duration::from_secs(2)),
        attempt_timeout_s: 2,
        ..StackOptions::default()
    };
    Stack::start_with(Site::new(ground).await, options).await
}

async fn until_checks(stack: &Stack, method: &str, is: impl Fn(&Value) -> bool) {
    let path = format!("/methods/{method}");
    stack.client.until(&path, |method| is(&method["checks"])).await;
}

async fn durations_are_those_of_the_last_operation(ground: Ground) {
    let stack = with_hosts(ground, 2).await;
    stack.plan(power_plan()).await;
    let method_of = |explained: &Value| {
        explained["fence"]["plan"]["stages"][0]["tasks"][0]["levels"][0]["methods"][0].clone()
    };
    let before = explain(&stack, "h1").await;
    assert_eq!(method_of(&before)["last_time"], Value::Null);
    assert_eq!(before["fence"]["last_fence"], Value::Null);

    stack.hang("h1").await;
    let fence = stack.client.fence("h1").await;
    let over = stack.client.until_settled(&fence).await;
    let time = |value: &Value| -> chrono::DateTime<chrono::Utc> { value.as_str().unwrap().parse().unwrap() };
    let between = |from: &Value, to: &Value| (time(to) - time(from)).num_milliseconds();
    let attempt = &over["stages"][0]["tasks"][0]["attempts"][0];

    let after = explain(&stack, "h1").await;
    let last = &method_of(&after)["last_time"];
    assert_eq!(last["outcome"], "confirmed", "{last}");
    assert_eq!(
        last["waited_ms"],
        between(&attempt["started_at"], &attempt["claimed_at"])
    );
    assert_eq!(
        last["took_ms"],
        between(&attempt["claimed_at"], &attempt["ended_at"])
    );
    assert_eq!(last["operation_id"], fence["id"]);
    assert_eq!(last["is_of_another_host"], false);
    let last_fence = &after["fence"]["last_fence"];
    assert_eq!(last_fence["operation_id"], fence["id"]);
    assert_eq!(
        last_fence["took_ms"],
        between(&over["created_at"], &over["finished_at"])
    );
    let proven = last_fence["proven_after_ms"].as_i64().unwrap();
    assert!(proven <= last_fence["took_ms"].as_i64().unwrap(), "{last_fence}");

    // For a host that was never fenced the duration is that of the method's last use on another host.
    let other = explain(&stack, "h2").await;
    let last = &method_of(&other)["last_time"];
    assert_eq!(last["is_of_another_host"], true, "{last}");
    assert_eq!(last["operation_id"], fence["id"]);
    assert_eq!(other["fence"]["last_fence"], Value::Null);
    stack.stop().await;
}

async fn the_explanation_shows_the_gates_as_they_will_be(ground: Ground) {
    let stack = with_hosts(ground, 2).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    let told = explain(&stack, "h1").await;
    assert_eq!(told["gates"], stack.client.gates("h1").await);
    assert_eq!(told["seen"]["failure_state"], "UNREACHABLE");
    assert!(
        told["seen"]["because"]
            .as_str()
            .unwrap()
            .contains("a silence that began after"),
        "{told}"
    );
    let brake = &told["fence"]["storm_brake"];
    assert_eq!(
        (&brake["hosts"], &brake["out_of_service"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        (&brake["is_automatic"], &brake["would_hold"]),
        (&json!(false), &json!(false))
    );
    let fence = stack.client.fence("h1").await;
    stack.client.until_settled(&fence).await;
    assert_eq!(told["fence"]["gates_once_fenced"], stack.client.gates("h1").await);
    let fenced = explain(&stack, "h1").await;
    assert_eq!(fenced["host"], stack.client.host("h1").await);
    // The other host would be counted too if it fell silent.
    let other = explain(&stack, "h2").await;
    assert_eq!(other["fence"]["storm_brake"]["out_of_service"], 2);
    assert_eq!(other["fence"]["storm_brake"]["would_hold"], true, "{other}");
    stack.stop().await;
}

async fn a_reader_may_ask_for_an_explanation_and_not_for_a_dry_run(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let reader = stack.as_role(Role::Reader);
    reader.get("/hosts/h1/explanation").await.ok(200);
    let refused = reader.post("/hosts/h1/fence", reason(true)).await;
    assert_eq!((refused.status, refused.code()), (403, "fencing.forbidden"));
    let unknown = reader.get("/hosts/h9/explanation").await;
    assert_eq!((unknown.status, unknown.code()), (404, "fencing.host.not_found"));
    let answer = stack.client.get("/hosts/h1/explanation").await;
    assert_eq!(answer.header("cache-control"), "no-store");
    stack.stop().await;
}
