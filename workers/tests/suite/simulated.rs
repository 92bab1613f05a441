//! The driver `simulated`.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ringfence_core::{FencingKind, FrozenMethod, ObservedState, Outcome, Resource};
use ringfence_workers::{Driver as _, Report, Simulated};
use serde_json::{Value, json};
use url::Url;

use crate::http::{Answer, Server};
use crate::{assert_confirmed, assert_outcome, clock, method, no_secrets, seconds, seen};

fn device(resource: Resource) -> FrozenMethod {
    method("simulated", resource, &[("device", "rack 1/a")])
}

async fn act(server: &Server, kind: FencingKind) -> Report {
    let driver = Simulated::new(Some(Url::parse(&server.address).unwrap()), clock());
    driver
        .act_and_observe(kind, &device(kind.resource()), &no_secrets(), seconds(2))
        .await
}

async fn obedient(first: &'static str) -> Server {
    let state = Mutex::new(json!({ "state": first }));
    Server::start(move |asked| {
        let mut state = state.lock();
        match asked.method.as_str() {
            "PUT" => {
                *state = asked.body.clone();
                Answer::empty(204)
            }
            _ => Answer::new(200, state.clone()),
        }
    })
    .await
}

#[tokio::test]
async fn a_fencing_task_is_commanded_and_then_read_in_every_state_of_the_device() {
    for (first, kind, last) in [
        ("on", FencingKind::PowerOff, ObservedState::Off),
        ("off", FencingKind::PowerOff, ObservedState::Off),
        ("unfenced", FencingKind::StorageFence, ObservedState::Fenced),
        ("fenced", FencingKind::NetworkFence, ObservedState::Fenced),
    ] {
        let server = obedient(first).await;
        assert_confirmed(&act(&server, kind).await, last);
        assert_eq!(server.lines(), asked(&["PUT", "GET"], kind), "{kind}");
    }
}

#[tokio::test]
async fn a_release_is_read_first_and_not_commanded_if_it_is_done_already() {
    for (first, kind, last, methods) in [
        (
            "off",
            FencingKind::PowerOn,
            ObservedState::On,
            ["GET", "PUT", "GET"].as_slice(),
        ),
        ("on", FencingKind::PowerOn, ObservedState::On, &["GET"]),
        (
            "fenced",
            FencingKind::NetworkUnfence,
            ObservedState::Unfenced,
            &["GET", "PUT", "GET"],
        ),
        (
            "unfenced",
            FencingKind::StorageUnfence,
            ObservedState::Unfenced,
            &["GET"],
        ),
    ] {
        let server = obedient(first).await;
        assert_confirmed(&act(&server, kind).await, last);
        assert_eq!(server.lines(), asked(methods, kind), "{kind} of what is {first}");
    }
}

/// The lines of the requests that are made for a task.
fn asked(methods: &[&str], kind: FencingKind) -> Vec<String> {
    let path = format!("/devices/rack%201%2Fa/{}", kind.resource().as_str());
    methods.iter().map(|method| format!("{method} {path}")).collect()
}

#[tokio::test]
async fn a_device_that_answers_already_off_is_still_read() {
    for status in [400, 409] {
        let server = Server::start(move |asked| match asked.method.as_str() {
            "PUT" => Answer::new(status, json!({ "error": "already off" })),
            _ => Answer::new(200, json!({ "state": "off" })),
        })
        .await;
        assert_confirmed(&act(&server, FencingKind::PowerOff).await, ObservedState::Off);
    }
}

#[tokio::test]
async fn an_observation_has_the_time_from_the_call_to_the_start_of_its_reading() {
    let server = Server::start(|asked| match asked.method.as_str() {
        "PUT" => {
            std::thread::sleep(Duration::from_millis(120));
            Answer::empty(204)
        }
        _ => Answer::new(200, json!({ "state": "off" })),
    })
    .await;
    let begun = Instant::now();
    let report = act(&server, FencingKind::PowerOff).await;
    let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap();
    let after_ms = report.observation.unwrap().after_ms;
    assert!((120..=took_ms).contains(&after_ms), "{after_ms} of {took_ms}");
}

#[tokio::test]
async fn a_device_that_reports_success_and_stays_on_is_unknown() {
    let server = Server::start(|asked| match asked.method.as_str() {
        "PUT" => Answer::empty(204),
        _ => Answer::new(200, json!({ "state": "on" })),
    })
    .await;
    let report = act(&server, FencingKind::PowerOff).await;
    assert_outcome(&report, Outcome::Unknown, "it last read as on");
    assert_eq!(seen(&report), Some(ObservedState::On));
}

#[tokio::test]
async fn anything_but_the_exact_word_is_unknown() {
    for body in [
        json!({ "state": "OFF" }),
        json!({ "state": "fenced" }),
        json!({}),
        json!("off"),
        Value::Null,
    ] {
        let server = Server::start(move |_| Answer::new(200, body.clone())).await;
        let report = act(&server, FencingKind::PowerOff).await;
        assert_outcome(&report, Outcome::Unknown, "could not be read");
        assert_eq!(report.observation, None);
    }
}

#[tokio::test]
async fn a_device_that_does_not_exist_is_refused_and_so_is_a_worker_without_a_simulator() {
    let server = Server::start(|_| Answer::empty(404)).await;
    assert_outcome(
        &act(&server, FencingKind::PowerOff).await,
        Outcome::Refused,
        "no such device",
    );
    let driver = Simulated::new(None, clock());
    let report = driver
        .act_and_observe(
            FencingKind::PowerOff,
            &device(Resource::Power),
            &no_secrets(),
            seconds(2),
        )
        .await;
    assert_outcome(&report, Outcome::Refused, "no simulator");
}
