//! Hosts that are fenced automatically, and the storm brake.

use std::time::Duration;

use ringfence_tests::{Ground, Site, Stack, StackOptions, now, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(
    hosts_that_fall_silent_are_fenced_until_the_storm_brake_holds,
    a_host_that_was_silent_before_its_segment_fences_automatically_is_fenced_too,
    a_host_without_a_plan_waits_for_a_person,
    hosts_that_fall_silent_together_are_fenced_one_after_the_other_where_one_may_be_at_a_time,
    no_more_fences_begin_by_themselves_in_a_minute_than_may,
    after_a_storm_a_fence_waits_until_its_segment_was_quiet,
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

/// The fences of the segment that are running.
async fn under_way(stack: &Stack) -> usize {
    let list = stack
        .client
        .get("/operations?kind=fence&status=running")
        .await
        .ok(200);
    list["operations"].as_array().unwrap().len()
}

async fn after_a_storm_a_fence_waits_until_its_segment_was_quiet(ground: Ground) {
    let fencing = json!({
        "automatic": true, "after_s": 0, "at_most": 1, "within_s": 10, "at_most_percent": 100, "quiet_s": 20,
    });
    let stack = with_policy(ground, fencing).await;
    stack.plan(power_plan()).await;
    stack.observe().await;
    stack.hang("h1").await;
    stack.client.until_fenced("h1").await;
    stack.hang("h2").await;
    let braked = fence_of(&stack, "h2").await;
    assert_eq!(braked["is_held_by_brake"], true, "{braked}");
    // The storm brake has forgotten the others by then.
    tokio::time::sleep(Duration::from_secs(11)).await;
    stack.hang("h3").await;
    let is_held = |list: &Value| list["operations"][0]["status"] == "held";
    let list = stack.client.until("/operations?host=h3", is_held).await;
    let by = &list["operations"][0]["held"]["by"];
    assert_eq!(by[0]["safeguard"], "cool_down", "{list}");
    let reason = by[0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("which has not been quiet for 20 s since"),
        "{reason}"
    );
    assert!(stack.simulators.may_write("h3"));
    stack.client.until_fenced("h3").await;
    stack.judge("h3").await;
    stack.stop().await;
}

async fn no_more_fences_begin_by_themselves_in_a_minute_than_may(ground: Ground) {
    let options = StackOptions {
        hosts: 2,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    let fencing =
        json!({ "automatic": true, "after_s": 0, "at_most": 10, "at_most_percent": 100, "per_minute": 1 });
    let policy = json!({ "fencing": fencing });
    stack.client.set_default_policy(policy).await.ok(200);
    stack.plan(power_plan()).await;
    // What follows takes place in one minute of the clock.
    let second = now().timestamp() % 60;
    if second > 35 {
        tokio::time::sleep(Duration::from_secs(u64::try_from(60 - second).unwrap())).await;
    }
    stack.hang("h1").await;
    stack.client.until_fenced("h1").await;
    stack.hang("h2").await;
    let is_held = |list: &Value| list["operations"].as_array().is_some_and(|held| held.len() == 1);
    let list = stack.client.until("/operations?status=held", is_held).await;
    let held = &list["operations"][0];
    let by = &held["held"]["by"][0];
    assert_eq!(
        (&held["host"], &by["safeguard"]),
        (&json!("h2"), &json!("per_minute")),
        "{held}"
    );
    assert!(stack.simulators.may_write("h2"));
    let told = stack.client.get("/hosts/h2/explanation").await.ok(200);
    assert_eq!(told["fence"]["safeguards"][0]["verdict"], "hold", "{told}");
    stack.stop().await;
}

async fn hosts_that_fall_silent_together_are_fenced_one_after_the_other_where_one_may_be_at_a_time(
    ground: Ground,
) {
    const TOGETHER: [&str; 3] = ["h1", "h2", "h3"];
    let fencing =
        json!({ "automatic": true, "after_s": 0, "at_most": 10, "at_most_percent": 100, "at_once": 1 });
    let options = StackOptions {
        hosts: 6,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    // A fence takes a second at least, in which the other hosts fall silent.
    let policy = json!({ "fencing": fencing, "settle_s": 1 });
    stack.client.set_default_policy(policy).await.ok(200);
    stack.plan(power_plan()).await;
    let told = stack.client.get("/hosts/h1/explanation").await.ok(200);
    let ruling = &told["fence"]["safeguards"][0];
    assert_eq!(
        (&ruling["safeguard"], &ruling["verdict"]),
        (&json!("at_once"), &json!("allow")),
        "{told}"
    );

    for host in TOGETHER {
        stack.hang(host).await;
    }
    let is_held = |list: &Value| list["operations"].as_array().is_some_and(|held| held.len() == 2);
    let list = stack.client.until("/operations?status=held", is_held).await;
    for held in list["operations"].as_array().unwrap() {
        let by = &held["held"]["by"][0];
        assert_eq!(
            (&by["safeguard"], &by["verdict"]),
            (&json!("at_once"), &json!("hold")),
            "{held}"
        );
        let host = held["host"].as_str().unwrap();
        assert!(
            stack.simulators.may_write(host),
            "{host} was fenced although it is held"
        );
    }
    let mut fenced = 0;
    while fenced < TOGETHER.len() {
        let count = under_way(&stack).await;
        assert!(count <= 1, "{count} fences are under way");
        let list = stack.client.get("/hosts?fencing_state=FENCED").await.ok(200);
        fenced = list["hosts"].as_array().unwrap().len();
    }
    let mut were_held = 0;
    for host in TOGETHER {
        stack.judge(host).await;
        let events = stack.client.event_types(host).await;
        let held = events.iter().position(|kind| kind == "operation.held");
        let released = events.iter().position(|kind| kind == "operation.released");
        assert_eq!(held.map(|at| at + 1), released, "{events:?}");
        were_held += usize::from(held.is_some());
    }
    assert_eq!(were_held, 2);
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
