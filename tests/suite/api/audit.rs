//! The audit trail, as an admin reads it.

use reqwest::Method;
use ringfence_api::Role;
use ringfence_tests::{Client, Ground, Stack, power_plan};
use serde_json::{Value, json};

use super::refused;

crate::on_both_grounds!(
    every_reason_is_in_the_audit_trail,
    audit_lines_are_found_by_the_callers_global_request_id,
    the_audit_trail_is_filtered_and_paged,
    the_audit_trail_of_a_removed_host_is_found_by_its_name,
    only_admins_read_the_audit_trail_and_no_request_changes_it,
);

async fn lines(client: &Client, query: &str) -> Vec<Value> {
    let list = client.get(&format!("/audit?{query}")).await.ok(200);
    list["audit"].as_array().unwrap().clone()
}

/// The actions of these lines, oldest first.
fn actions(lines: &[Value]) -> Vec<&str> {
    let newest_first = lines.iter().map(|line| line["action"].as_str().unwrap());
    newest_first.rev().collect()
}

/// Asserts who, from where and why on every line of this action in one request.
async fn assert_in_the_audit_trail(client: &Client, request_id: &str, action: &str, why: &str) {
    let mut lines = lines(client, &format!("request_id={request_id}&action={action}")).await;
    lines.retain(|line| line["action"] == action);
    let [line] = lines.as_slice() else {
        panic!("{action} is in the audit trail {} times", lines.len());
    };
    assert_eq!(line["actor"], "a-operator");
    assert_eq!(line["origin"], "127.0.0.1");
    assert_eq!(line["request_id"], request_id);
    assert_eq!(line["target"], "h1");
    let reason = match action {
        // A confirmation is a proof, and its reason what the proof says.
        "operation.proof" => &line["detail"]["proof"]["detail"],
        _ => &line["detail"]["reason"],
    };
    assert_eq!(reason, why, "{line}");
}

async fn every_reason_is_in_the_audit_trail(ground: Ground) {
    let stack = Stack::start(ground).await;
    // A plan that does nothing by itself: its fence waits for a person.
    stack
        .client
        .post("/plans", json!({ "name": "by-hand", "stages": [] }))
        .await
        .ok(201);
    let operator = stack.as_role(Role::Operator);
    let ask = async |path: &str, body: Value, status: u16| {
        let answer = operator.post(path, body).await;
        let request_id = answer.header("x-openstack-request-id").to_owned();
        (request_id, answer.ok(status))
    };
    let client = &stack.client;
    let because = |why: &str| json!({ "reason": why });

    let (request, fence) = ask("/hosts/h1/fence", because("no heartbeat"), 202).await;
    assert_in_the_audit_trail(client, &request, "operation.started", "no heartbeat").await;
    let id = fence["id"].as_str().unwrap();
    client.until_settled(&fence).await;
    let (request, joined) = ask("/hosts/h1/fence", because("no answer to ping either"), 202).await;
    assert_eq!(joined["id"], id);
    assert_eq!(joined["reason"], "no heartbeat");
    assert_in_the_audit_trail(client, &request, "fence.joined", "no answer to ping either").await;
    let (request, _) = ask(&format!("/operations/{id}/retry"), because("new cable"), 200).await;
    assert_in_the_audit_trail(client, &request, "operation.retry", "new cable").await;
    let (request, _) = ask(&format!("/operations/{id}/cancel"), because("wrong host"), 200).await;
    assert_in_the_audit_trail(client, &request, "operation.cancel", "wrong host").await;

    let word = json!({ "generation": 1, "reason": "pulled the plug" });
    let (request, _) = ask("/hosts/h1/confirm-fenced", word, 200).await;
    assert_in_the_audit_trail(client, &request, "operation.started", "pulled the plug").await;
    assert_in_the_audit_trail(client, &request, "operation.proof", "pulled the plug").await;
    assert_in_the_audit_trail(client, &request, "host.fenced", "pulled the plug").await;

    let (request, _) = ask("/hosts/h1/rejoin", because("new power supply"), 202).await;
    assert_in_the_audit_trail(client, &request, "operation.started", "new power supply").await;
    let vouched = json!({ "reason": "saw it boot", "boot_confirmed": true });
    let (request, _) = ask("/hosts/h1/rejoin", vouched, 202).await;
    assert_in_the_audit_trail(client, &request, "rejoin.boot_confirmed", "saw it boot").await;
    stack.stop().await;
}

async fn audit_lines_are_found_by_the_callers_global_request_id(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    let client = &stack.client;
    let called = async |path: &str, id: &str, body: Value| {
        let asked = client.request(Method::POST, path).json(&body);
        let answer = client.send(asked.header("X-OpenStack-Request-ID", id)).await;
        let own = answer.header("x-openstack-request-id").to_owned();
        assert!(answer.status < 300, "{}", answer.body);
        assert_ne!(own, id);
        own
    };
    // Nova sends the id of its own request with every call of one recovery.
    let novas = "req-0a5c5f6e-4b7c-4ad5-9a55-2b5c2d2f0d11";
    let adding = called("/hosts", novas, json!({ "name": "h9" })).await;
    let fencing = called("/hosts/h1/fence", novas, json!({ "reason": "no heartbeat" })).await;
    // An id that is not in OpenStack's form is ignored.
    called("/segments", "req-of-mine", json!({ "name": "s9" })).await;
    client.until_fenced("h1").await;

    let found = lines(client, &format!("global_request_id={novas}")).await;
    assert_eq!(actions(&found), ["host.created", "operation.started"]);
    assert_eq!(found[0]["request_id"], fencing);
    assert_eq!(found[1]["request_id"], adding);
    assert_eq!(found[0]["detail"]["global_request_id"], novas);
    assert_eq!(found[0]["detail"]["reason"], "no heartbeat");
    assert_eq!(
        lines(client, "global_request_id=req-of-mine").await,
        Vec::<Value>::new()
    );
    let with_one = lines(client, "limit=1000").await;
    let with_one = with_one
        .iter()
        .filter(|line| line["detail"].get("global_request_id").is_some());
    assert_eq!(with_one.count(), 2);
    stack.stop().await;
}

async fn the_audit_trail_is_filtered_and_paged(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let client = &stack.client;
    stack.hang("h1").await;
    client.fence("h1").await;
    client.until_fenced("h1").await;
    client
        .until("/hosts/h1", |host| host["operation"] == Value::Null)
        .await;

    let all = lines(client, "limit=1000").await;
    let mut paged = Vec::new();
    let mut path = "/audit?limit=2".to_owned();
    loop {
        let page = client.get(&path).await.ok(200);
        paged.extend(page["audit"].as_array().unwrap().iter().cloned());
        match page["links"][0]["href"].as_str() {
            Some(next) => path = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(paged, all);
    assert!(all.len() > 8, "{all:?}");

    let configured = lines(client, "action=method.").await;
    assert_eq!(
        actions(&configured),
        ["method.created", "method.created", "method.created"]
    );
    let of_host = lines(client, "host=h1").await;
    assert_eq!(
        actions(&of_host),
        [
            "host.created",
            "host.failure_state",
            "operation.started",
            "operation.proof",
            "host.fenced",
            "operation.succeeded"
        ]
    );
    let by_worker = of_host
        .iter()
        .find(|line| line["action"] == "host.fenced")
        .unwrap();
    let who = by_worker["actor"].as_str().unwrap();
    assert_eq!(by_worker["origin"], Value::Null);
    for line in lines(client, &format!("actor={who}")).await {
        assert_eq!(line["actor"], who);
    }
    let began = of_host.last().unwrap()["at"].as_str().unwrap();
    let fenced = by_worker["at"].as_str().unwrap();
    let between = lines(client, &format!("host=h1&since={began}&until={fenced}")).await;
    assert!(actions(&between).starts_with(&["host.created", "host.failure_state", "operation.started"]));
    assert!(!actions(&between).contains(&"host.fenced"));
    stack.stop().await;
}

async fn the_audit_trail_of_a_removed_host_is_found_by_its_name(ground: Ground) {
    let stack = Stack::start(ground).await;
    let client = &stack.client;
    let id = client.host("h1").await["id"].as_str().unwrap().to_owned();
    assert_eq!(client.delete("/hosts/h1").await.status, 204);
    for host in ["h1", &id] {
        let lines = lines(client, &format!("host={host}")).await;
        assert_eq!(actions(&lines), ["host.created", "host.deleted"]);
        // Each at its own time.
        assert_ne!(lines[0]["at"], lines[1]["at"]);
    }
    let unknown = client.get("/audit?host=h9").await;
    refused(&unknown, 404, "fencing.host.not_found", &["h9"]);
    stack.stop().await;
}

async fn only_admins_read_the_audit_trail_and_no_request_changes_it(ground: Ground) {
    let stack = Stack::start(ground).await;
    for role in [Role::Reader, Role::Service, Role::Operator] {
        let answer = stack.as_role(role).get("/audit").await;
        refused(&answer, 403, "fencing.forbidden", &["admin"]);
    }
    let client = &stack.client;
    for answer in [
        client.delete("/audit").await,
        client.post("/audit", json!({})).await,
        client.put("/audit", json!({})).await,
    ] {
        refused(&answer, 405, "fencing.method.not_allowed", &[]);
    }
    let cases: &[(&str, &[&str])] = &[
        ("limit=0", &["limit", "0", "1000"]),
        ("marker=first", &["marker", "first"]),
        ("marker=999999", &["marker", "999999", "no such line"]),
        ("since=yesterday", &["since", "yesterday", "2026-01-31T12:00:00Z"]),
        ("until=2026-01-31", &["until", "2026-01-31"]),
        (
            "since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
            &["until", "since"],
        ),
        ("actor=", &["actor", "255"]),
        ("colour=red", &["colour"]),
    ];
    for (query, words) in cases {
        let answer = client.get(&format!("/audit?{query}")).await;
        refused(&answer, 400, "fencing.request.invalid", words);
    }
    stack.stop().await;
}
