//! Which servers may be evacuated, and which host may be unforced.

use ringfence_scheduler_hook::{HookConfig, UnknownHosts};
use ringfence_tests::Ground;
use serde_json::json;

use super::{add, check, join, stack};

crate::on_both_grounds!(
    servers_may_leave_a_host_once_it_is_fenced,
    a_host_may_be_unforced_while_no_fence_needs_it_down,
    no_server_may_leave_an_unknown_host,
);

const SERVER: &str = "11111111-1111-4111-8111-111111111111";

async fn servers_may_leave_a_host_once_it_is_fenced(ground: Ground) {
    let stack = stack(ground, HookConfig::default()).await;
    let client = &stack.client;
    stack.plan(ringfence_tests::power_plan()).await;
    join(&stack, "east").await;
    let question = json!({ "cloud": "east", "server": SERVER, "host": "h1" });
    let up = check(client, question.clone()).await;
    assert_eq!(
        (&up["allowed"], &up["reason"]),
        (&json!(false), &json!("the host is not FENCED"))
    );
    assert_eq!(up["generation"], 0);

    stack.hang("h1").await;
    assert_eq!(check(client, question.clone()).await["allowed"], false);
    client.fence("h1").await;
    // No answer before the commit of FENCED allows the evacuation, and every answer after it does.
    let mut may_leave = false;
    while !may_leave {
        may_leave = check(client, question.clone()).await["allowed"] == true;
        if may_leave {
            assert_eq!(client.host("h1").await["fencing_state"], "FENCED");
        }
    }
    stack.judge("h1").await;
    let fenced = check(client, question.clone()).await;
    assert_eq!(
        (&fenced["allowed"], &fenced["generation"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(
        check(client, json!({ "cloud": "west", "host": "h1" })).await["allowed"],
        false
    );

    client.seen("h1", "UP").await.ok(200);
    assert_eq!(check(client, question).await["allowed"], false);
    stack.stop().await;
}

async fn a_host_may_be_unforced_while_no_fence_needs_it_down(ground: Ground) {
    let stack = stack(ground, HookConfig::default()).await;
    let client = &stack.client;
    stack.plan(ringfence_tests::power_plan()).await;
    join(&stack, "east").await;
    let question = json!({ "cloud": "east", "host": "h1", "action": "unforce" });
    assert_eq!(check(client, question.clone()).await["allowed"], true);
    stack.hang("h1").await;
    // The host is down without a fence: whether it is unforced is Nova's decision.
    assert_eq!(check(client, question.clone()).await["allowed"], true);

    client.fence("h1").await;
    let fencing = check(client, question.clone()).await;
    assert_eq!(fencing["allowed"], false, "{fencing}");
    client.until_fenced("h1").await;
    let fenced = check(client, question).await;
    assert_eq!(
        (&fenced["allowed"], &fenced["reason"]),
        (&json!(false), &json!("the host is FENCED; rejoin it"))
    );
    stack.stop().await;
}

async fn no_server_may_leave_an_unknown_host(ground: Ground) {
    let config = HookConfig {
        unknown_hosts: UnknownHosts::Allowed,
        ..HookConfig::default()
    };
    let stack = stack(ground, config).await;
    let client = &stack.client;
    add(client, "c1", "east", "c1").await;
    for question in [
        json!({ "cloud": "east", "server": SERVER, "host": null }),
        json!({ "cloud": "east", "host": null, "action": "unforce", "service": SERVER }),
        json!({ "cloud": "east" }),
        // Also where unknown hosts are allowed: this host has no fence.
        json!({ "cloud": "east", "server": SERVER, "host": "other" }),
        json!({ "cloud": "esat", "host": "c1", "action": "unforce" }),
    ] {
        let answer = check(client, question).await;
        assert_eq!(
            (&answer["allowed"], &answer["generation"]),
            (&json!(false), &json!(null)),
            "{answer}"
        );
        assert!(!answer["reason"].as_str().unwrap().is_empty());
    }
    let foreign = json!({ "cloud": "east", "host": "other", "action": "unforce" });
    assert_eq!(check(client, foreign).await["allowed"], true);
    stack.stop().await;
}
