//! Fencing with real devices: fence agents, an IPMI BMC, a Redfish service.

use std::path::{Path, PathBuf};

use ringfence_lab::{IpmiBmc, IpmiFault, LabError, REDFISH_PASSWORD, REDFISH_USER, Redfish};
use ringfence_tests::{Ground, Stack, assert_secrets_are_nowhere, post_until_taken, power_plan};
use serde_json::{Value, json};

crate::on_both_grounds!(
    a_fence_agent_switches_a_host_off,
    a_fence_agent_that_runs_out_of_time_leaves_the_fence_to_the_next_level,
    an_ipmi_bmc_switches_a_host_off,
    a_lying_ipmi_bmc_never_opens_the_evacuate_gate,
    a_silent_ipmi_bmc_fences_once_it_answers_again,
    a_reboot_fences_at_the_off_and_switches_the_power_on_again,
    a_redfish_service_fences_its_pinned_system_and_no_other,
    a_redfish_service_that_refuses_the_password_leaves_the_fence_to_the_next_level,
);

/// Starts or ends a real peer on a thread that may block.
async fn peer<T: Send + 'static>(start: impl FnOnce() -> Result<T, LabError> + Send + 'static) -> T {
    tokio::task::spawn_blocking(start).await.unwrap().unwrap()
}

async fn dropped<T: Send + 'static>(peer: T) {
    tokio::task::spawn_blocking(move || drop(peer)).await.unwrap();
}

/// From `RINGFENCE_TEST_SUSHY`, or where an earlier test run has installed it.
fn sushy_emulator() -> PathBuf {
    std::env::var_os("RINGFENCE_TEST_SUSHY").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/lab/python/venv/bin/sushy-emulator"),
        PathBuf::from,
    )
}

/// A reference to a file that holds the secret.
fn secret_file(stack: &Stack, name: &str, secret: &str) -> String {
    let path = stack.site.dir.path().join(name);
    std::fs::write(&path, format!("{secret}\n")).unwrap();
    format!("file:{}", path.display())
}

/// Adds the method with a deadline in seconds for its only attempt. Waits until a worker can check it.
async fn add_method(stack: &Stack, mut method: Value, attempt_timeout_s: u64) {
    method["times"] = json!({ "attempt_timeout_s": attempt_timeout_s, "timeout_s": attempt_timeout_s, "retries": 0, "pause_ms": 0 });
    post_until_taken(&stack.client, "/methods", method).await;
}

async fn add_plan(stack: &Stack, stages: Value) {
    stack
        .client
        .post(
            "/plans",
            json!({ "name": "own", "scope": { "kind": "host", "value": "h1" }, "stages": stages }),
        )
        .await
        .ok(201);
}

fn two_levels(first: &str, second: &str) -> Value {
    let levels = json!([{ "level": 1, "methods": [first] }, { "level": 2, "methods": [second] }]);
    json!([{ "tasks": [{ "kind": "power.off", "levels": levels }] }])
}

/// The state that the method's device reads for `h1` now.
async fn checked(stack: &Stack, method: &str) -> String {
    let check = stack
        .client
        .post(&format!("/methods/{method}/check"), json!({ "host": "h1" }))
        .await
        .ok(200);
    check["observation"]["state"].as_str().unwrap().to_owned()
}

/// Makes the host hang, asks for a fence, and returns the operation at its end.
async fn fence(stack: &Stack) -> Value {
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_settled(&operation).await
}

fn attempts(operation: &Value) -> &Vec<Value> {
    operation["stages"][0]["tasks"][0]["attempts"].as_array().unwrap()
}

/// Adds a method with `fence_dummy`, and returns the file in which the agent keeps the host's state.
async fn add_dummy(stack: &Stack, name: &str) -> PathBuf {
    let dir = stack.site.dir.path();
    let parameters =
        json!({ "agent": "fence_dummy", "status_file": format!("{}/${{host.name}}", dir.display()) });
    let file = dir.join("h1");
    std::fs::write(&file, "on").unwrap();
    add_method(
        stack,
        json!({ "name": name, "driver": "fence-agent", "parameters": parameters }),
        20,
    )
    .await;
    file
}

async fn a_fence_agent_switches_a_host_off(ground: Ground) {
    let stack = Stack::start(ground).await;
    let file = add_dummy(&stack, "power").await;
    add_plan(&stack, power_plan()).await;
    assert_eq!(checked(&stack, "power").await, "on");
    let operation = fence(&stack).await;
    assert_eq!(operation["status"], "succeeded", "{operation}");
    assert_eq!(attempts(&operation)[0]["observation"]["detail"], "Status: OFF");
    assert_eq!(stack.client.host("h1").await["fencing_state"], "FENCED");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "off");
    assert_eq!(checked(&stack, "power").await, "off");
    stack.stop().await;
}

async fn a_fence_agent_that_runs_out_of_time_leaves_the_fence_to_the_next_level(ground: Ground) {
    let stack = Stack::start(ground).await;
    let file = add_dummy(&stack, "works").await;
    let parameters = json!({ "agent": "fence_dummy", "type": "fail" });
    add_method(
        &stack,
        json!({ "name": "fails", "driver": "fence-agent", "parameters": parameters }),
        3,
    )
    .await;
    add_plan(&stack, two_levels("fails", "works")).await;
    let operation = fence(&stack).await;
    assert_eq!(operation["status"], "succeeded", "{operation}");
    let told: Vec<_> = attempts(&operation)
        .iter()
        .map(|a| (a["method"].as_str(), a["outcome"].as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (Some("fails"), Some("unknown")),
            (Some("works"), Some("confirmed"))
        ]
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), "off");
    stack.stop().await;
}

/// A stack whose method `power` is this BMC.
async fn with_ipmi(ground: Ground, attempt_timeout_s: u64) -> (Stack, IpmiBmc) {
    let stack = Stack::start(ground).await;
    let bmc = peer(IpmiBmc::start).await;
    let password = secret_file(&stack, "bmc-password", IpmiBmc::PASSWORD);
    let parameters =
        json!({ "address": "127.0.0.1", "port": bmc.port(), "username": IpmiBmc::USER, "cipher": 3 });
    let method = json!({ "name": "power", "driver": "ipmi", "parameters": parameters, "secrets": { "password": password } });
    add_method(&stack, method, attempt_timeout_s).await;
    (stack, bmc)
}

async fn an_ipmi_bmc_switches_a_host_off(ground: Ground) {
    let (stack, bmc) = with_ipmi(ground, 20).await;
    add_plan(&stack, power_plan()).await;
    assert_eq!(checked(&stack, "power").await, "on");
    assert!(bmc.is_powered().unwrap());
    let operation = fence(&stack).await;
    assert_eq!(operation["status"], "succeeded", "{operation}");
    assert_eq!(
        attempts(&operation)[0]["observation"]["detail"],
        "Chassis Power is off"
    );
    assert!(!bmc.is_powered().unwrap());
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], true);
    assert_eq!(checked(&stack, "power").await, "off");
    assert_secrets_are_nowhere(&stack, &[IpmiBmc::PASSWORD]).await;
    dropped(bmc).await;
    stack.stop().await;
}

async fn a_lying_ipmi_bmc_never_opens_the_evacuate_gate(ground: Ground) {
    let (stack, bmc) = with_ipmi(ground, 5).await;
    add_plan(&stack, power_plan()).await;
    bmc.set_fault(IpmiFault::Lies).unwrap();
    let operation = fence(&stack).await;
    assert_eq!(operation["status"], "needs_operator", "{operation}");
    assert_eq!(attempts(&operation)[0]["outcome"], "unknown");
    // The BMC was told to switch off and said that it had done so, and the power is on.
    assert!(bmc.chassis_log().contains("set power 0"), "{}", bmc.chassis_log());
    assert!(bmc.is_powered().unwrap());
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], false);
    assert_eq!(stack.client.host("h1").await["fencing_state"], "UNFENCED");
    assert_secrets_are_nowhere(&stack, &[IpmiBmc::PASSWORD]).await;
    dropped(bmc).await;
    stack.stop().await;
}

async fn a_silent_ipmi_bmc_fences_once_it_answers_again(ground: Ground) {
    let (stack, bmc) = with_ipmi(ground, 5).await;
    add_plan(&stack, power_plan()).await;
    bmc.silence().unwrap();
    let check = stack.client.post("/methods/power/check", json!({})).await;
    assert_eq!(
        (check.status, check.code()),
        (502, "fencing.device.failed"),
        "{}",
        check.body
    );
    let operation = fence(&stack).await;
    assert_eq!(operation["status"], "needs_operator", "{operation}");
    assert_eq!(attempts(&operation)[0]["outcome"], "unknown");
    assert!(bmc.is_powered().unwrap());
    assert_eq!(stack.client.gates("h1").await["evacuate"]["allowed"], false);
    bmc.wake().unwrap();
    stack.client.retry(&operation, "the controller is back").await;
    stack.client.until_fenced("h1").await;
    assert!(!bmc.is_powered().unwrap());
    assert_secrets_are_nowhere(&stack, &[IpmiBmc::PASSWORD]).await;
    dropped(bmc).await;
    stack.stop().await;
}

async fn a_reboot_fences_at_the_off_and_switches_the_power_on_again(ground: Ground) {
    let (stack, bmc) = with_ipmi(ground, 20).await;
    let levels = json!([{ "level": 1, "methods": ["power"] }]);
    let stages = json!([
        { "tasks": [{ "kind": "power.off", "levels": levels }] },
        { "tasks": [{ "kind": "power.on" }], "delay_s": 1 },
    ]);
    add_plan(&stack, stages).await;
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_fenced("h1").await;
    let path = format!("/operations/{}", operation["id"].as_str().unwrap());
    let at_the_off = stack.client.get(&path).await.ok(200);
    assert_eq!(at_the_off["status"], "running", "{at_the_off}");
    let operation = stack.client.until_settled(&operation).await;
    assert_eq!(operation["status"], "succeeded", "{operation}");
    assert!(bmc.is_powered().unwrap());
    let log = bmc.chassis_log();
    let (off, on) = (log.find("set power 0"), log.find("set power 1"));
    assert!(off.is_some() && off < on, "{log}");
    // The host runs again, and stays FENCED until it is taken back.
    assert_eq!(stack.client.host("h1").await["fencing_state"], "FENCED");
    dropped(bmc).await;
    stack.stop().await;
}

async fn add_redfish(stack: &Stack, service: &Redfish, name: &str, system: &str, password: &str) {
    let password = secret_file(stack, &format!("{name}-password"), password);
    let parameters = json!({
        "address": service.url(), "system": system, "username": REDFISH_USER, "ca_file": service.certificate(),
    });
    let method = json!({ "name": name, "driver": "redfish", "parameters": parameters, "secrets": { "password": password } });
    add_method(stack, method, 40).await;
}

async fn a_redfish_service_fences_its_pinned_system_and_no_other(ground: Ground) {
    let stack = Stack::start(ground).await;
    let service = peer(|| Redfish::start(&sushy_emulator())).await;
    add_redfish(&stack, &service, "other", Redfish::SYSTEMS[0], REDFISH_PASSWORD).await;
    add_redfish(&stack, &service, "power", Redfish::SYSTEMS[1], REDFISH_PASSWORD).await;
    add_plan(&stack, power_plan()).await;
    assert_eq!(checked(&stack, "power").await, "on");
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_fenced("h1").await;
    // The service answers ForceOff at once and switches off seconds later.
    assert_eq!(checked(&stack, "power").await, "off");
    assert_eq!(checked(&stack, "other").await, "on");
    let operation = stack.client.until_settled(&operation).await;
    assert_eq!(
        attempts(&operation)[0]["observation"]["state"],
        "off",
        "{operation}"
    );
    assert_secrets_are_nowhere(&stack, &[REDFISH_PASSWORD]).await;
    dropped(service).await;
    stack.stop().await;
}

async fn a_redfish_service_that_refuses_the_password_leaves_the_fence_to_the_next_level(ground: Ground) {
    const WRONG: &str = "not-the-passw0rd-7f3a";
    let stack = Stack::start(ground).await;
    let service = peer(|| Redfish::start(&sushy_emulator())).await;
    let file = add_dummy(&stack, "works").await;
    add_redfish(&stack, &service, "refused", Redfish::SYSTEMS[0], WRONG).await;
    add_redfish(&stack, &service, "true", Redfish::SYSTEMS[0], REDFISH_PASSWORD).await;
    add_plan(&stack, two_levels("refused", "works")).await;
    let check = stack.client.post("/methods/refused/check", json!({})).await;
    assert_eq!(
        (check.status, check.code()),
        (502, "fencing.device.failed"),
        "{}",
        check.body
    );
    assert!(!check.body.to_string().contains(WRONG));
    let operation = fence(&stack).await;
    assert_eq!(operation["status"], "succeeded", "{operation}");
    let told: Vec<_> = attempts(&operation)
        .iter()
        .map(|a| (a["method"].as_str(), a["outcome"].as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (Some("refused"), Some("refused")),
            (Some("works"), Some("confirmed"))
        ]
    );
    assert_eq!(std::fs::read_to_string(file).unwrap(), "off");
    // No command reached the system: the login was refused.
    assert_eq!(checked(&stack, "true").await, "on");
    assert_secrets_are_nowhere(&stack, &[WRONG, REDFISH_PASSWORD]).await;
    dropped(service).await;
    stack.stop().await;
}
