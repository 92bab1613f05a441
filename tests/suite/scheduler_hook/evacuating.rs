//! What may be started elsewhere, and which host may be taken for up again.

use ringfence_scheduler_hook::{HookConfig, UnknownHosts};
use ringfence_tests::Ground;
use serde_json::json;

use super::{add, check, join, stack};

crate::on_both_grounds!(
    servers_may_leave_a_host_from_fenced_on_and_not_before,
    a_host_may_be_unforced_while_nothing_needs_it_down,
    without_a_host_nothing_may_leave,
);

const SERVER: &str = "11111111-1111-4111-8111-111111111111";

async fn servers_may_leave_a_host_from_fenced_on_and_not_before(ground: Ground) {
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
    // FENCED is committed at some moment: no answer from before it may be a yes, and every answer after it is one.
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

async fn a_host_may_be_unforced_while_nothing_needs_it_down(ground: Ground) {
    let stack = stack(ground, HookConfig::default()).await;
    let client = &stack.client;
    stack.plan(ringfence_tests::power_plan()).await;
    join(&stack, "east").await;
    let question = json!({ "cloud": "east", "host": "h1", "action": "unforce" });
    assert_eq!(check(client, question.clone()).await["allowed"], true);
    stack.hang("h1").await;
    // It is down and nothing proves it, nor does anything need it: Nova's own business.
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

async fn without_a_host_nothing_may_leave(ground: Ground) {
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
        // Whatever is said of unknown hosts: nobody has fenced this one.
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
