//! Hosts that share a label: how many of them may be fenced by themselves.

use ringfence_simulators::Condition;
use ringfence_tests::{Ground, Site, Stack, StackOptions, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(
    a_group_keeps_its_majority,
    a_fence_that_has_begun_stands_still_while_another_member_is_silent,
    a_rule_for_a_label_that_no_host_has_is_refused,
);

/// Six hosts, three of which are members of an etcd.
async fn with_members(ground: Ground) -> Stack {
    let options = StackOptions {
        hosts: 6,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    for host in ["h1", "h2", "h3"] {
        let labels = json!({ "labels": { "etcd": "main", "rack": "r1" } });
        let path = format!("/hosts/{host}");
        let labelled = stack.client.patch(&path, labels.clone()).await.ok(200);
        assert_eq!(labelled["labels"], labels["labels"]);
    }
    stack
}

fn policy(group: &serde_json::Value) -> serde_json::Value {
    let fencing = json!({
        "automatic": true, "after_s": 0, "at_most": 10, "at_most_percent": 100, "groups": [group],
    });
    json!({ "fencing": fencing, "settle_s": 1 })
}

async fn a_group_keeps_its_majority(ground: Ground) {
    let stack = with_members(ground).await;
    stack.plan(power_plan()).await;
    stack.observe().await;
    let rule = json!({ "label": "etcd", "majority": true });
    stack.client.set_default_policy(policy(&rule)).await.ok(200);
    stack.hang("h1").await;
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;

    stack.hang("h2").await;
    let why = "1 other host of the group etcd=main is out of service; at most 1 of its 3 hosts may be, so that more than half of them stay in service";
    let held = stack.until_held("quorum", "h2", "hold", why).await;
    assert_eq!(
        held["held"]["by"][0]["release"],
        "hosts of the group etcd=main that are UP again"
    );
    // A host that is no member waits for none of that.
    stack.hang("h4").await;
    stack.client.until_fenced("h4").await;
    stack.judge("h4").await;
    assert!(stack.simulators.may_write("h2"), "h2 was fenced");

    let rejoin = stack
        .client
        .post("/hosts/h1/rejoin", json!({ "reason": "checked" }));
    rejoin.await.ok(202);
    stack.simulators.set_condition("h1", Condition::Running).unwrap();
    for _ in 0..400 {
        stack.observe().await;
        if stack.client.host("h2").await["fencing_state"] == "FENCED" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    stack.client.until_fenced("h2").await;
    stack.judge("h2").await;
    let events = stack.client.event_types("h2").await;
    assert!(events.contains(&"operation.released".to_owned()), "{events:?}");
    stack.stop().await;
}

async fn a_fence_that_has_begun_stands_still_while_another_member_is_silent(ground: Ground) {
    let stack = with_members(ground).await;
    stack
        .plan(json!([
            { "tasks": [{ "kind": "network.fence", "levels": [{ "level": 1, "methods": ["network"] }] }] },
            { "delay_s": 5, "tasks": [{ "kind": "power.off", "levels": [{ "level": 1, "methods": ["power"] }] }] },
        ]))
        .await;
    stack.observe().await;
    let rule = json!({ "label": "etcd", "majority": true });
    stack.client.set_default_policy(policy(&rule)).await.ok(200);
    stack.hang("h1").await;
    let fences = "/operations?host=h1&kind=fence";
    let first_is_done =
        |list: &Value| list["operations"][0]["stages"][0]["tasks"][0]["status"] == "confirmed";
    stack.client.until(fences, first_is_done).await;
    // It is silent, and lives.
    stack.client.seen("h2", "UNREACHABLE").await.ok(200);
    let is_held = |list: &Value| {
        let by = &list["operations"][0]["held"]["by"][0];
        let words = "1 other host of the group etcd=main is out of service";
        by["safeguard"] == "quorum" && by["reason"].as_str().is_some_and(|reason| reason.contains(words))
    };
    let list = stack.client.until(fences, is_held).await;
    let power = &list["operations"][0]["stages"][1]["tasks"][0];
    assert_eq!(power["attempts"], json!([]), "{list}");
    stack.client.seen("h2", "UP").await.ok(200);
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;
    assert!(stack.simulators.may_write("h2"), "h2 was fenced");
    stack.stop().await;
}

async fn a_rule_for_a_label_that_no_host_has_is_refused(ground: Ground) {
    let stack = with_members(ground).await;
    for (rule, why) in [
        (
            json!({ "label": "rakc", "at_once": 1 }),
            "policy.fencing.groups[0].label: is \"rakc\", and no host has this label; labels of hosts are etcd, rack",
        ),
        (
            json!({ "label": "etcd", "at_most_out": 3 }),
            "policy.fencing.groups[0].at_most_out: is 3, and the largest group of label \"etcd\" has 3 hosts: it would hold nothing; fewer than 3 are allowed",
        ),
        (
            json!({ "at_once": 0 }),
            "policy.fencing.groups[0].at_once: is 0; 1 to 10000 is allowed",
        ),
        (
            json!({ "at_once": 7 }),
            "policy.fencing.groups[0].at_once: is 7, and there are 6 hosts: it would hold nothing; 1 to 6 is allowed",
        ),
        (
            json!({ "label": "rack" }),
            "policy.fencing.groups[0]: bounds nothing; at_once, at_most_out or majority is needed",
        ),
    ] {
        let refused = stack.client.set_default_policy(policy(&rule)).await;
        assert!(refused.details().contains(why), "{}", refused.details());
        assert_eq!(refused.status, 400);
    }
    let wrong = json!({ "labels": { "rack": "r 1" } });
    let refused = stack.client.patch("/hosts/h4", wrong).await;
    assert!(
        refused.details().contains("labels.rack: is \"r 1\""),
        "{}",
        refused.details()
    );
    stack.stop().await;
}
