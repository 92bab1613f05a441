//! Checks of devices, outside any operation.

use std::collections::BTreeMap;

use ringfence_bus::{CheckRequest, DeviceReply, DeviceRequest, ValidateRequest};
use ringfence_core::{ObservedState, Problem, Resource, SecretReference};

use crate::engine::{Engine, granted, method_of, task};
use crate::runtime::until;
use crate::scripted::{Does, Scripted, observation};

fn check(budget_ms: u64) -> CheckRequest {
    CheckRequest {
        method: method_of(&mut task(1, "a")).clone(),
        budget_ms,
    }
}

#[tokio::test]
async fn a_check_reads_the_device_and_changes_nothing() {
    let engine = Engine::start(|_| Some(granted(5000))).await;
    let driver = Scripted::new(Does::Succeeds(std::time::Duration::ZERO));
    let worker = engine.worker(driver.clone(), 1).await;
    match engine.ask(&DeviceRequest::Check(check(5000))).await {
        DeviceReply::Checked {
            observation: seen,
            worker,
            ..
        } => {
            assert_eq!(seen, observation(ObservedState::On, "read with no password"));
            assert_eq!(worker, "w1");
        }
        other => panic!("{other:?}"),
    }
    assert!(driver.acts().is_empty() && engine.claims().is_empty());
    assert_eq!(worker.metrics().questions_answered, 1);
}

#[tokio::test]
async fn a_check_of_a_silent_device_fails_in_time() {
    let engine = Engine::start(|_| None).await;
    let _worker = engine.worker(Scripted::new(Does::Hangs), 1).await;
    match engine.ask(&DeviceRequest::Check(check(300))).await {
        DeviceReply::Failed { detail, .. } => assert!(detail.contains("did not answer in time"), "{detail}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_the_check_of_a_silent_device() {
    let engine = Engine::start(|_| None).await;
    let driver = Scripted::new(Does::Hangs);
    let worker = engine.worker(driver.clone(), 1).await;
    let request = DeviceRequest::Check(check(10_000));
    let stopping = async {
        until(|| driver.at_work() == 1).await;
        worker.shutdown(std::time::Duration::from_millis(200)).await;
        assert_eq!(driver.at_work(), 0);
    };
    tokio::select! {
        reply = engine.ask(&request) => panic!("{reply:?}"),
        () = stopping => {}
    }
}

#[tokio::test]
async fn a_check_with_a_missing_secret_names_the_reference() {
    let engine = Engine::start(|_| None).await;
    let _worker = engine.worker(Scripted::new(Does::Hangs), 1).await;
    let mut request = check(1000);
    let reference = SecretReference::Env("RINGFENCE_TEST_NO_SUCH_SECRET".to_owned());
    request.method.secrets = BTreeMap::from([("password".to_owned(), reference)]);
    match engine.ask(&DeviceRequest::Check(request)).await {
        DeviceReply::Failed { detail, .. } => {
            assert!(detail.contains("env:RINGFENCE_TEST_NO_SUCH_SECRET"), "{detail}")
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn parameters_are_validated_by_the_driver_and_a_missing_driver_is_named() {
    let engine = Engine::start(|_| None).await;
    let _worker = engine.worker(Scripted::new(Does::Hangs), 1).await;
    let request = |driver: &str| {
        DeviceRequest::Validate(ValidateRequest {
            driver: driver.to_owned(),
            resource: Resource::Power,
            parameters: BTreeMap::new(),
            secrets: BTreeMap::new(),
        })
    };
    let problems = vec![Problem::new("parameters.x", "is wrong")];
    assert_eq!(
        engine.ask(&request("simulated")).await,
        DeviceReply::Validated { problems }
    );
    let problems = vec![Problem::new("driver", "is ipmi, which worker w1 does not have")];
    assert_eq!(
        engine.ask(&request("ipmi")).await,
        DeviceReply::Validated { problems }
    );
}
