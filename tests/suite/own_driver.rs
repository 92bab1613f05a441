//! A driver that exists in this file alone: what it declares is documented and checked, and a fence goes through it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    Declaration, FencingKind, FrozenMethod, Observation, ObservedState, Outcome, Parameter, Problem,
    Resource, value_of,
};
use ringfence_tests::{Ground, Site, Stack, StackOptions, eventually, power_plan};
use ringfence_workers::{Driver, Report, Secrets, WorkerError, catalogue};
use serde_json::{Value, json};

crate::on_both_grounds!(a_driver_of_one_file_is_documented_checked_and_fences);

/// A power switch that keeps its position in a file.
static SWITCH: Declaration = Declaration {
    name: "switch-file",
    about: "a switch that keeps its position in a file",
    resources: &[Resource::Power],
    parameters: &[Parameter::required("file", "the file")
        .tells_apart()
        .allowing("a name that ends with .switch is allowed", |name| {
            name.ends_with(".switch")
        })],
    secrets: &[],
    others: None,
    place: None,
    lingers_s: 1,
    device: |parameters| value_of(parameters, "file").map(|file| format!("switch-file/{file}")),
    can_prove: |_| true,
};

struct Switch {
    folder: PathBuf,
}

impl Switch {
    fn file(&self, method: &FrozenMethod) -> PathBuf {
        self.folder.join(&method.parameters["file"])
    }
}

#[async_trait]
impl Driver for Switch {
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Report {
        std::fs::write(self.file(method), kind.wanted_state().as_str()).unwrap();
        let observation = self.observe(method, secrets, budget).await.unwrap();
        assert_eq!(observation.state, kind.wanted_state());
        Report {
            outcome: Outcome::Confirmed,
            observation: Some(observation),
            finding: None,
            detail: String::new(),
        }
    }

    async fn observe(
        &self,
        method: &FrozenMethod,
        _: &Secrets,
        _: Duration,
    ) -> Result<Observation, WorkerError> {
        let position = std::fs::read_to_string(self.file(method)).unwrap();
        let states = [ObservedState::On, ObservedState::Off];
        let state = states
            .into_iter()
            .find(|state| state.as_str() == position)
            .unwrap();
        Ok(Observation {
            state,
            detail: format!("the file says {position}"),
            observed_at: chrono::DateTime::UNIX_EPOCH,
            after_ms: 0,
            before: None,
            proves: true,
        })
    }

    async fn validate(&self, _: &ValidateRequest) -> Vec<Problem> {
        Vec::new()
    }
}

async fn a_driver_of_one_file_is_documented_checked_and_fences(ground: Ground) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("h1.switch"), "on").unwrap();
    let options = StackOptions {
        drivers: catalogue().all().chain([&SWITCH]).collect(),
        workers: 0,
        ..StackOptions::default()
    };
    let mut stack = Stack::start_with(Site::new(ground).await, options).await;
    let switch = Switch {
        folder: folder.path().to_owned(),
    };
    stack
        .add_worker_with(stack.drivers().with(SWITCH.name, Arc::new(switch)))
        .await;

    let listed = stack.client.get("/drivers").await.ok(200);
    let of_switch = |driver: &&Value| driver["name"] == SWITCH.name;
    let listed = listed["drivers"]
        .as_array()
        .unwrap()
        .iter()
        .find(of_switch)
        .unwrap();
    assert_eq!(listed["parameters"][0]["about"], "the file");
    assert_eq!(
        listed["parameters"][0]["allowed"],
        "a name that ends with .switch is allowed"
    );

    let method =
        |parameters: Value| json!({ "name": "power", "driver": SWITCH.name, "parameters": parameters });
    for (parameters, words) in [
        (
            json!({}),
            "parameters.file: is missing; driver switch-file needs it",
        ),
        (
            json!({ "file": "h1" }),
            "parameters.file: is \"h1\"; a name that ends with .switch is allowed",
        ),
        (
            json!({ "fil": "h1.switch" }),
            "parameters.fil: is unknown to driver switch-file; allowed: file",
        ),
    ] {
        let refused = stack.client.post("/methods", method(parameters)).await.ok(400);
        assert!(
            refused["errors"]
                .to_string()
                .replace("\\\"", "\"")
                .contains(words),
            "{refused}"
        );
    }
    stack
        .client
        .post("/methods", method(json!({ "file": "${host.name}.switch" })))
        .await
        .ok(201);
    stack
        .client
        .post("/plans", json!({ "name": "default", "stages": power_plan() }))
        .await
        .ok(201);
    let check = async || {
        stack
            .client
            .post("/methods/power/check", json!({ "host": "h1" }))
            .await
    };
    // The queue of a worker that has just started may not exist yet.
    eventually(async || check().await.status == 200).await;
    assert_eq!(check().await.ok(200)["observation"]["state"], "on");

    stack.hang("h1").await;
    stack.client.fence("h1").await;
    stack.client.until_fenced("h1").await;
    assert_eq!(
        std::fs::read_to_string(folder.path().join("h1.switch")).unwrap(),
        "off"
    );
    stack.stop().await;
}
