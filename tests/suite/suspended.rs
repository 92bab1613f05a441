//! Hosts, segments and everything, suspended for a time.

use std::time::Duration;

use ringfence_api::Role;
use ringfence_core::Resource;
use ringfence_simulators::{Fault, FaultKind};
use ringfence_tests::{Ground, Site, Stack, StackOptions, power_plan};
use serde_json::{Value, json};

use crate::api::refused;

crate::on_both_grounds!(
    a_segment_that_is_suspended_fences_no_host_before_the_end,
    a_fence_stands_still_between_two_steps_and_goes_on_when_its_host_is_resumed,
    everything_is_suspended_and_what_is_asked_for_is_done,
    bad_suspensions_are_refused,
);

async fn automatic(ground: Ground) -> Stack {
    let options = StackOptions {
        hosts: 3,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    let policy = json!({ "fencing": { "automatic": true, "after_s": 0, "at_most_percent": 100 } });
    stack.client.set_default_policy(policy).await.ok(200);
    stack.plan(power_plan()).await;
    stack.observe().await;
    stack
}

async fn suspend(stack: &Stack, path: &str, body: Value) -> Value {
    stack.client.put(path, body).await.ok(200)
}

fn live(host: &str, status: &str) -> (String, impl Fn(&Value) -> bool) {
    let status = status.to_owned();
    let is_it = move |list: &Value| {
        list["operations"]
            .as_array()
            .unwrap()
            .iter()
            .any(|one| one["status"] == status)
    };
    (format!("/operations?host={host}"), is_it)
}

async fn until(stack: &Stack, host: &str, status: &str) -> Value {
    let (path, is_it) = live(host, status);
    stack.client.until(&path, is_it).await["operations"][0].clone()
}

async fn a_segment_that_is_suspended_fences_no_host_before_the_end(ground: Ground) {
    let stack = automatic(ground).await;
    let body = json!({ "for_s": 6, "reason": "the switch is replaced" });
    let one = suspend(&stack, "/segments/default/suspension", body).await;
    assert_eq!(one["name"], "default", "{one}");
    stack.hang("h1").await;
    let held = until(&stack, "h1", "held").await;
    let ruling = &held["held"]["by"][0];
    assert_eq!(
        (&ruling["safeguard"], &ruling["verdict"]),
        (&json!("suspension"), &json!("hold")),
        "{held}"
    );
    let reason = ruling["reason"].as_str().unwrap();
    assert!(
        reason.contains("the host's segment is suspended until")
            && reason.ends_with("the switch is replaced"),
        "{reason}"
    );
    let all = stack.client.get("/suspensions").await.ok(200);
    assert_eq!(all["segments"][0]["suspension"], one["suspension"], "{all}");
    // It ends by itself.
    stack.client.until_fenced("h1").await;
    let all = stack.client.get("/suspensions").await.ok(200);
    assert_eq!(all, json!({ "everything": null, "segments": [], "hosts": [] }));
    stack.stop().await;
}

async fn a_fence_stands_still_between_two_steps_and_goes_on_when_its_host_is_resumed(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack
        .plan(json!([
            { "tasks": [{ "kind": "network.fence", "levels": [{ "level": 1, "methods": ["network"] }] }] },
            { "tasks": [{ "kind": "power.off", "levels": [{ "level": 1, "methods": ["power"] }] }] },
        ]))
        .await;
    let slow = Fault::new(FaultKind::Slow, None, Some(2_000)).unwrap();
    stack.set_fault("h1", Resource::Network, Some(slow));
    stack.hang("h1").await;
    let fence = stack
        .client
        .post("/hosts/h1/fence", json!({ "reason": "test" }))
        .await
        .ok(202);
    let path = format!("/operations/{}", fence["id"].as_str().unwrap());
    let is_claimed = |fence: &Value| !fence["stages"][0]["tasks"][0]["attempts"][0]["claimed_at"].is_null();
    stack.client.until(&path, is_claimed).await;
    let body = json!({ "for_s": 3600, "reason": "let me look" });
    let host = suspend(&stack, "/hosts/h1/suspension", body).await;
    assert_eq!(host["operation"]["status"], "held", "{host}");
    assert_eq!(host["suspension"]["reason"], "let me look", "{host}");
    // The step that is under way ends; the next one does not begin.
    let has_ended = |fence: &Value| !fence["stages"][0]["tasks"][0]["attempts"][0]["outcome"].is_null();
    stack.client.until(&path, has_ended).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let fence = stack.client.get(&path).await.ok(200);
    assert_eq!(
        (&fence["status"], &fence["stages"][1]["started_at"]),
        (&json!("held"), &Value::Null),
        "{fence}"
    );
    assert_eq!(
        stack.client.get("/hosts/h1").await.ok(200)["fencing_state"],
        "UNFENCED"
    );
    let host = stack
        .client
        .delete_because("/hosts/h1/suspension", "looked")
        .await
        .ok(200);
    assert!(host["suspension"].is_null(), "{host}");
    stack.client.until_fenced("h1").await;
    let events = stack.client.get("/events?host=h1&limit=100").await.ok(200);
    let kinds: Vec<&str> = events["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    for kind in [
        "host.suspended",
        "operation.held",
        "host.resumed",
        "operation.released",
    ] {
        assert!(
            kinds.iter().any(|known| known.ends_with(kind)),
            "{kind}: {kinds:?}"
        );
    }
    stack.stop().await;
}

async fn everything_is_suspended_and_what_is_asked_for_is_done(ground: Ground) {
    let stack = automatic(ground).await;
    let body = json!({ "for_s": 3600, "reason": "the network is rebuilt" });
    suspend(&stack, "/suspension", body).await;
    for host in ["h1", "h2", "h3"] {
        stack.hang(host).await;
    }
    for host in ["h1", "h2", "h3"] {
        until(&stack, host, "held").await;
    }
    stack
        .client
        .post("/hosts/h2/fence", json!({ "reason": "I pulled it out" }))
        .await
        .ok(202);
    stack.client.until_fenced("h2").await;
    for host in ["h1", "h3"] {
        let host = stack.client.get(&format!("/hosts/{host}")).await.ok(200);
        assert_eq!(
            (&host["fencing_state"], &host["operation"]["status"]),
            (&json!("UNFENCED"), &json!("held")),
            "{host}"
        );
    }
    stack
        .client
        .delete_because("/suspension", "it is rebuilt")
        .await
        .ok(204);
    for host in ["h1", "h3"] {
        stack.client.until_fenced(host).await;
    }
    let trail = stack.client.get("/audit?limit=1000").await.ok(200);
    let actions: Vec<&str> = trail["audit"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["action"].as_str().unwrap())
        .collect();
    for action in ["everything.suspended", "everything.resumed"] {
        assert!(actions.contains(&action), "{actions:?}");
    }
    stack.stop().await;
}

async fn bad_suspensions_are_refused(ground: Ground) {
    let stack = Stack::start(ground).await;
    let operator = stack.as_role(Role::Operator);
    for (body, part) in [
        (
            json!({ "reason": "x" }),
            "until: is missing; only an admin can suspend without an end",
        ),
        (
            json!({ "reason": "x", "until": "2020-01-01T00:00:00Z" }),
            "until: is 2020-01-01T00:00:00Z, which is not in the future",
        ),
        (
            json!({ "reason": "x", "until": "tomorrow" }),
            "until: is \"tomorrow\"; a time such as 2026-01-31T12:00:00Z is allowed",
        ),
        (
            json!({ "reason": "x", "for_s": 2_592_001 }),
            "an end within 30 days is allowed, and a later one to admins",
        ),
        (
            json!({ "reason": "x", "for_s": 60, "until": "2099-01-01T00:00:00Z" }),
            "for_s: is given beside until",
        ),
        (json!({ "reason": " ", "for_s": 60 }), "reason: has 1 characters"),
        (json!({ "for_s": 60 }), "reason"),
    ] {
        for path in [
            "/hosts/h1/suspension",
            "/segments/default/suspension",
            "/suspension",
        ] {
            refused(
                &operator.put(path, body.clone()).await,
                400,
                "fencing.request.invalid",
                &[part],
            );
        }
    }
    let service = stack.as_role(Role::Service);
    let body = json!({ "reason": "x", "for_s": 60 });
    refused(
        &service.put("/suspension", body.clone()).await,
        403,
        "fencing.forbidden",
        &["operator"],
    );
    refused(
        &service.put("/segments/default/suspension", body.clone()).await,
        403,
        "fencing.forbidden",
        &["operator"],
    );
    refused(
        &operator.put("/hosts/nowhere/suspension", body.clone()).await,
        404,
        "fencing.host.not_found",
        &["nowhere"],
    );
    refused(
        &operator.put("/segments/nowhere/suspension", body).await,
        404,
        "fencing.segment.not_found",
        &["nowhere"],
    );
    // Ending what is not suspended changes nothing.
    operator.delete_because("/hosts/h1/suspension", "x").await.ok(200);
    operator
        .delete_because("/segments/default/suspension", "x")
        .await
        .ok(204);
    operator.delete_because("/suspension", "x").await.ok(204);
    let all = stack.client.get("/suspensions").await.ok(200);
    assert_eq!(all, json!({ "everything": null, "segments": [], "hosts": [] }));
    stack.stop().await;
}
