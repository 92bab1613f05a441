//! A source that is cut off, by a switch or by the network of the management system: no host that lives is fenced by its word.

use ringfence_simulators::Condition;
use ringfence_tests::{Ground, Numbers, Site, Stack, StackOptions, eventually, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(
    a_source_that_loses_most_of_its_hosts_has_none_fenced_until_it_hears_them_again,
    bad_sights_are_refused,
);

fn policy(sight: &Value) -> Value {
    let fencing = json!({
        "automatic": true, "after_s": 1, "at_most": 10, "at_most_percent": 100, "sight": sight,
    });
    json!({ "fencing": fencing, "settle_s": 1 })
}

/// The management network fails, and the monitor hears none of its hosts, which live. Later a switch fails, and five of six hosts with it for their monitor. One of them has died by the time it is back: that one alone is fenced, and not before the others were
/// heard for long enough.
async fn a_source_that_loses_most_of_its_hosts_has_none_fenced_until_it_hears_them_again(ground: Ground) {
    let options = StackOptions {
        hosts: 6,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    stack.plan(power_plan()).await;
    stack.observe().await;
    let sight = json!({ "at_most_percent": 50, "quiet_s": 10 });
    stack.client.set_default_policy(policy(&sight)).await.ok(200);
    // The monitor itself is cut off, and hears nothing of what lives.
    let all = ["h1", "h2", "h3", "h4", "h5", "h6"];
    for host in all {
        stack.client.seen(host, "UNREACHABLE").await.ok(200);
    }
    for host in all {
        let why = "test hears 0 of its 6 hosts, and may be cut off itself";
        stack.until_held("sight", host, "hold", why).await;
    }
    for host in all {
        stack.client.seen(host, "UP").await.ok(200);
    }
    // Its fence was never begun.
    let is_over = |list: &Value| list["operations"] == json!([]);
    stack.client.until("/operations?status=held", is_over).await;

    let behind_the_switch = ["h1", "h2", "h3", "h4", "h5"];
    for host in behind_the_switch {
        stack.client.seen(host, "UNREACHABLE").await.ok(200);
    }
    for host in behind_the_switch {
        let why = "test hears 1 of its 6 hosts, and may be cut off itself";
        let held = stack.until_held("sight", host, "hold", why).await;
        assert_eq!(held["held"]["by"].as_array().unwrap().len(), 1, "{held}");
    }
    let label = [r#"source="test""#];
    let are_told = |numbers: &Numbers| {
        let of = |name| numbers.sum(name, &label);
        of("ringfence_source_heard_hosts") == 1.0 && of("ringfence_source_hosts") == 6.0
    };
    eventually(async || are_told(&Numbers::of(&stack.client).await)).await;

    stack.simulators.set_condition("h3", Condition::Hung).unwrap();
    for host in ["h1", "h2", "h4", "h5"] {
        stack.client.seen(host, "UP").await.ok(200);
    }
    // How many for 10 s depends on how long the sixth has been heard by now.
    let why = "test hears 5 of its 6 hosts, and ";
    stack.until_held("sight", "h3", "hold", why).await;
    stack.client.until_fenced("h3").await;
    stack.judge("h3").await;
    for host in ["h1", "h2", "h4", "h5", "h6"] {
        assert!(stack.simulators.may_write(host), "{host} was fenced");
    }
    stack.stop().await;
}

async fn bad_sights_are_refused(ground: Ground) {
    let stack = Stack::start(ground).await;
    let sight = json!({ "at_most_percent": 100, "quiet_s": 9 });
    let refused = stack.client.set_default_policy(policy(&sight)).await.ok(400);
    let problems = refused["errors"].to_string();
    for problem in [
        "policy.fencing.sight.at_most_percent",
        "is 100; 1 to 99 is allowed",
        "is 9; 10 to 3600 is allowed",
    ] {
        assert!(problems.contains(problem), "{refused}");
    }
    stack.stop().await;
}
