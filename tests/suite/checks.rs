//! Devices are asked for their state at intervals, so that a device that does not answer is known before a fence needs it.

use std::time::Duration;

use ringfence_core::Resource;
use ringfence_simulators::{Fault, FaultKind};
use ringfence_tests::{Ground, Numbers, Site, Stack, StackOptions, eventually, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(
    a_device_that_stops_answering_is_found_by_its_checks,
    a_zone_without_a_worker_is_shown_at_its_methods,
    a_host_with_a_live_operation_is_not_checked,
    checks_pause_while_many_hosts_are_being_fenced,
    the_checked_devices_follow_the_configuration,
    fences_of_two_hosts_with_one_device_are_refused_until_one_host_is_corrected,
    fences_by_two_plans_with_one_device_are_refused,
    a_method_with_a_missing_parameter_fails_its_check,
    engines_share_the_checks,
);

const EVERY: Duration = Duration::from_secs(2);

async fn stack(ground: Ground, options: StackOptions) -> Stack {
    let options = StackOptions {
        checks_every: Some(EVERY),
        attempt_timeout_s: 2,
        ..options
    };
    Stack::start_with(Site::new(ground).await, options).await
}

fn silent() -> Option<Fault> {
    Some(Fault::forever(FaultKind::Silent))
}

async fn until_checks(stack: &Stack, method: &str, is: impl Fn(&Value) -> bool) -> Value {
    let path = format!("/methods/{method}");
    stack.client.until(&path, |method| is(&method["checks"])).await["checks"].clone()
}

async fn checks(stack: &Stack, method: &str) -> Vec<Value> {
    let list = stack
        .client
        .get(&format!("/methods/{method}/checks"))
        .await
        .ok(200);
    list["checks"].as_array().unwrap().clone()
}

async fn a_device_that_stops_answering_is_found_by_its_checks(ground: Ground) {
    let options = StackOptions {
        hosts: 2,
        ..StackOptions::default()
    };
    let stack = stack(ground, options).await;
    stack.plan(power_plan()).await;
    let answered = until_checks(&stack, "power", |checks| checks["answered"] == 2).await;
    assert_eq!(
        (&answered["outcome"], &answered["failing"]),
        (&json!("confirmed"), &json!(0))
    );
    let events = stack.client.get("/events?limit=1000").await.ok(200);
    let audit = stack.client.get("/audit?limit=1000").await.ok(200);
    let hosts = stack.client.get("/hosts").await.ok(200);

    stack.set_fault("h2", Resource::Power, silent());
    let failing = until_checks(&stack, "power", |checks| checks["failing"] == 1).await;
    assert_eq!(failing["outcome"], "unknown", "{failing}");
    assert!(failing["failing_since"].is_string(), "{failing}");
    let by_host = checks(&stack, "power").await;
    let told: Vec<_> = by_host
        .iter()
        .map(|check| {
            (
                check["host"].as_str().unwrap(),
                check["outcome"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(told, [("h1", "confirmed"), ("h2", "unknown")]);
    assert_eq!(
        (&by_host[0]["state"], &by_host[0]["worker"]),
        (&json!("on"), &json!("worker-1"))
    );
    assert!(
        by_host[1]["detail"]
            .as_str()
            .unwrap()
            .contains("did not answer in time"),
        "{by_host:?}"
    );
    let only = stack
        .client
        .get("/methods/power/checks?failing=true")
        .await
        .ok(200);
    assert_eq!(only["checks"].as_array().unwrap().len(), 1);
    let listed = stack.client.get("/methods").await.ok(200);
    let power = listed["methods"]
        .as_array()
        .unwrap()
        .iter()
        .find(|m| m["name"] == "power");
    assert_eq!(power.unwrap()["checks"]["failing"], 1);
    eventually(async || {
        let failing = ["driver=\"simulated\""];
        Numbers::of(&stack.client)
            .await
            .sum("ringfence_method_checks_failing", &failing)
            == 1.0
    })
    .await;

    stack.set_fault("h2", Resource::Power, None);
    until_checks(&stack, "power", |checks| checks["failing"] == 0).await;
    // The checks have changed nothing about the host.
    assert_eq!(stack.client.get("/events?limit=1000").await.ok(200), events);
    assert_eq!(stack.client.get("/audit?limit=1000").await.ok(200), audit);
    assert_eq!(stack.client.get("/hosts").await.ok(200), hosts);
    stack.stop().await;
}

async fn a_zone_without_a_worker_is_shown_at_its_methods(ground: Ground) {
    let stack = stack(ground, StackOptions::default()).await;
    let method =
        json!({ "name": "far", "driver": "simulated", "zone": "moon", "parameters": { "device": "h1" } });
    stack.client.post("/methods", method).await.ok(201);
    let failing = until_checks(&stack, "far", |checks| checks["failing"] == 1).await;
    assert_eq!(failing["outcome"], "worker_missing", "{failing}");
    let detail = checks(&stack, "far").await[0]["detail"].clone();
    assert!(detail.as_str().unwrap().contains("zone \"moon\""), "{detail}");
    stack.stop().await;
}

async fn a_host_with_a_live_operation_is_not_checked(ground: Ground) {
    let options = StackOptions {
        hosts: 2,
        ..StackOptions::default()
    };
    let stack = stack(ground, options).await;
    stack.plan(power_plan()).await;
    until_checks(&stack, "power", |checks| checks["answered"] == 2).await;
    stack.set_fault("h1", Resource::Power, silent());
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    let settled = stack.client.until_settled(&operation).await;
    assert_eq!(settled["status"], "needs_operator", "{settled}");
    let at = |checks: &[Value], host: usize| checks[host]["checked_at"].as_str().unwrap().to_owned();
    let before = checks(&stack, "power").await;
    // The device of the other host is asked twice, and this host's device is not asked.
    for _ in 0..2 {
        let last = at(&checks(&stack, "power").await, 1);
        eventually(async || at(&checks(&stack, "power").await, 1) != last).await;
    }
    let after = checks(&stack, "power").await;
    assert_eq!(at(&before, 0), at(&after, 0));
    // The silence during the fence did not count as a failed check.
    stack.client.cancel(&operation, "test").await;
    eventually(async || at(&checks(&stack, "power").await, 0) != at(&before, 0)).await;
    stack.stop().await;
}

async fn checks_pause_while_many_hosts_are_being_fenced(ground: Ground) {
    const STORM: usize = 64;
    let site = Site::new(ground).await;
    let options = StackOptions {
        checks_every: Some(EVERY),
        hosts: STORM + 1,
        ..StackOptions::default()
    };
    let stack = Stack::start_with(site, options).await;
    stack.plan(power_plan()).await;
    until_checks(&stack, "power", |checks| checks["answered"] == STORM + 1).await;
    for number in 1..=STORM {
        let name = format!("h{number}");
        stack.set_fault(&name, Resource::Power, silent());
        stack.client.fence(&name).await;
    }
    // The healthy host sorts last.
    let well = format!("h{}", STORM + 1);
    let last = async || {
        let path = "/methods/power/checks?limit=1000";
        let list = stack.client.get(path).await.ok(200);
        let mut checks = list["checks"].as_array().unwrap().clone();
        checks.retain(|check| check["host"] == *well);
        checks[0]["checked_at"].clone()
    };
    // A check that had begun before the storm may still end.
    tokio::time::sleep(EVERY).await;
    let before = last().await;
    tokio::time::sleep(3 * EVERY).await;
    let running = stack
        .client
        .get("/operations?status=running&limit=1000")
        .await
        .ok(200);
    assert_eq!(running["operations"].as_array().unwrap().len(), STORM);
    assert_eq!(last().await, before);
    // The storm ends, and checks go on.
    for operation in running["operations"].as_array().unwrap() {
        stack.client.cancel(operation, "test").await;
    }
    eventually(async || last().await != before).await;
    stack.stop().await;
}

async fn the_checked_devices_follow_the_configuration(ground: Ground) {
    let stack = stack(ground, StackOptions::default()).await;
    stack.plan(power_plan()).await;
    until_checks(&stack, "power", |checks| checks["answered"] == 1).await;
    stack.client.post("/hosts", json!({ "name": "h9" })).await.ok(201);
    // No simulated device has this name.
    let failing = until_checks(&stack, "power", |checks| checks["failing"] == 1).await;
    assert_eq!(
        (&failing["targets"], &failing["outcome"]),
        (&json!(2), &json!("refused")),
        "{failing}"
    );
    stack.client.delete("/hosts/h9").await.ok(204);
    until_checks(&stack, "power", |checks| {
        checks["targets"] == 1 && checks["failing"] == 0
    })
    .await;
    // A device that stands for every host proves nothing of any host, and is not asked.
    let mut method = stack.client.get("/methods/power").await.ok(200);
    let kept = ["name", "resource", "driver", "parameters", "times"];
    method
        .as_object_mut()
        .unwrap()
        .retain(|key, _| kept.contains(&key.as_str()));
    method["parameters"] = json!({ "device": "h1" });
    stack.client.put("/methods/power", method).await.ok(200);
    eventually(async || {
        let checks = checks(&stack, "power").await;
        checks.len() == 1
            && (&checks[0]["host"], &checks[0]["outcome"]) == (&json!("h1"), &json!("refused"))
            && checks[0]["detail"]
                .as_str()
                .is_some_and(|detail| detail.contains("would count for each"))
    })
    .await;
    // Without a plan the device is asked without a host: no parameter of the method names one.
    stack.client.delete("/plans/default").await.ok(204);
    eventually(async || {
        let checks = checks(&stack, "power").await;
        checks.len() == 1 && checks[0]["host"] == Value::Null && checks[0]["outcome"] == "confirmed"
    })
    .await;
    stack.stop().await;
}

/// The message with which a fence of the host is refused.
async fn refused(stack: &Stack, host: &str) -> String {
    let answer = stack
        .client
        .post(&format!("/hosts/{host}/fence"), json!({ "reason": "test" }))
        .await;
    assert_eq!(
        (answer.status, answer.code()),
        (409, "fencing.plan.broken"),
        "{}",
        answer.body
    );
    answer.body["errors"][0]["detail"].as_str().unwrap().to_owned()
}

/// Waits until the device of the method is found to be that of both hosts.
async fn until_shared(stack: &Stack, method: &str) -> Vec<String> {
    let failing = |checks: &Value| checks["failing"] == 2 && checks["outcome"] == "refused";
    until_checks(stack, method, failing).await;
    let checks = checks(stack, method).await;
    checks
        .iter()
        .map(|check| check["detail"].as_str().unwrap().to_owned())
        .collect()
}

async fn fences_of_two_hosts_with_one_device_are_refused_until_one_host_is_corrected(ground: Ground) {
    let options = StackOptions {
        hosts: 3,
        ..StackOptions::default()
    };
    let stack = stack(ground, options).await;
    stack.plan(power_plan()).await;
    until_checks(&stack, "power", |checks| checks["answered"] == 3).await;
    // A mistake in the configuration: h2 names the power supply of h1.
    let slip = json!({ "parameters": { "power": { "device": "h1" } } });
    stack.client.patch("/hosts/h2", slip).await.ok(200);
    let said = until_shared(&stack, "power").await;
    assert!(
        said.iter().any(|detail| detail.contains("for host h1"))
            && said.iter().any(|detail| detail.contains("for host h2")),
        "{said:?}"
    );
    stack.hang("h2").await;
    let detail = refused(&stack, "h2").await;
    assert!(
        detail.contains("method power")
            && detail.contains("for host h1")
            && detail.contains("would count for the other"),
        "{detail}"
    );
    assert!(refused(&stack, "h1").await.contains("for host h2"));
    // Other hosts can still be fenced.
    stack.hang("h3").await;
    let operation = stack.client.fence("h3").await;
    stack.client.until_settled(&operation).await;
    assert_eq!(stack.client.host("h3").await["fencing_state"], "FENCED");
    // A corrected host is fenced at once, although the recorded checks are older than the correction.
    stack
        .client
        .patch("/hosts/h2", json!({ "parameters": {} }))
        .await
        .ok(200);
    let operation = stack.client.fence("h2").await;
    stack.client.until_settled(&operation).await;
    assert_eq!(stack.client.host("h2").await["fencing_state"], "FENCED");
    stack.judge("h2").await;
    until_checks(&stack, "power", |checks| checks["failing"] == 0).await;
    stack.stop().await;
}

async fn fences_by_two_plans_with_one_device_are_refused(ground: Ground) {
    let options = StackOptions {
        hosts: 2,
        ..StackOptions::default()
    };
    let stack = stack(ground, options).await;
    stack.method_on("psu", Resource::Power, "h1").await;
    let levels = json!([{ "level": 1, "methods": ["psu"] }]);
    let stages = json!([{ "tasks": [{ "kind": "power.off", "levels": levels }] }]);
    for host in ["h1", "h2"] {
        let scope = json!({ "kind": "host", "value": host });
        let plan = json!({ "name": host, "scope": scope, "stages": stages });
        stack.client.post("/plans", plan).await.ok(201);
    }
    until_shared(&stack, "psu").await;
    stack.hang("h2").await;
    assert!(refused(&stack, "h2").await.contains("for host h1"));
    // Delete the plan that named the device by mistake.
    stack.client.delete("/plans/h2").await.ok(204);
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_settled(&operation).await;
    assert_eq!(stack.client.host("h1").await["fencing_state"], "FENCED");
    stack.judge("h1").await;
    stack.stop().await;
}

async fn a_method_with_a_missing_parameter_fails_its_check(ground: Ground) {
    let stack = stack(ground, StackOptions::default()).await;
    stack.plan(power_plan()).await;
    let wrong = json!({ "parameters": { "power": { "speed": "9" } } });
    stack.client.patch("/hosts/h1", wrong).await.ok(200);
    until_checks(&stack, "power", |checks| checks["outcome"] == "refused").await;
    let detail = checks(&stack, "power").await[0]["detail"].clone();
    assert!(detail.as_str().unwrap().contains("parameters.speed"), "{detail}");
    stack.stop().await;
}

async fn engines_share_the_checks(ground: Ground) {
    let options = StackOptions {
        engines: 3,
        hosts: 5,
        ..StackOptions::default()
    };
    let stack = stack(ground, options).await;
    stack.plan(power_plan()).await;
    until_checks(&stack, "power", |checks| checks["answered"] == 5).await;
    assert_eq!(checks(&stack, "power").await.len(), 5);
    let worker = stack.workers[0].metrics();
    let asked = worker.questions_answered;
    // 15 questions in each round of 2 s: three engines that did not share the checks would ask three times as often.
    let last = checks(&stack, "power").await[0]["checked_at"].clone();
    eventually(async || checks(&stack, "power").await[0]["checked_at"] != last).await;
    let rounds = (stack.workers[0].metrics().questions_answered - asked) as usize;
    assert!(rounds <= 3 * 15, "{rounds} questions in one round");
    stack.stop().await;
}
