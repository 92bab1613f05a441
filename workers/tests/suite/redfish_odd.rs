//! The driver `redfish` with services that have the faults of real ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use parking_lot::Mutex;
use ringfence_core::{FencingKind, FrozenMethod, ObservedState, Outcome, Resource};
use ringfence_workers::{Driver as _, Redfish, Report};
use serde_json::{Value, json};

use crate::http::{Answer, Asked, Server};
use crate::{assert_confirmed, assert_outcome, clock, method, password, seconds, seen};

const SYSTEM: &str = "/redfish/v1/Systems/1";
const RESET: &str = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";

fn bmc(server: &Server) -> FrozenMethod {
    let parameters = [
        ("address", &*server.address),
        ("system", SYSTEM),
        ("username", "admin"),
    ];
    method("redfish", Resource::Power, &parameters)
}

async fn act(server: &Server, kind: FencingKind, budget_s: u64) -> Report {
    Redfish::new(clock())
        .act_and_observe(kind, &bmc(server), &password("secret"), seconds(budget_s))
        .await
}

fn system(power_state: &Value) -> Answer {
    let values = json!(["On", "ForceOff", "GracefulShutdown"]);
    let reset = json!({ "target": RESET, "ResetType@Redfish.AllowableValues": values });
    Answer::new(
        200,
        json!({ "PowerState": power_state, "Actions": { "#ComputerSystem.Reset": reset } }),
    )
}

/// A service without sessions whose system is in `state` and answers resets with `reset`.
async fn fixed(state: Value, reset: u16) -> Server {
    Server::start(move |asked| match asked.line().as_str() {
        "GET /redfish/v1/Systems/1" => system(&state),
        line if line == format!("POST {RESET}") => Answer::empty(reset),
        _ => Answer::empty(404),
    })
    .await
}

#[tokio::test]
async fn a_power_state_other_than_off_is_not_off() {
    for state in [
        json!("PoweringOff"),
        json!("Paused"),
        Value::Null,
        json!("off"),
        json!(""),
    ] {
        let server = fixed(state.clone(), 204).await;
        let report = act(&server, FencingKind::PowerOff, 2).await;
        assert_outcome(&report, Outcome::Unknown, "PowerState is");
        assert_eq!(report.observation, None, "{state}");
        assert!(server.lines().contains(&format!("POST {RESET}")), "{state}");
    }
}

#[tokio::test]
async fn a_service_that_reports_success_and_stays_on_is_unknown() {
    let report = act(&fixed(json!("On"), 204).await, FencingKind::PowerOff, 3).await;
    assert_outcome(&report, Outcome::Unknown, "it last read as on");
    assert_eq!(seen(&report), Some(ObservedState::On));
}

#[tokio::test]
async fn a_reset_refused_by_a_system_that_is_off_is_confirmed_by_reading_again() {
    for status in [400, 409] {
        let reads = AtomicU32::new(0);
        let server = Server::start(move |asked| match asked.method.as_str() {
            "GET" if asked.path == SYSTEM && reads.fetch_add(1, Relaxed) == 0 => system(&json!("On")),
            "GET" if asked.path == SYSTEM => system(&json!("Off")),
            "POST" => Answer::empty(status),
            _ => Answer::empty(404),
        })
        .await;
        assert_confirmed(&act(&server, FencingKind::PowerOff, 5).await, ObservedState::Off);
    }
}

/// A command shows its effect two seconds later, and a later command replaces it.
struct Lagging {
    power: &'static str,
    coming: Option<(Instant, &'static str)>,
}

impl Lagging {
    fn command(&mut self, power: &'static str) {
        self.coming = Some((Instant::now(), power));
    }

    fn read(&mut self) -> &'static str {
        let is_there = |(at, _): &mut (Instant, &str)| at.elapsed() >= seconds(2);
        if let Some((_, power)) = self.coming.take_if(is_there) {
            self.power = power;
        }
        self.power
    }
}

#[tokio::test]
async fn an_off_is_commanded_to_a_system_that_reads_off_before_an_on_takes_effect() {
    let state = Arc::new(Mutex::new(Lagging {
        power: "Off",
        coming: None,
    }));
    let device = Arc::clone(&state);
    let server = Server::start(move |asked: &Asked| {
        let mut device = device.lock();
        match (asked.method.as_str(), asked.path.as_str()) {
            ("GET", SYSTEM) => system(&json!(device.read())),
            ("POST", RESET) => {
                let is_on = asked.body["ResetType"] == "On";
                device.command(if is_on { "On" } else { "Off" });
                Answer::empty(204)
            }
            _ => Answer::empty(404),
        }
    })
    .await;
    let on = act(&server, FencingKind::PowerOn, 1).await;
    assert_outcome(&on, Outcome::Unknown, "it last read as off");
    assert_confirmed(&act(&server, FencingKind::PowerOff, 5).await, ObservedState::Off);
    let resets: Vec<Value> = server
        .asked()
        .iter()
        .filter(|asked| asked.method == "POST")
        .map(|asked| asked.body["ResetType"].clone())
        .collect();
    assert_eq!(resets, [json!("On"), json!("ForceOff")]);
    tokio::time::sleep(seconds(2)).await;
    assert_eq!(state.lock().read(), "Off");
}

#[tokio::test]
async fn a_session_is_opened_used_and_closed() {
    const SESSIONS: &str = "/redfish/v1/SessionService/Sessions";
    let power = Mutex::new("On");
    let server = Server::start(move |asked: &Asked| {
        let mut power = power.lock();
        match (asked.line().as_str(), asked.header("x-auth-token")) {
            ("GET /redfish/v1/", None) => {
                Answer::new(200, json!({ "Links": { "Sessions": { "@odata.id": SESSIONS } } }))
            }
            ("POST /redfish/v1/SessionService/Sessions", None) => Answer::new(201, json!({}))
                .header("X-Auth-Token", "t0ken")
                .header("Location", format!("{SESSIONS}/7")),
            (_, None) => Answer::empty(401),
            ("GET /redfish/v1/Systems/1", Some("t0ken")) => system(&json!(*power)),
            ("POST /redfish/v1/Systems/1/Actions/ComputerSystem.Reset", Some("t0ken")) => {
                *power = "Off";
                Answer::empty(204)
            }
            _ => Answer::empty(204),
        }
    })
    .await;
    assert_confirmed(&act(&server, FencingKind::PowerOff, 5).await, ObservedState::Off);
    assert_eq!(
        server.lines(),
        [
            "GET /redfish/v1/".to_owned(),
            format!("POST {SESSIONS}"),
            format!("GET {SYSTEM}"),
            format!("POST {RESET}"),
            format!("GET {SYSTEM}"),
            format!("DELETE {SESSIONS}/7"),
        ]
    );
    let asked = server.asked();
    assert_eq!(
        asked[1].body,
        json!({ "UserName": "admin", "Password": "secret" })
    );
    assert_eq!(asked[3].body, json!({ "ResetType": "ForceOff" }));
    assert!(asked.iter().all(|asked| asked.header("authorization").is_none()));
}

#[tokio::test]
async fn an_on_that_is_answered_409_shortly_after_an_off_is_repeated() {
    let posts = AtomicU32::new(0);
    let power = Mutex::new("Off");
    let server = Server::start(move |asked: &Asked| {
        let mut power = power.lock();
        match asked.method.as_str() {
            "POST" if posts.fetch_add(1, Relaxed) == 0 => Answer::empty(409),
            "POST" => {
                *power = "On";
                Answer::empty(204)
            }
            "GET" if asked.path == SYSTEM => system(&json!(*power)),
            _ => Answer::empty(404),
        }
    })
    .await;
    assert_confirmed(&act(&server, FencingKind::PowerOn, 30).await, ObservedState::On);
    assert_eq!(
        server
            .lines()
            .iter()
            .filter(|line| line.starts_with("POST"))
            .count(),
        2
    );
}

#[tokio::test]
async fn credentials_never_follow_a_redirect_or_a_target_to_another_host() {
    let other = fixed(json!("Off"), 204).await;
    let to = format!("{}{SYSTEM}", other.address);
    let redirecting = Server::start(move |_| Answer::empty(307).header("Location", to.clone())).await;
    assert_outcome(
        &act(&redirecting, FencingKind::PowerOff, 3).await,
        Outcome::Refused,
        "redirects to",
    );

    let target = format!("{}{RESET}", other.address);
    let misleading = Server::start(move |asked| {
        let reset = json!({ "target": target });
        match asked.path.as_str() {
            SYSTEM => Answer::new(
                200,
                json!({ "PowerState": "On", "Actions": { "#ComputerSystem.Reset": reset } }),
            ),
            _ => Answer::empty(404),
        }
    })
    .await;
    assert_outcome(
        &act(&misleading, FencingKind::PowerOff, 2).await,
        Outcome::Unknown,
        "leads to another host",
    );
    assert!(other.asked().is_empty(), "{:?}", other.asked());
}

#[tokio::test]
async fn a_silent_service_and_an_endless_answer_are_unknown_within_the_budget() {
    let silent = Server::start(|_| Answer::silent()).await;
    let started = Instant::now();
    let report = act(&silent, FencingKind::PowerOff, 3).await;
    assert!(started.elapsed() <= seconds(3), "{:?}", started.elapsed());
    assert_outcome(&report, Outcome::Unknown, "did not answer in time");

    let endless = Server::start(|_| Answer {
        body: "x".repeat(2_000_000),
        ..Answer::empty(200)
    })
    .await;
    assert_outcome(
        &act(&endless, FencingKind::PowerOff, 2).await,
        Outcome::Unknown,
        "more than 1048576 bytes",
    );
}

#[tokio::test]
async fn a_password_in_an_answer_is_masked() {
    let server = Server::start(|_| Answer::new(403, json!({ "error": "bad password secret" }))).await;
    let report = act(&server, FencingKind::PowerOff, 3).await;
    assert_outcome(&report, Outcome::Refused, "bad password [secret]");
}
