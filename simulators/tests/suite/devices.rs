//! Devices that obey, and devices with faults.

use std::time::Duration;

use reqwest::StatusCode;
use ringfence_core::FailureState;
use ringfence_simulators::{Simulators, World};
use serde_json::json;

use crate::Lab;

const POWER: &str = "/devices/a/power";
const FAULT: &str = "/devices/a/power/fault";

#[tokio::test]
async fn a_device_obeys_and_shows_its_state() {
    let lab = Lab::start(None);
    assert_eq!(lab.get(POWER).await, (StatusCode::OK, json!({"state": "on"})));

    assert_eq!(
        lab.put(POWER, json!({"state": "off"})).await,
        StatusCode::NO_CONTENT
    );

    assert_eq!(lab.get(POWER).await, (StatusCode::OK, json!({"state": "off"})));
    assert!(!lab.handle.may_write("a"));
    assert_eq!(lab.handle.observe()[0].failure_state, FailureState::Unreachable);

    lab.put("/devices/a/storage", json!({"state": "fenced"})).await;
    assert_eq!(lab.get("/devices/a/storage").await.1, json!({"state": "fenced"}));
}

#[tokio::test]
async fn a_lying_device_answers_success_and_leaves_the_host_running() {
    let lab = Lab::start(None);
    lab.put(FAULT, json!({"fault": "lie", "times": 1})).await;

    assert_eq!(
        lab.put(POWER, json!({"state": "off"})).await,
        StatusCode::NO_CONTENT
    );
    assert_eq!(lab.get(POWER).await.1, json!({"state": "on"}));
    assert!(lab.handle.may_write("a"));

    lab.put(POWER, json!({"state": "off"})).await;
    assert!(!lab.handle.may_write("a"));
}

#[tokio::test]
async fn a_silent_device_does_nothing_and_does_not_answer() {
    let lab = Lab::start(None);
    lab.put(FAULT, json!({"fault": "silent", "times": 1})).await;

    assert!(!lab.is_answered(POWER, json!({"state": "off"})).await);

    assert_eq!(lab.get(POWER).await.1, json!({"state": "on"}));
}

#[tokio::test]
async fn a_slow_device_obeys_although_its_client_has_gone() {
    let lab = Lab::start(None);
    lab.put(FAULT, json!({"fault": "slow", "times": 1, "delay_ms": 3000}))
        .await;

    assert!(!lab.is_answered(POWER, json!({"state": "off"})).await);
    assert!(lab.handle.may_write("a"));

    while lab.handle.may_write("a") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(lab.get(POWER).await.1, json!({"state": "off"}));
}

#[tokio::test]
async fn a_flapping_device_switches_the_power_on_again_by_itself() {
    let lab = Lab::start(None);
    lab.put(FAULT, json!({"fault": "flap", "times": 1, "delay_ms": 3000}))
        .await;

    lab.put(POWER, json!({"state": "off"})).await;
    assert_eq!(lab.get(POWER).await.1, json!({"state": "off"}));

    while !lab.handle.may_write("a") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(lab.get(POWER).await.1, json!({"state": "on"}));
    assert_eq!(lab.handle.observe()[0].boot_id.as_deref(), Some("a-boot-2"));
}

#[tokio::test]
async fn a_refusing_device_answers_with_an_error() {
    let lab = Lab::start(None);
    lab.put(FAULT, json!({"fault": "refuse"})).await;
    assert_eq!(
        lab.put(POWER, json!({"state": "off"})).await,
        StatusCode::CONFLICT
    );
    assert_eq!(lab.get(POWER).await.0, StatusCode::INTERNAL_SERVER_ERROR);

    lab.put(FAULT, json!({"fault": "none"})).await;
    assert_eq!(lab.get(POWER).await.1, json!({"state": "on"}));
}

#[tokio::test]
async fn the_real_state_of_every_host_can_be_read() {
    let lab = Lab::start(None);
    assert_eq!(
        lab.put("/hosts/a", json!({"condition": "hung"})).await,
        StatusCode::NO_CONTENT
    );

    let host = lab.get("/hosts").await.1["hosts"][0].clone();
    assert_eq!(lab.handle.observer().observe(), lab.handle.observe());

    assert_eq!(host["name"], "a");
    assert_eq!(host["condition"], "hung");
    assert_eq!(host["failure_state"], "UNREACHABLE");
    assert_eq!(host["may_write"], true);
    assert_eq!(host["devices"]["a/power"]["state"], "on");
}

#[tokio::test]
async fn invalid_requests_are_refused_with_a_reason() {
    let lab = Lab::start(None);
    let unknown = lab.get("/devices/b/power").await;
    assert_eq!(unknown.0, StatusCode::NOT_FOUND);
    assert_eq!(unknown.1["error"], "there is no device \"b\" for \"power\"");
    assert_eq!(lab.get("/devices/a/workloads").await.0, StatusCode::NOT_FOUND);
    assert_eq!(
        lab.put("/hosts/b", json!({"condition": "hung"})).await,
        StatusCode::NOT_FOUND
    );

    for (path, body) in [
        (POWER, json!({"state": "fenced"})),
        (POWER, json!({"state": "sideways"})),
        (POWER, json!({"state": "off", "force": true})),
        (FAULT, json!({"fault": "lie", "times": 0})),
        (FAULT, json!({"fault": "slow", "delay_ms": 600_001})),
        (FAULT, json!({"fault": "explode"})),
        ("/hosts/a", json!({"condition": "asleep"})),
        ("/hosts/a", json!("x".repeat(5000))),
    ] {
        assert_eq!(
            lab.put(path, body.clone()).await,
            StatusCode::BAD_REQUEST,
            "{path} {body}"
        );
    }
    assert!(lab.handle.may_write("a"));
}

#[tokio::test]
async fn the_simulators_stay_on_loopback() {
    let started = Simulators::start(([0, 0, 0, 0], 0).into(), None, World::demo());
    let Err(error) = started else {
        panic!("the simulators listen on every address");
    };
    assert_eq!(
        error.to_string(),
        "the simulators listen on loopback only, not on 0.0.0.0:0"
    );
}
