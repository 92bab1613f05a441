//! Fencing with simulated devices, with and without faults.

use ringfence_core::Resource;
use ringfence_simulators::{Fault, FaultKind};
use ringfence_tests::{Ground, Site, Stack, StackOptions, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(
    power_alone_fences_a_hung_host,
    storage_and_network_fence_without_power,
    storage_alone_does_not_suffice,
    a_level_fails_and_the_next_is_used,
    all_fail_and_a_person_confirms,
    a_lying_bmc_never_opens_the_evacuate_gate,
    a_silent_bmc_never_opens_the_evacuate_gate,
    a_flapping_bmc_is_not_believed_while_it_reads_on,
    five_equal_requests_are_one_operation,
    a_host_that_is_seen_up_is_not_fenced,
    two_power_supplies_go_off_before_either_comes_on,
    a_plan_changed_by_another_process_is_used_for_the_next_fence,
);

async fn power_alone_fences_a_hung_host(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack.hang("h1").await;
    assert!(stack.simulators.may_write("h1"));
    let operation = stack.client.fence("h1").await;
    assert_eq!(operation["kind"], "fence");
    let host = stack.client.until_fenced("h1").await;
    assert_eq!(host["proofs"][0]["kind"], "power.off");
    assert_eq!(host["generation"], 1);
    assert!(!stack.simulators.may_write("h1"));
    let gates = stack.client.gates("h1").await;
    assert_eq!(gates["evacuate"]["allowed"], true);
    assert_eq!(gates["schedule"]["allowed"], false);
    let operation = stack.client.until_settled(&operation).await;
    assert_eq!(operation["status"], "succeeded");
    stack
        .client
        .post("/hosts/h1/fence", json!({ "reason": "again" }))
        .await
        .ok(200);
    let types = stack.client.event_types("h1").await;
    let expected = [
        "host.created",
        "host.failure_state",
        "operation.started",
        "operation.proof",
        "host.fenced",
        "operation.succeeded",
    ];
    assert_eq!(types, expected);
    stack.stop().await;
}

/// A cached plan is used only while the database has no newer one: the change need not come from this process.
async fn a_plan_changed_by_another_process_is_used_for_the_next_fence(ground: Ground) {
    let options = StackOptions {
        hosts: 3,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    let made = stack.plan(power_plan()).await;
    let kinds = |operation: &Value| {
        let tasks = operation["stages"][0]["tasks"].as_array().unwrap();
        let kinds = tasks.iter().map(|task| task["kind"].as_str().unwrap().to_owned());
        kinds.collect::<Vec<_>>()
    };
    stack.hang("h1").await;
    assert_eq!(kinds(&stack.client.fence("h1").await), ["power.off"]);

    let mut reader = stack.api.db().reader();
    let id = made["id"].as_str().unwrap();
    let mut plan = ringfence_db::plan(&mut reader, id).await.unwrap().unwrap();
    let known = plan.revision;
    plan.stages = serde_json::from_value(cut_off()).unwrap();
    plan.revision += 1;
    assert!(
        ringfence_db::update_plan(&mut reader, &plan, known)
            .await
            .unwrap()
    );
    stack.hang("h2").await;
    let operation = stack.client.fence("h2").await;
    assert_eq!(kinds(&operation), ["storage.fence", "network.fence"]);

    let method = ringfence_db::method(&mut reader, "network")
        .await
        .unwrap()
        .unwrap();
    let mut slower = method.clone();
    slower.times.timeout_s += 7;
    slower.revision += 1;
    assert!(
        ringfence_db::update_method(&mut reader, &slower, method.revision)
            .await
            .unwrap()
    );
    stack.hang("h3").await;
    let operation = stack.client.fence("h3").await;
    let id = operation["id"].as_str().unwrap().parse().unwrap();
    let operation = ringfence_db::operation(&mut reader, id).await.unwrap().unwrap();
    let network = operation.tasks().nth(1).unwrap();
    assert_eq!(network.levels()[0][0].times.timeout_s, slower.times.timeout_s);
    stack.stop().await;
}

fn cut_off() -> Value {
    json!([{ "tasks": [
        { "kind": "storage.fence", "levels": [{ "level": 1, "methods": ["storage"] }] },
        { "kind": "network.fence", "levels": [{ "level": 1, "methods": ["network"] }] },
    ]}])
}

async fn storage_and_network_fence_without_power(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(cut_off()).await;
    stack.hang("h1").await;
    stack.client.fence("h1").await;
    let host = stack.client.until_fenced("h1").await;
    let kinds: Vec<_> = host["proofs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|proof| proof["kind"].as_str().unwrap())
        .collect();
    assert!(
        kinds.contains(&"storage.fence") && kinds.contains(&"network.fence"),
        "{kinds:?}"
    );
    assert_eq!(host["needs_boot"], true);
    stack.judge("h1").await;
    stack.stop().await;
}

async fn storage_alone_does_not_suffice(ground: Ground) {
    let stack = Stack::start_with_short_attempts(ground).await;
    stack.plan(cut_off()).await;
    stack.set_fault("h1", Resource::Network, Some(Fault::forever(FaultKind::Lie)));
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    let operation = stack.client.until_settled(&operation).await;
    assert_eq!(operation["status"], "needs_operator", "{operation}");
    assert_eq!(operation["proofs"][0]["kind"], "storage.fence");
    let gates = stack.client.gates("h1").await;
    assert_eq!(gates["evacuate"]["allowed"], false);
    assert_eq!(gates["schedule"]["allowed"], false);
    stack.stop().await;
}

/// A host with two power devices beside its own: the methods `first` and `second`, each in a level of its own.
async fn two_levels(ground: Ground) -> Stack {
    let stack = Stack::start(ground).await;
    stack
        .method_on("silent", Resource::Power, "unknown-of-${host.name}")
        .await;
    stack.simulated_method("works", Resource::Power).await;
    let levels = json!([{ "level": 3, "methods": ["works"] }, { "level": 1, "methods": ["silent"] }]);
    let stages = json!([{ "tasks": [{ "kind": "power.off", "levels": levels }] }]);
    stack
        .client
        .post("/plans", json!({ "name": "default", "stages": stages }))
        .await
        .ok(201);
    stack
}

async fn a_level_fails_and_the_next_is_used(ground: Ground) {
    let stack = two_levels(ground).await;
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_fenced("h1").await;
    let operation = stack.client.until_settled(&operation).await;
    let attempts = operation["stages"][0]["tasks"][0]["attempts"].as_array().unwrap();
    // The simulator knows no device of this name: the attempt is refused, and not repeated.
    assert_eq!(attempts[0]["method"], "silent");
    assert_eq!(attempts[0]["outcome"], "refused", "{operation}");
    assert_eq!(attempts[1]["method"], "works");
    assert_eq!(attempts[1]["outcome"], "confirmed");
    assert_eq!(attempts.len(), 2);
    stack.stop().await;
}

async fn all_fail_and_a_person_confirms(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack.set_fault("h1", Resource::Power, Some(Fault::forever(FaultKind::Refuse)));
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    let operation = stack.client.until_settled(&operation).await;
    assert_eq!(operation["status"], "needs_operator");
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], false);
    let stale = json!({ "generation": 0, "reason": "pulled the plug" });
    let answer = stack.client.post("/hosts/h1/confirm-fenced", stale).await;
    assert_eq!((answer.status, answer.code()), (409, "fencing.generation.stale"));
    let word = json!({ "generation": 1, "reason": "pulled the plug" });
    let host = stack
        .client
        .post("/hosts/h1/confirm-fenced", word.clone())
        .await
        .ok(200);
    assert_eq!(host["fencing_state"], "FENCED");
    assert_eq!(host["proofs"][0]["kind"], "operator");
    assert_eq!(host["proofs"][0]["source"], "a-admin");
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], true);
    assert_eq!(
        stack.client.until_settled(&operation).await["status"],
        "succeeded"
    );
    stack.client.post("/hosts/h1/confirm-fenced", word).await.ok(200);
    stack.stop().await;
}

/// Fences a host whose power device has this fault, and waits until the operation is settled.
async fn fence_with_fault(ground: Ground, kind: FaultKind) -> (Stack, Value) {
    let stack = Stack::start_with_short_attempts(ground).await;
    stack.plan(power_plan()).await;
    stack.set_fault("h1", Resource::Power, Some(Fault::forever(kind)));
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    let operation = stack.client.until_settled(&operation).await;
    (stack, operation)
}

async fn a_lying_bmc_never_opens_the_evacuate_gate(ground: Ground) {
    let (stack, operation) = fence_with_fault(ground, FaultKind::Lie).await;
    assert_eq!(operation["status"], "needs_operator", "{operation}");
    assert_eq!(
        operation["stages"][0]["tasks"][0]["attempts"][0]["outcome"],
        "unknown"
    );
    assert!(stack.simulators.may_write("h1"));
    stack.judge("h1").await;
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    stack.stop().await;
}

async fn a_silent_bmc_never_opens_the_evacuate_gate(ground: Ground) {
    let (stack, operation) = fence_with_fault(ground, FaultKind::Silent).await;
    assert_eq!(operation["status"], "needs_operator");
    stack.judge("h1").await;
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], false);
    stack.set_fault("h1", Resource::Power, None);
    stack.client.retry(&operation, "the BMC is back").await;
    stack.client.until_fenced("h1").await;
    assert!(!stack.simulators.may_write("h1"));
    stack.stop().await;
}

async fn a_flapping_bmc_is_not_believed_while_it_reads_on(ground: Ground) {
    let (stack, operation) = fence_with_fault(ground, FaultKind::Flap).await;
    let confirmed = operation["status"] == "succeeded";
    let attempts = operation["stages"][0]["tasks"][0]["attempts"]
        .as_array()
        .unwrap()
        .clone();
    let is_proven = attempts
        .iter()
        .any(|a| a["outcome"] == "confirmed" && a["observation"]["state"] == "off");
    assert_eq!(confirmed, is_proven, "{operation}");
    stack.stop().await;
}

async fn five_equal_requests_are_one_operation(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack.set_fault(
        "h1",
        Resource::Power,
        Some(Fault::new(FaultKind::Slow, None, Some(3_000)).unwrap()),
    );
    stack.hang("h1").await;
    let requests = (0..5).map(|_| {
        let client = stack.client.clone();
        tokio::spawn(async move {
            client
                .post("/hosts/h1/fence", json!({ "reason": "test" }))
                .await
                .ok(202)
        })
    });
    let mut ids = Vec::new();
    for request in requests.collect::<Vec<_>>() {
        ids.push(request.await.unwrap()["id"].as_str().unwrap().to_owned());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
    stack.client.until_fenced("h1").await;
    let operations = stack.client.get("/operations?host=h1").await.ok(200);
    assert_eq!(operations["operations"].as_array().unwrap().len(), 1);
    stack.stop().await;
}

async fn a_host_that_is_seen_up_is_not_fenced(ground: Ground) {
    let stack = Stack::start(ground).await;
    stack.plan(power_plan()).await;
    stack.client.seen("h1", "UP").await.ok(200);
    let answer = stack
        .client
        .post("/hosts/h1/fence", json!({ "reason": "test" }))
        .await;
    assert_eq!((answer.status, answer.code()), (409, "fencing.host.up"));
    let word = json!({ "generation": 0, "reason": "I am sure" });
    let answer = stack.client.post("/hosts/h1/confirm-fenced", word).await;
    assert_eq!((answer.status, answer.code()), (409, "fencing.host.up"));
    let operator = stack.as_role(ringfence_api::Role::Operator);
    let word = json!({ "generation": 0, "reason": "I am sure", "override_up": true });
    assert_eq!(
        operator
            .post("/hosts/h1/confirm-fenced", word.clone())
            .await
            .status,
        403
    );
    let host = stack.client.post("/hosts/h1/confirm-fenced", word).await.ok(200);
    assert_eq!(host["fencing_state"], "FENCED");
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], false);
    stack.stop().await;
}

async fn two_power_supplies_go_off_before_either_comes_on(ground: Ground) {
    let site = Site::new(ground).await;
    let stack = Stack::start_with(
        site,
        StackOptions {
            supplies: 2,
            ..StackOptions::default()
        },
    )
    .await;
    stack.method_on("pdu-a", Resource::Power, "${host.name}-a").await;
    stack.method_on("pdu-b", Resource::Power, "${host.name}-b").await;
    let levels = json!([{ "level": 1, "methods": ["pdu-a", "pdu-b"] }]);
    let stages = json!([
        { "tasks": [{ "kind": "power.off", "levels": levels }] },
        { "tasks": [{ "kind": "power.on" }] },
    ]);
    stack
        .client
        .post("/plans", json!({ "name": "reboot", "stages": stages }))
        .await
        .ok(201);
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    let operation = stack.client.until_settled(&operation).await;
    assert_eq!(operation["status"], "succeeded", "{operation}");
    let ended = |task: &Value| {
        let attempts = task["attempts"].as_array().unwrap();
        assert_eq!(attempts.len(), 2);
        attempts
            .iter()
            .map(|a| a["ended_at"].as_str().unwrap().to_owned())
            .max()
            .unwrap()
    };
    let off = ended(&operation["stages"][0]["tasks"][0]);
    let on = &operation["stages"][1]["tasks"][0];
    ended(on);
    assert!(
        on["attempts"]
            .as_array()
            .unwrap()
            .iter()
            .all(|a| a["started_at"].as_str().unwrap() >= off.as_str())
    );
    stack.stop().await;
}
