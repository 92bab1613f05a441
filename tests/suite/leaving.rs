//! Hosts that come with their platform and leave it, and what comes in between.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::TimeDelta;
use parking_lot::Mutex;
use ringfence_backends::{BackendError, Departure, Platform, Preflight, StepOrder, StepReport};
use ringfence_core::{Backend, Outcome, Poll, Sign, Timestamp};
use ringfence_engine::ObserverConfig;
use ringfence_tests::{Ground, Site, Stack, StackOptions, now};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

crate::on_both_grounds!(
    a_silent_host_is_added_once_where_it_is_on_record_and_not_otherwise,
    what_comes_between_the_last_look_and_the_removal_of_a_host_keeps_it
);

const NAME: &str = "yard";
/// Longer than a host has to be away, and than the observer waits between two looks.
const LONG: Duration = Duration::from_secs(3);

/// The platform is asked whether this host has left, and the test answers.
type Question = (String, oneshot::Sender<Departure>);

/// A platform that names the hosts that the test says, so that a moment between two steps of the engine can be met.
#[derive(Debug)]
struct Yard {
    /// `None` while it does not answer.
    named: Mutex<Option<BTreeSet<&'static str>>>,
    asked: mpsc::UnboundedSender<Question>,
}

impl Yard {
    fn name_only(&self, hosts: &[&'static str]) {
        *self.named.lock() = Some(hosts.iter().copied().collect());
    }
}

#[async_trait]
impl Platform for Yard {
    fn name(&self) -> &str {
        NAME
    }

    fn kind(&self) -> Backend {
        Backend::Kubernetes
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(10)
    }

    async fn look(&self) -> Result<Poll, BackendError> {
        let named = self.named.lock().clone();
        let named = named.ok_or_else(|| BackendError::Away {
            platform: NAME.to_owned(),
            service: "the yard",
            why: "it is closed".to_owned(),
        })?;
        let sign = |host: &str| Sign {
            host: host.to_owned(),
            last: (!host.starts_with("silent")).then(now),
            is_up: !host.starts_with("silent"),
            is_marked_down: false,
            settings: String::new(),
            boot: None,
            host_type: None,
            labels: None,
            is_on_record: host == "silent-on-record",
            is_kept_off: false,
            conditions: [].into(),
        };
        Ok(Poll {
            hosts: named.into_iter().map(sign).collect(),
            own: Some(now()),
        })
    }

    async fn departure(&self, host: &str) -> Result<Departure, BackendError> {
        let (answer, answered) = oneshot::channel();
        self.asked.send((host.to_owned(), answer)).unwrap();
        Ok(answered.await.unwrap_or(Departure::NotTold))
    }

    async fn preflight(&self, _: Timestamp) -> Vec<Preflight> {
        Vec::new()
    }

    async fn preflight_fencing(&self, _: &str) -> Vec<Preflight> {
        Vec::new()
    }

    async fn carry_out(&self, _: StepOrder<'_>, _: Duration) -> StepReport {
        StepReport {
            outcome: Outcome::Unknown,
            detail: "nothing is done here".to_owned(),
            finding: None,
        }
    }
}

async fn left_at(stack: &Stack, host: &str) -> Value {
    let told = stack.client.get(&format!("/hosts/{host}/explanation")).await;
    told.ok(200)["left_at"].clone()
}

async fn id_of(stack: &Stack, host: &str) -> Value {
    stack.client.host(host).await["id"].clone()
}

async fn a_silent_host_is_added_once_where_it_is_on_record_and_not_otherwise(ground: Ground) {
    let (asked, _questions) = mpsc::unbounded_channel();
    let yard = Arc::new(Yard {
        named: Mutex::default(),
        asked,
    });
    yard.name_only(&["silent", "silent-on-record", "up"]);
    let stack = start(ground, &yard).await;
    for host in ["silent-on-record", "up"] {
        stack
            .client
            .until(&format!("/hosts/{host}"), |host| host["id"].is_string())
            .await;
    }
    let path = "/hosts/silent-on-record";
    let host = stack.client.get(path).await.ok(200);
    assert_ne!(host["failure_state"], "UP", "{host}");
    assert_eq!(stack.client.get("/hosts/silent").await.status, 404);
    stack.client.delete(path).await.ok(204);
    sleep(LONG).await;
    assert_eq!(
        stack.client.get(path).await.status,
        404,
        "a person has removed it"
    );
    assert_eq!(stack.client.get("/hosts/silent").await.status, 404);
    stack.stop().await;
}

async fn start(ground: Ground, yard: &Arc<Yard>) -> Stack {
    let options = StackOptions {
        hosts: 0,
        platforms: vec![Arc::clone(yard) as Arc<dyn Platform>],
        observer: ObserverConfig {
            every: Duration::from_millis(200),
            down_after: TimeDelta::seconds(1),
            adopt: Some("default".to_owned()),
            remove_after: Some(TimeDelta::seconds(1)),
        },
        ..StackOptions::default()
    };
    Stack::start_with(Site::new(ground).await, options).await
}

async fn what_comes_between_the_last_look_and_the_removal_of_a_host_keeps_it(ground: Ground) {
    let (asked, mut questions) = mpsc::unbounded_channel();
    let yard = Arc::new(Yard {
        named: Mutex::default(),
        asked,
    });
    let leaving = ["fenced", "given", "gone", "kept", "returns", "seen"];
    let all: Vec<_> = leaving.into_iter().chain(["stays"]).collect();
    yard.name_only(&all);
    let stack = start(ground, &yard).await;
    let client = &stack.client;
    for host in &all {
        let path = format!("/hosts?name={host}&failure_state=UP");
        let is_up = |list: &Value| !list["hosts"].as_array().unwrap().is_empty();
        client.until(&path, is_up).await;
    }
    let added = json!({ "name": "added", "backend": "kubernetes", "cloud": NAME });
    client.post("/hosts", added).await.ok(201);
    let parameters = json!({ "parameters": { "bmc": { "address": "10.0.0.7" } } });
    client.patch("/hosts/given", parameters).await.ok(200);
    let ids = ["fenced", "gone", "kept", "returns", "seen"];
    let mut before = Vec::new();
    for host in ids {
        before.push(id_of(&stack, host).await);
    }

    // Neither silence of the platform nor a list without any host says that one has left.
    *yard.named.lock() = None;
    sleep(LONG).await;
    yard.name_only(&[]);
    sleep(LONG).await;
    assert_eq!(left_at(&stack, "gone").await, Value::Null);
    assert!(questions.try_recv().is_err(), "none of them has left");

    yard.name_only(&["stays"]);
    let mut named = BTreeSet::new();
    while named.len() < ids.len() {
        let (host, answer) = questions.recv().await.unwrap();
        assert!(left_at(&stack, &host).await.is_string(), "{host}");
        let departure = match host.as_str() {
            "fenced" => {
                let word = json!({ "generation": 0, "reason": "it is unplugged" });
                client.post("/hosts/fenced/confirm-fenced", word).await.ok(200);
                Departure::Gone
            }
            "seen" => {
                client.seen("seen", "UP").await.ok(200);
                Departure::Gone
            }
            "returns" => {
                yard.name_only(&["stays", "returns"]);
                Departure::Gone
            }
            "kept" => Departure::Remains("a pod is bound to it".to_owned()),
            "gone" => Departure::Gone,
            other => panic!("{other} is not removed by itself, and nothing has to be asked"),
        };
        assert!(
            named.insert(host.clone()),
            "{host} is asked after twice within a moment"
        );
        answer.send(departure).unwrap();
    }
    let returned = |list: &Value| {
        let host = &list["hosts"][0];
        host["failure_state"] == "UP" && host["id"] != before[3]
    };
    client.until("/hosts?name=returns", returned).await;
    assert_eq!(client.get("/hosts/gone").await.status, 404);
    let audit = client.get("/audit?host=gone&action=host.deleted").await.ok(200);
    assert_eq!(audit["audit"][0]["actor"], "kubernetes:yard", "{audit}");
    for (at, host) in [(0, "fenced"), (2, "kept"), (4, "seen")] {
        assert_eq!(id_of(&stack, host).await, before[at], "{host}");
    }
    assert_eq!(client.host("fenced").await["fencing_state"], "FENCED");
    for host in ["added", "given", "stays"] {
        client.host(host).await;
    }
    stack.stop().await;
}
