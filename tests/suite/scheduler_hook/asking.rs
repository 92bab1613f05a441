//! On which hosts servers may be placed.

use ringfence_api::Role;
use ringfence_scheduler_hook::{HookConfig, UnknownHosts};
use ringfence_tests::{Client, Ground};
use serde_json::{Value, json};

use super::{add, filter, join, stack, until_allowed, until_answered};

crate::on_both_grounds!(
    a_host_is_allowed_while_it_is_up_and_has_no_operation,
    hosts_of_one_name_in_two_clouds_are_two_hosts,
    unknown_hosts_are_refused_unless_the_configuration_allows_them,
    invalid_questions_are_refused_with_the_field,
    a_reader_may_ask_the_hook,
    a_repeated_question_to_the_hook_gets_a_new_answer,
);

fn reason<'a>(answer: &'a Value, host: &str) -> &'a str {
    let refused = answer["refused"].as_array().unwrap();
    let one = refused.iter().find(|one| one["host"] == host).unwrap();
    one["reason"].as_str().unwrap()
}

/// Waits until the hook knows the host.
async fn until_known(client: &Client, host: &str) {
    let is_known = |answer: &Value| !reason(answer, host).contains("does not know");
    until_answered(client, "east", &[host], is_known).await;
}

async fn a_host_is_allowed_while_it_is_up_and_has_no_operation(ground: Ground) {
    let stack = stack(ground, HookConfig::default()).await;
    let client = &stack.client;
    stack.plan(ringfence_tests::power_plan()).await;
    join(&stack, "east").await;
    add(client, "up", "east", "up.example.org").await;
    let new = json!({ "name": "new", "backend": "nova", "cloud": "east" });
    client.post("/hosts", new).await.ok(201);
    until_known(client, "new").await;
    let asked = ["h1", "up.example.org", "new", "up.example.org"];

    let answer = until_allowed(
        client,
        "east",
        &asked,
        &["h1", "up.example.org", "up.example.org"],
    )
    .await;
    assert_eq!(reason(&answer, "new"), "the host is UNKNOWN, not UP");
    assert!(answer["as_of"].as_str().unwrap().ends_with('Z'), "{answer}");

    stack.hang("h1").await;
    let operation = client.fence("h1").await;
    let answer = until_allowed(client, "east", &asked, &["up.example.org", "up.example.org"]).await;
    assert!(!reason(&answer, "h1").is_empty());
    client.until_fenced("h1").await;
    client.until_settled(&operation).await;
    client.seen("h1", "UP").await.ok(200);
    let is_closed = |answer: &Value| reason(answer, "h1") == "the host is FENCED";
    let answer = until_answered(client, "east", &asked, is_closed).await;
    assert_eq!(answer["allowed"], json!(["up.example.org", "up.example.org"]));

    client.delete("/hosts/up").await.ok(204);
    until_allowed(client, "east", &asked, &[]).await;
    stack.stop().await;
}

async fn hosts_of_one_name_in_two_clouds_are_two_hosts(ground: Ground) {
    let stack = stack(ground, HookConfig::default()).await;
    let client = &stack.client;
    add(client, "c1-east", "east", "c1").await;
    add(client, "c1-west", "west", "c1").await;
    client.seen("c1-west", "UNREACHABLE").await.ok(200);

    until_allowed(client, "east", &["c1"], &["c1"]).await;
    let is_down = |west: &Value| west["refused"][0]["reason"] == "the host is UNREACHABLE, not UP";
    until_answered(client, "west", &["c1"], is_down).await;
    let own_names = filter(client, "east", &["c1-east"]).await;
    assert_eq!(own_names["allowed"], json!([]), "{own_names}");
    stack.stop().await;
}

async fn unknown_hosts_are_refused_unless_the_configuration_allows_them(ground: Ground) {
    for (unknown_hosts, allowed) in [
        (UnknownHosts::Refused, vec!["c1"]),
        (UnknownHosts::Allowed, vec!["c1", "other"]),
    ] {
        let config = HookConfig {
            unknown_hosts,
            clouds: vec!["empty".to_owned()],
            ..HookConfig::default()
        };
        let stack = stack(ground, config).await;
        let client = &stack.client;
        add(client, "c1", "east", "c1").await;
        let answer = until_allowed(client, "east", &["c1", "other"], &allowed).await;
        if unknown_hosts == UnknownHosts::Refused {
            assert!(
                reason(&answer, "other").contains("scheduler_hook.unknown_hosts"),
                "{answer}"
            );
        }
        let of_empty = filter(client, "empty", &["c1"]).await;
        assert_eq!(
            of_empty["allowed"] == json!(["c1"]),
            unknown_hosts == UnknownHosts::Allowed
        );
        // An unknown cloud allows no host, also where unknown hosts are allowed.
        let of_nowhere = filter(client, "esat", &["c1", "other"]).await;
        assert_eq!(of_nowhere["allowed"], json!([]));
        assert!(reason(&of_nowhere, "c1").contains("cloud"), "{of_nowhere}");
        stack.stop().await;
    }
}

async fn invalid_questions_are_refused_with_the_field(ground: Ground) {
    let stack = stack(ground, HookConfig::default()).await;
    let client = &stack.client;
    add(client, "c1", "east", "c1").await;
    until_allowed(client, "east", &["c1"], &["c1"]).await;
    let names = |count: usize| (0..count).map(|n| format!("c{n}")).collect::<Vec<_>>();
    let cases = [
        ("/nova/filter", json!({}), "cloud"),
        ("/nova/filter", json!({ "cloud": "east" }), "hosts"),
        ("/nova/filter", json!({ "cloud": 7, "hosts": [] }), "cloud"),
        (
            "/nova/filter",
            json!({ "cloud": "east", "hosts": ["c1", 1] }),
            "hosts[1]",
        ),
        (
            "/nova/filter",
            json!({ "cloud": "east", "hosts": [], "zone": "z" }),
            "zone",
        ),
        (
            "/nova/filter",
            json!({ "cloud": "east", "hosts": names(10_001) }),
            "hosts: has 10001 names; at most 10000",
        ),
        ("/nova/evacuate-check", json!({ "host": "c1" }), "cloud"),
        (
            "/nova/evacuate-check",
            json!({ "cloud": "east", "host": "c1", "action": "reboot" }),
            "action",
        ),
        (
            "/nova/evacuate-check",
            json!({ "cloud": "east", "host": "c".repeat(256) }),
            "host: has 256 characters",
        ),
    ];
    for (path, question, named) in cases {
        let answer = client.post(path, question).await;
        assert_eq!(
            (answer.status, answer.code()),
            (400, "fencing.request.invalid"),
            "{named}"
        );
        assert!(answer.details().contains(named), "{named}: {}", answer.details());
    }
    for path in ["/nova/filter", "/nova/evacuate-check"] {
        let bare = client.request(reqwest::Method::POST, path);
        assert_eq!(client.send(bare).await.status, 415);
        let empty = client.request(reqwest::Method::POST, path);
        let empty = empty.header("Content-Type", "application/json");
        assert_eq!(client.send(empty).await.status, 400);
        assert_eq!(client.get(path).await.status, 405);
    }
    let most = filter(
        client,
        "east",
        &names(10_000).iter().map(String::as_str).collect::<Vec<_>>(),
    )
    .await;
    assert_eq!(most["allowed"], json!(["c1"]));
    assert_eq!(most["refused"].as_array().unwrap().len(), 9_999);
    let long = json!({ "cloud": "east", "hosts": ["c".repeat(2 * 1024 * 1024)] });
    assert_eq!(client.post("/nova/filter", long).await.status, 413);
    // Names with JSON escapes are unescaped.
    let escaped = client.request(reqwest::Method::POST, "/nova/filter");
    let escaped = escaped
        .header("Content-Type", "application/json")
        .body(r#"{"cloud":"\u0065ast","hosts":["\u0063\u0031"]}"#);
    assert_eq!(client.send(escaped).await.ok(200)["allowed"], json!(["c1"]));
    stack.stop().await;
}

async fn a_reader_may_ask_the_hook(ground: Ground) {
    let stack = stack(ground, HookConfig::default()).await;
    add(&stack.client, "c1", "east", "c1").await;
    until_allowed(&stack.client, "east", &["c1"], &["c1"]).await;
    let questions = [
        ("/nova/filter", json!({ "cloud": "east", "hosts": ["c1"] })),
        ("/nova/evacuate-check", json!({ "cloud": "east", "host": "c1" })),
    ];
    for (path, question) in questions {
        for token in [None, Some("wrong"), Some("rf_wrong")] {
            let stranger = stack.client.with_token(token);
            assert_eq!(
                stranger.post(path, question.clone()).await.status,
                401,
                "{path} {token:?}"
            );
        }
        let reader = stack.as_role(Role::Reader);
        assert_eq!(reader.post(path, question).await.status, 200, "{path}");
    }
    let metrics = stack.client.get("/metrics").await;
    let metrics = metrics.body.as_str().unwrap().to_owned();
    assert!(
        metrics.contains(r#"ringfence_scheduler_hook_answers_total{question="evacuate",outcome="refused"}"#),
        "{metrics}"
    );
    assert!(
        metrics.contains("ringfence_scheduler_hook_memory_age_seconds "),
        "{metrics}"
    );
    assert!(metrics.contains("ringfence_scheduler_hook_hosts 1"), "{metrics}");
    stack.stop().await;
}

/// An idempotency key keeps answers of changes. A question changes nothing, and its answer may be another one by now.
async fn a_repeated_question_to_the_hook_gets_a_new_answer(ground: Ground) {
    let stack = stack(ground, HookConfig::default()).await;
    add(&stack.client, "c1", "east", "c1").await;
    until_allowed(&stack.client, "east", &["c1"], &["c1"]).await;
    let question = json!({ "cloud": "east", "hosts": ["c1"] });
    let ask = || stack.client.post_once("/nova/filter", "a-key", question.clone());
    assert_eq!(ask().await.ok(200)["allowed"], json!(["c1"]));
    stack.client.seen("c1", "UNREACHABLE").await.ok(200);
    until_allowed(&stack.client, "east", &["c1"], &[]).await;
    assert_eq!(ask().await.ok(200)["allowed"], json!([]));
    stack.stop().await;
}
