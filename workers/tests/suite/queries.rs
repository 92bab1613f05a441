//! Others are asked whether a fence may begin: a real Prometheus, and services of all sorts.

use std::time::Duration;

use ringfence_core::{
    Answer as Said, Cause, FailureState, FrozenMethod, HostId, Question, Resource, Timestamp,
};
use ringfence_lab::Prometheus;
use ringfence_workers::{Secrets, WorkerError};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::{Answer, Server};
use crate::{drivers, method, no_secrets, seconds};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn question() -> Question {
    Question {
        host: "sim-1".to_owned(),
        host_id: HostId(Uuid::from_u128(1)),
        segment: "rack-4".to_owned(),
        zone: "z1".to_owned(),
        cause: Cause::Silence,
        failure_state: FailureState::Unreachable,
        failure_since: Some(Timestamp::UNIX_EPOCH),
        gone: vec!["sim-2".to_owned()],
    }
}

async fn ask(method: &FrozenMethod, secrets: &Secrets, budget: Duration) -> Result<Said, WorkerError> {
    let driver = drivers().get(&method.driver).unwrap();
    driver.ask(method, secrets, &question(), budget).await
}

/// A query and an expression that says whether what it reads is there.
fn expressions(url: &str, query: &str, present: &str) -> FrozenMethod {
    let parameters = [("url", url), ("query", query), ("present", present)];
    method("prometheus", Resource::Query, &parameters)
}

async fn evaluate(prometheus: &Prometheus, query: &str) -> Result<Said, WorkerError> {
    ask(
        &expressions(&prometheus.url(), query, ""),
        &no_secrets(),
        seconds(10),
    )
    .await
}

async fn until(
    prometheus: &Prometheus,
    query: &str,
    is_so: impl Fn(&Result<Said, WorkerError>) -> bool,
) -> Result<Said, WorkerError> {
    loop {
        let said = evaluate(prometheus, query).await;
        if is_so(&said) {
            return said;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn started() -> Prometheus {
    Prometheus::start().unwrap()
}

fn is_refused(error: &WorkerError) -> bool {
    matches!(error, WorkerError::Refused { .. })
}

#[tokio::test]
async fn what_a_real_prometheus_returns_holds_a_fence_and_nothing_allows_it() {
    let prometheus = started();
    let degraded = r#"raid_degraded{host="sim-1"} > 0"#;
    let allowed = evaluate(&prometheus, degraded).await.unwrap();
    assert_eq!(
        (allowed.is_allowed, allowed.reason.as_str()),
        (true, "its expression returns nothing")
    );
    let series = [
        ("raid_degraded", "sim-1", "vector(2)"),
        ("raid_degraded", "sim-2", "vector(1)"),
    ];
    prometheus.record(&series).unwrap();
    let is_held = |said: &Result<Said, _>| said.as_ref().is_ok_and(|said| !said.is_allowed);
    let held = until(&prometheus, degraded, is_held).await.unwrap();
    assert_eq!(
        held.reason,
        r#"its expression returns 1 series raid_degraded{host="sim-1"} 2"#
    );
    let all = evaluate(&prometheus, "sum by (host) (raid_degraded)")
        .await
        .unwrap();
    assert!(
        all.reason
            .starts_with(r#"its expression returns 2 series, the first of them {host="sim-"#),
        "{}",
        all.reason
    );
    prometheus.record(&[]).unwrap();
    until(&prometheus, degraded, |said| {
        said.as_ref().is_ok_and(|said| said.is_allowed)
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn what_a_real_prometheus_cannot_tell_is_an_error() {
    let prometheus = started();
    prometheus.record(&[("odd", "sim-1", "vector(NaN)")]).unwrap();
    let odd = until(&prometheus, "odd", Result::is_err).await.unwrap_err();
    assert_eq!(
        odd.to_string(),
        r#"the expression returns NaN for odd{host="sim-1"}"#
    );

    let scalar = evaluate(&prometheus, "time()").await.unwrap_err();
    assert!(is_refused(&scalar), "{scalar}");
    assert!(
        scalar
            .to_string()
            .starts_with("the expression returns a scalar; one that returns an instant vector"),
        "{scalar}"
    );
    let range = evaluate(&prometheus, "up[5m]").await.unwrap_err();
    assert!(
        range.to_string().starts_with("the expression returns a matrix"),
        "{range}"
    );
    let wrong = evaluate(&prometheus, "up{").await.unwrap_err();
    assert!(is_refused(&wrong), "{wrong}");
    assert!(wrong.to_string().contains("parse error"), "{wrong}");

    // What the query reads is not scraped: that it returns nothing says nothing.
    let absent = expressions(&prometheus.url(), "ceph_health > 0", r#"up{job="ceph"} == 1"#);
    let absent = ask(&absent, &no_secrets(), seconds(10)).await.unwrap_err();
    assert_eq!(
        absent.to_string(),
        "present returns nothing: what query reads is not there"
    );
    let present = expressions(
        &prometheus.url(),
        "ceph_health > 0",
        r#"up{job="prometheus"} == 1"#,
    );
    while ask(&present, &no_secrets(), seconds(10)).await.is_err() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    prometheus.silence().unwrap();
    let silent = expressions(&prometheus.url(), "up", "");
    let silent = ask(&silent, &no_secrets(), seconds(1)).await.unwrap_err();
    assert_eq!(silent.to_string(), "it did not answer in time");
}

#[tokio::test]
async fn an_answer_of_something_else_is_no_answer_of_a_prometheus() {
    let partial = json!({ "status": "success", "warnings": ["store b is unavailable"], "data": { "resultType": "vector", "result": [] } });
    let unnamed =
        json!({ "status": "success", "isPartial": true, "data": { "resultType": "vector", "result": [] } });
    for (answer, words) in [
        (
            Answer::new(200, json!({ "hello": "world" })),
            "it does not answer as a Prometheus does: HTTP 200",
        ),
        (
            Answer::new(200, Value::Null),
            "it does not answer as a Prometheus does",
        ),
        (Answer::empty(401), "HTTP 401"),
        (
            Answer::empty(302).header("location", "http://127.0.0.1:1/"),
            "it does not answer as a Prometheus does: HTTP 302",
        ),
        (Answer::new(200, partial), "it warns: store b is unavailable"),
        (Answer::new(200, unnamed), "its answer is partial"),
        (
            Answer::new(
                503,
                json!({ "status": "error", "errorType": "timeout", "error": "query timed out" }),
            ),
            "HTTP 503: query timed out",
        ),
        (
            Answer::new(200, json!("x".repeat(2_000_000))),
            "its answer has more than 1048576 bytes",
        ),
    ] {
        let mut answer = Some(answer);
        let answer = std::sync::Arc::new(parking_lot::Mutex::new(answer.take()));
        let server = Server::start(move |_| answer.lock().take().unwrap()).await;
        let error = ask(&expressions(&server.address, "up", ""), &no_secrets(), seconds(5))
            .await
            .unwrap_err();
        assert!(error.to_string().starts_with(words), "{error}");
    }
}

#[tokio::test]
async fn a_prometheus_behind_a_path_gets_the_expression_and_the_credentials() {
    let empty = json!({ "status": "success", "data": { "resultType": "vector", "result": [] } });
    let server = Server::start(move |_| Answer::new(200, empty.clone())).await;
    let url = format!("{}/tenant-1/", server.address);
    let parameters = [("url", url.as_str()), ("query", r#"up{host="a b"} == 0"#)];
    let mut by_token = method("prometheus", Resource::Query, &parameters);
    let token: Secrets = [("token", "t0k3n\n")].into_iter().collect();
    assert!(ask(&by_token, &token, seconds(5)).await.unwrap().is_allowed);
    by_token.parameters.insert("username".to_owned(), "me".to_owned());
    let password: Secrets = [("password", "pw")].into_iter().collect();
    assert!(ask(&by_token, &password, seconds(5)).await.unwrap().is_allowed);
    let asked = server.asked();
    assert!(
        asked[0]
            .path
            .starts_with("/tenant-1/api/v1/query?query=up%7Bhost%3D%22a+b%22%7D+%3D%3D+0&timeout="),
        "{}",
        asked[0].path
    );
    assert_eq!(asked[0].header("authorization"), Some("Bearer t0k3n"));
    assert_eq!(asked[1].header("authorization"), Some("Basic bWU6cHc="));
}

fn webhook(address: &str) -> FrozenMethod {
    let url = format!("{address}/may-fence");
    method("webhook", Resource::Query, &[("url", &url)])
}

fn secret(text: &str) -> Secrets {
    [("secret", text)].into_iter().collect()
}

#[tokio::test]
async fn a_service_of_the_operators_gets_a_signed_event_and_its_verdict_counts() {
    let answer = |asked: &crate::http::Asked| {
        let host = asked.body["data"]["question"]["host"]
            .as_str()
            .unwrap_or_default();
        Answer::new(
            200,
            json!({ "verdict": "hold", "reason": format!("{host} is being moved\nto rack 5") }),
        )
    };
    let server = Server::start(answer).await;
    let held = ask(&webhook(&server.address), &secret(SECRET), seconds(5))
        .await
        .unwrap();
    assert_eq!(
        (held.is_allowed, held.reason.as_str()),
        (false, "sim-1 is being moved to rack 5")
    );
    let asked = server.asked().remove(0);
    assert_eq!(asked.line(), "POST /may-fence");
    assert_eq!(
        asked.header("content-type"),
        Some("application/cloudevents+json; charset=utf-8")
    );
    assert_eq!(asked.header("webhook-timestamp"), Some("0"));
    assert!(asked.header("webhook-signature").unwrap().starts_with("v1,"));
    let body = &asked.body;
    assert_eq!(asked.header("webhook-id"), body["id"].as_str());
    assert_eq!(
        (&body["specversion"], &body["type"], &body["subject"]),
        (&json!("1.0"), &json!("ringfence.fence.asked"), &json!("sim-1"))
    );
    assert_eq!(
        body["data"]["question"],
        json!({
            "host": "sim-1", "host_id": Uuid::from_u128(1), "segment": "rack-4", "zone": "z1", "cause": "silence",
            "failure_state": "UNREACHABLE", "failure_since": "1970-01-01T00:00:00Z", "gone": ["sim-2"],
        })
    );
    assert!(body["data"]["answer_within_ms"].as_u64().unwrap() <= 5_000);
}

#[tokio::test]
async fn what_a_service_of_the_operators_does_not_say_clearly_is_unknown() {
    for (answer, words) in [
        (Answer::new(200, json!({ "verdict": "allow" })), ""),
        (
            Answer::new(200, json!({ "verdict": "unknown", "reason": "no database" })),
            "it does not know: no database",
        ),
        (
            Answer::new(200, json!({ "verdict": "yes" })),
            "its verdict is \"yes\"; {\"verdict\"",
        ),
        (
            Answer::new(200, json!({ "allow": true })),
            "it answers HTTP 200 {\"allow\":true}; {\"verdict\"",
        ),
        (Answer::new(200, json!([1, 2])), "it answers HTTP 200 [1,2]; "),
        (Answer::empty(204), "it answers HTTP 204; "),
        (
            Answer::new(500, json!({ "verdict": "allow" })),
            "it answers HTTP 500",
        ),
        (
            Answer::empty(307).header("location", "http://127.0.0.1:1/"),
            "it answers HTTP 307; redirects are not followed",
        ),
        (
            Answer::new(
                200,
                json!({ "verdict": "allow", "reason": "x".repeat(2_000_000) }),
            ),
            "its answer has more than 1048576 bytes",
        ),
        (Answer::silent(), "it did not answer in time"),
    ] {
        let answer = parking_lot::Mutex::new(Some(answer));
        let server = Server::start(move |_| answer.lock().take().unwrap()).await;
        let said = ask(&webhook(&server.address), &secret(SECRET), seconds(2)).await;
        match said {
            Ok(said) => {
                assert_eq!(
                    (said.is_allowed, said.reason.as_str(), words),
                    (true, "no reason is told", "")
                );
            }
            Err(error) => assert!(
                !words.is_empty() && error.to_string().starts_with(words),
                "{error}"
            ),
        }
    }
}

#[tokio::test]
async fn a_secret_that_cannot_sign_is_refused_and_not_shown() {
    let refused = ask(
        &webhook("http://127.0.0.1:1"),
        &secret("hunter2hunter2"),
        seconds(2),
    )
    .await
    .unwrap_err();
    assert!(is_refused(&refused));
    assert!(
        refused
            .to_string()
            .starts_with("the secret secret does not begin with whsec_; "),
        "{refused}"
    );
    assert!(!refused.to_string().contains("hunter2"));
}
