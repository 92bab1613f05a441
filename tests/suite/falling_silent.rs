//! Hosts that are fenced automatically, and the storm brake.

use ringfence_tests::{Ground, Site, Stack, StackOptions, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(
    hosts_that_fall_silent_are_fenced_until_the_storm_brake_holds,
    a_host_that_was_silent_before_its_segment_fences_automatically_is_fenced_too,
    a_host_without_a_plan_waits_for_a_person,
);

/// Six hosts in a segment with this policy for hosts that fall silent.
async fn with_policy(ground: Ground, fencing: Value) -> Stack {
    let options = StackOptions {
        hosts: 6,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    policy(&stack, fencing).await;
    stack
}

async fn policy(stack: &Stack, fencing: Value) {
    let policy = json!({ "fencing": fencing });
    stack.client.set_default_policy(policy).await.ok(200);
}

/// The live fence of the host.
async fn fence_of(stack: &Stack, host: &str) -> Value {
    let host = stack
        .client
        .until(&format!("/hosts/{host}"), |host| host["operation"] != Value::Null)
        .await;
    let id = host["operation"]["id"].as_str().unwrap();
    stack.client.get(&format!("/operations/{id}")).await.ok(200)
}

async fn hosts_that_fall_silent_are_fenced_until_the_storm_brake_holds(ground: Ground) {
    let stack = with_policy(
        ground,
        json!({ "automatic": true, "after_s": 0, "at_most": 2, "at_most_percent": 100 }),
    )
    .await;
    stack.plan(power_plan()).await;
    for host in ["h1", "h2"] {
        stack.hang(host).await;
        stack.client.until_fenced(host).await;
        stack.judge(host).await;
    }
    stack.hang("h3").await;
    let held = fence_of(&stack, "h3").await;
    assert_eq!(held["status"], "needs_operator", "{held}");
    assert_eq!(
        (&held["is_held_by_brake"], &held["requested_by"]),
        (&json!(true), &json!("ringfence"))
    );
    let detail = held["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("3 hosts of the segment fell silent or were fenced within 600 s, and at most 2"),
        "{detail}"
    );
    assert!(
        stack.simulators.may_write("h3"),
        "h3 was fenced although the storm brake holds"
    );
    let events = stack.client.event_types("h3").await;
    assert_eq!(
        events[events.len() - 2..],
        [
            "operation.started".to_owned(),
            "operation.needs_operator".to_owned()
        ]
    );

    let gone_on = stack.client.retry(&held, "the rack has lost its power").await;
    assert_eq!(gone_on["is_held_by_brake"], false);
    stack.client.until_fenced("h3").await;
    stack.judge("h3").await;
    stack.stop().await;
}

async fn a_host_that_was_silent_before_its_segment_fences_automatically_is_fenced_too(ground: Ground) {
    let stack = with_policy(ground, json!({ "automatic": false })).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    assert_eq!(stack.client.host("h1").await["operation"], Value::Null);
    policy(&stack, json!({ "automatic": true, "after_s": 1 })).await;
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;
    stack.stop().await;
}

async fn a_host_without_a_plan_waits_for_a_person(ground: Ground) {
    let stack = with_policy(ground, json!({ "automatic": true, "after_s": 0 })).await;
    stack.hang("h1").await;
    let asked = fence_of(&stack, "h1").await;
    assert_eq!(asked["status"], "needs_operator", "{asked}");
    assert_eq!(
        asked["detail"],
        "no plan can be carried out: fence the host by hand and confirm it"
    );
    let reason = asked["reason"].as_str().unwrap();
    assert!(reason.contains("plan") && reason.contains("h1"), "{reason}");
    stack.stop().await;
}
