//! Taking a host back.

use ringfence_api::Role;
use ringfence_core::Resource;
use ringfence_simulators::{Condition, Fault, FaultKind, PortState};
use ringfence_tests::{Ground, Stack, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(
    a_host_is_taken_back_after_a_fence_by_power,
    a_host_is_taken_back_after_a_fence_by_storage_and_network_only_with_a_newer_boot,
    a_new_fence_overtakes_a_rejoin,
    an_unfenced_host_is_taken_back_already,
    a_host_that_is_fenced_again_and_again_is_taken_back_when_a_person_asks,
    a_rejoin_right_after_the_proof_ends_the_fence_operation,
    a_refused_attempt_leaves_no_applied_fencing,
    a_returning_host_is_taken_back_automatically_where_the_segment_says_so,
    a_host_that_ran_again_is_fenced_again_before_it_is_evacuated,
    an_admin_can_confirm_the_release_of_a_lost_device,
);

async fn rejoin(stack: &Stack) -> Value {
    stack
        .client
        .post("/hosts/h1/rejoin", json!({ "reason": "checked" }))
        .await
        .ok(202)
}

/// Reports what a monitor sees until the operation is settled.
async fn watch(stack: &Stack, operation: &Value) -> Value {
    let path = format!("/operations/{}", operation["id"].as_str().unwrap());
    for _ in 0..400 {
        stack.observe().await;
        let now = stack.client.get(&path).await.ok(200);
        if now["status"] != "running" {
            return now;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the operation did not settle");
}

async fn a_host_is_taken_back_after_a_fence_by_power(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    let fence = stack.client.fence("h1").await;
    stack.client.until_settled(&fence).await;
    let operation = rejoin(&stack).await;
    assert_eq!(operation["kind"], "rejoin");
    assert_eq!(operation["generation"], 2);
    // The rejoin ends the proofs: they open the evacuate gate no more.
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], false);
    stack.simulators.set_condition("h1", Condition::Running).unwrap();
    let operation = watch(&stack, &operation).await;
    assert_eq!(operation["status"], "succeeded", "{operation}");
    let host = stack.client.host("h1").await;
    assert_eq!(host["fencing_state"], "UNFENCED");
    assert_eq!(host["applied_fencing"], json!([]));
    assert_eq!(stack.client.gates("h1").await["schedule"]["allowed"], true);
    let kinds: Vec<_> = operation["stages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|s| s["tasks"].as_array().unwrap().clone())
        .collect();
    let told: Vec<_> = kinds
        .iter()
        .map(|t| (t["kind"].as_str().unwrap(), t["status"].as_str().unwrap()))
        .collect();
    let expected = [
        ("power.on", "confirmed"),
        ("workloads.clean-up", "skipped"),
        ("storage.unfence", "skipped"),
        ("network.unfence", "skipped"),
        ("workloads.start", "skipped"),
    ];
    assert_eq!(told, expected);
    stack.stop().await;
}

async fn a_host_is_taken_back_after_a_fence_by_storage_and_network_only_with_a_newer_boot(ground: Ground) {
    let stack = Stack::start(ground).await;
    let stages = json!([{ "tasks": [
        { "kind": "storage.fence", "levels": [{ "level": 1, "methods": ["storage"] }] },
        { "kind": "network.fence", "levels": [{ "level": 1, "methods": ["network"] }] },
    ]}]);
    stack.plan(stages).await;
    stack
        .client
        .seen_with_boot("h1", "UP", Some("boot-1"))
        .await
        .ok(200);
    stack.hang("h1").await;
    let fence = stack.client.fence("h1").await;
    stack.client.until_settled(&fence).await;
    let operation = rejoin(&stack).await;
    let path = format!("/operations/{}", operation["id"].as_str().unwrap());
    // The boot that was cut off may still hold unwritten data. It is reported for longer than the monitor's clock may be ahead.
    for _ in 0..20 {
        let seen = stack.client.seen_with_boot("h1", "UP", Some("boot-1"));
        seen.await.ok(200);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    stack
        .client
        .until(&path, |o| o["detail"].as_str().unwrap().contains("boot"))
        .await;
    assert_eq!(stack.client.host("h1").await["fencing_state"], "FENCED");
    stack
        .client
        .seen_with_boot("h1", "UP", Some("boot-2"))
        .await
        .ok(200);
    let operation = stack.client.until_settled(&operation).await;
    assert_eq!(operation["status"], "succeeded", "{operation}");
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    assert!(
        stack.client.host("h1").await["applied_fencing"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    stack.stop().await;
}

async fn a_new_fence_overtakes_a_rejoin(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    let fence = stack.client.fence("h1").await;
    stack.client.until_settled(&fence).await;
    let first = rejoin(&stack).await;
    // The power is on again, and the host does not come up.
    let path = format!("/operations/{}", first["id"].as_str().unwrap());
    stack
        .client
        .until(&path, |o| o["stages"][0]["tasks"][0]["status"] == "confirmed")
        .await;
    let second = stack.client.fence("h1").await;
    assert_eq!(second["generation"], 3);
    let second = stack.client.until_settled(&second).await;
    assert_eq!(second["status"], "succeeded", "{second}");
    let first = stack.client.get(&path).await.ok(200);
    assert_eq!(first["status"], "cancelled");
    assert!(first["detail"].as_str().unwrap().contains("superseded"));
    let host = stack.client.host("h1").await;
    assert_eq!(host["fencing_state"], "FENCED");
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], true);
    stack.judge("h1").await;
    stack.stop().await;
}

async fn an_unfenced_host_is_taken_back_already(ground: Ground) {
    let stack = Stack::start(ground).await;
    let host = stack
        .client
        .post("/hosts/h1/rejoin", json!({ "reason": "checked" }))
        .await
        .ok(200);
    assert_eq!(host["fencing_state"], "UNFENCED");
    assert_eq!(host["generation"], 0);
    stack.stop().await;
}

async fn a_returning_host_is_taken_back_automatically_where_the_segment_says_so(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack
        .client
        .set_default_policy(json!({ "auto_rejoin": true }))
        .await
        .ok(200);
    stack.hang("h1").await;
    let fence = stack.client.fence("h1").await;
    stack.client.until_settled(&fence).await;
    let _monitor = stack.client.keep_seeing("h1");
    stack.client.until_unfenced("h1").await;
    stack.stop().await;
}

async fn a_host_that_is_fenced_again_and_again_is_taken_back_when_a_person_asks(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    let policy = json!({ "auto_rejoin": true, "quarantine": { "fences": 2, "within_s": 3600 } });
    stack.client.set_default_policy(policy).await.ok(200);
    stack.hang("h1").await;
    let fence = stack.client.fence("h1").await;
    stack.client.until_settled(&fence).await;
    let monitor = stack.client.keep_seeing("h1");
    stack.client.until_unfenced("h1").await;
    drop(monitor);
    stack.hang("h1").await;
    let fence = stack.client.fence("h1").await;
    stack.client.until_settled(&fence).await;
    let _monitor = stack.client.keep_seeing("h1");
    stack
        .client
        .until("/hosts/h1", |host| host["failure_state"] == "UP")
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let host = stack.client.host("h1").await;
    assert_eq!(
        (&host["fencing_state"], &host["operation"]),
        (&json!("FENCED"), &Value::Null),
        "{host}"
    );
    assert!(host["quarantined_at"].is_string(), "{host}");
    rejoin(&stack).await;
    stack.client.until_unfenced("h1").await;
    let host = stack.client.host("h1").await;
    assert!(host["quarantined_at"].is_null(), "{host}");
    let types = stack.client.event_types("h1").await;
    for event in ["host.quarantined", "host.quarantine_ended"] {
        assert_eq!(
            types.iter().filter(|known| *known == event).count(),
            1,
            "{types:?}"
        );
    }
    stack.stop().await;
}

async fn a_rejoin_right_after_the_proof_ends_the_fence_operation(ground: Ground) {
    let stack = Stack::start(ground).await;
    let stages = json!([
        { "tasks": [{ "kind": "power.off", "levels": [{ "level": 1, "methods": ["power"] }] }] },
        { "delay_s": 600, "tasks": [{ "kind": "storage.fence", "levels": [{ "level": 1, "methods": ["storage"] }] }] },
    ]);
    stack.plan(stages).await;
    stack.hang("h1").await;
    let fence = stack.client.fence("h1").await;
    stack.client.until_fenced("h1").await;
    let operation = rejoin(&stack).await;
    let fence = stack.client.until_settled(&fence).await;
    assert_eq!(fence["status"], "succeeded", "{fence}");
    assert_eq!(fence["stages"][1]["tasks"][0]["status"], "cancelled");
    assert_eq!(watch(&stack, &operation).await["status"], "succeeded");
    stack.stop().await;
}

async fn a_refused_attempt_leaves_no_applied_fencing(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack
        .simulated_method("power", ringfence_core::Resource::Power)
        .await;
    stack
        .method_on(
            "storage",
            ringfence_core::Resource::Storage,
            "nowhere-${host.name}",
        )
        .await;
    let stages = json!([{ "tasks": [
        { "kind": "storage.fence", "levels": [{ "level": 1, "methods": ["storage"] }] },
        { "kind": "power.off", "levels": [{ "level": 1, "methods": ["power"] }] },
    ]}]);
    stack
        .client
        .post("/plans", json!({ "name": "default", "stages": stages }))
        .await
        .ok(201);
    stack.hang("h1").await;
    let fence = stack.client.fence("h1").await;
    let fence = stack.client.until_settled(&fence).await;
    assert_eq!(
        fence["stages"][0]["tasks"][0]["attempts"][0]["outcome"], "refused",
        "{fence}"
    );
    let applied = stack.client.host("h1").await["applied_fencing"].clone();
    assert_eq!(
        applied,
        json!([{ "kind": "power.off", "method": "power", "confirmed": true }])
    );
    let operation = rejoin(&stack).await;
    assert_eq!(watch(&stack, &operation).await["status"], "succeeded");
    stack.stop().await;
}

async fn a_host_that_ran_again_is_fenced_again_before_it_is_evacuated(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    let fence = stack.client.fence("h1").await;
    stack.client.until_settled(&fence).await;
    // The host is switched on by hand, and hangs again.
    stack
        .simulators
        .set_state("h1", Resource::Power, PortState::On)
        .unwrap();
    stack.client.seen("h1", "UP").await.ok(200);
    stack.hang("h1").await;
    assert!(stack.simulators.may_write("h1"));
    let gates = stack.client.gates("h1").await;
    assert_eq!(gates["evacuate"]["allowed"], false, "{gates}");
    let host = stack.client.host("h1").await;
    let by = host["proof_ended"]["by"].as_str().unwrap();
    assert!(by.starts_with("test saw the host UP at "), "{host}");
    assert_eq!(host["proofs"][0]["ended"], host["proof_ended"]);
    let again = stack.client.fence("h1").await;
    assert_eq!(again["generation"], 2);
    stack.client.until_settled(&again).await;
    stack.judge("h1").await;
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], true);
    stack.until_audited("h1", "fence.proof_ended").await;
    stack.stop().await;
}

async fn an_admin_can_confirm_the_release_of_a_lost_device(ground: Ground) {
    let stack = Stack::start_with_short_attempts(ground).await;
    let stages = json!([{ "tasks": [
        { "kind": "storage.fence", "levels": [{ "level": 1, "methods": ["storage"] }] },
        { "kind": "network.fence", "levels": [{ "level": 1, "methods": ["network"] }] },
    ]}]);
    stack.plan(stages).await;
    stack.hang("h1").await;
    let fence = stack.client.fence("h1").await;
    stack.client.until_settled(&fence).await;
    let word = |generation: u32, methods: Value| json!({ "generation": generation, "methods": methods, "reason": "replaced" });
    let path = "/hosts/h1/confirm-released";
    let early = stack.client.post(path, word(1, json!(["network"]))).await;
    assert_eq!((early.status, early.code()), (409, "fencing.host.state"));
    stack.set_fault("h1", Resource::Network, Some(Fault::forever(FaultKind::Refuse)));
    stack
        .client
        .seen_with_boot("h1", "UP", Some("boot-2"))
        .await
        .ok(200);
    let operation = stack
        .client
        .post(
            "/hosts/h1/rejoin",
            json!({ "reason": "checked", "boot_confirmed": true }),
        )
        .await
        .ok(202);
    let operation = stack.client.until_settled(&operation).await;
    assert_eq!(operation["status"], "needs_operator", "{operation}");
    let as_operator = stack.as_role(Role::Operator);
    as_operator.post(path, word(2, json!(["network"]))).await.ok(403);
    let unknown = stack.client.post(path, word(2, json!(["storage"]))).await;
    assert_eq!(
        (unknown.status, unknown.code()),
        (409, "fencing.applied_fencing.unknown")
    );
    stack.client.post(path, word(2, json!([]))).await.ok(400);
    stack.client.post(path, word(2, json!(["network"]))).await.ok(200);
    let operation = stack.client.until_settled(&operation).await;
    assert_eq!(operation["status"], "succeeded", "{operation}");
    let host = stack.client.host("h1").await;
    assert_eq!(host["fencing_state"], "UNFENCED");
    assert_eq!(host["applied_fencing"], json!([]));
    let audit = stack.audit("h1").await;
    let entry = audit
        .iter()
        .find(|e| e.action == "applied_fencing.released")
        .unwrap();
    assert_eq!(entry.actor, "a-admin");
    assert_eq!(entry.detail["reason"], "replaced");
    stack.stop().await;
}
