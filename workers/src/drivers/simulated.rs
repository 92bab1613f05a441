//! Devices that exist only in a simulator, for tests and the demonstration.
//!
//! `GET` and `PUT {base}/devices/{device}/{resource}` with `{"state": "..."}`: `on` and `off` for power, `fenced` and `unfenced`
//! for storage and network.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use reqwest::{Client, Method, StatusCode};
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    Declaration, FencingKind, FrozenMethod, Observation, ObservedState, Parameter, Problem, Resource,
    value_of,
};
use serde_json::json;
use tokio::time::Instant;
use url::Url;

use crate::act::{self, Answer, Device, Reading};
use crate::driver::{Clock, Driver, Report};
use crate::drivers::Entry;
use crate::{Secrets, WorkerError};
use ringfence_backends::TimeGiven;
use ringfence_backends::http::{self, Reply, Request};

pub(super) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "simulated",
        about: "a device of the simulated world, as standalone --demo has one",
        resources: &[Resource::Power, Resource::Storage, Resource::Network],
        parameters: &[Parameter::required("device", "its name in that world").tells_apart()],
        secrets: &[],
        others: None,
        place: None,
        lingers_s: 10,
        device: |parameters| Some(format!("simulated/{}", value_of(parameters, "device")?)),
        can_prove: |_| true,
    },
    make: |settings| {
        let clock = Arc::clone(&settings.clock);
        Arc::new(Simulated::new(settings.simulator.clone(), clock))
    },
};

/// The driver `simulated`.
pub struct Simulated {
    base: Option<Url>,
    clock: Clock,
    /// Made once: a client takes longer to make than a device takes to answer.
    client: OnceLock<Client>,
}

impl Simulated {
    /// With the simulators' base URL; without one every task is refused.
    #[must_use]
    pub fn new(base: Option<Url>, clock: Clock) -> Self {
        Self {
            base,
            clock,
            client: OnceLock::new(),
        }
    }

    fn client(&self) -> Result<Client, WorkerError> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let client = http::plain_client().map_err(WorkerError::refused)?;
        Ok(self.client.get_or_init(|| client).clone())
    }

    fn device(&self, method: &FrozenMethod) -> Result<Simulation, WorkerError> {
        let base = self
            .base
            .as_ref()
            .ok_or_else(|| WorkerError::refused(NO_SIMULATOR))?;
        let device = method
            .parameters
            .get("device")
            .ok_or_else(|| WorkerError::refused(format!("method {} has no device", method.name)))?;
        let mut url = base.clone();
        url.path_segments_mut()
            .map_err(|()| WorkerError::Configuration("the simulator's URL cannot have a path".to_owned()))?
            .pop_if_empty()
            .extend(["devices", device, method.resource.as_str()]);
        Ok(Simulation {
            client: self.client()?,
            url,
            resource: method.resource,
        })
    }
}

const NO_SIMULATOR: &str = "this worker has no simulator";

#[async_trait]
impl Driver for Simulated {
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Report {
        let time = TimeGiven::of(budget);
        match self.device(method) {
            Ok(device) => act::act_and_observe(&device, kind, secrets, &self.clock, time).await,
            Err(error) => error.into(),
        }
    }

    async fn observe(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Result<Observation, WorkerError> {
        let until = Instant::now() + budget;
        act::observe(&self.device(method)?, secrets, &self.clock, until).await
    }

    async fn validate(&self, _: &ValidateRequest) -> Vec<Problem> {
        match self.base {
            Some(_) => Vec::new(),
            None => vec![Problem::new("driver", format!("cannot be used: {NO_SIMULATOR}"))],
        }
    }
}

struct Simulation {
    client: Client,
    url: Url,
    resource: Resource,
}

#[async_trait]
impl Device for Simulation {
    async fn read(&self, until: Instant) -> Reading {
        match http::send(&self.client, Request::new(Method::GET, self.url.clone()), until).await {
            Ok(reply) if reply.status == StatusCode::NOT_FOUND => {
                Reading::Refused("there is no such device".to_owned())
            }
            Ok(reply) => read_state(self.resource, &reply),
            Err(why) => Reading::Unclear(why),
        }
    }

    async fn command(&self, kind: FencingKind, until: Instant) -> Answer {
        if kind.resource() != self.resource {
            return Answer::Refused(format!(
                "a device for {} cannot do {kind}",
                self.resource.as_str()
            ));
        }
        let body = json!({ "state": kind.wanted_state().as_str() });
        match http::send(
            &self.client,
            Request::new(Method::PUT, self.url.clone()).json(&body),
            until,
        )
        .await
        {
            Ok(reply) if reply.status == StatusCode::NOT_FOUND => {
                Answer::Refused("there is no such device".to_owned())
            }
            Ok(reply) => Answer::Sent(reply.words()),
            Err(why) => Answer::Sent(why),
        }
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(200)
    }
}

fn read_state(resource: Resource, reply: &Reply) -> Reading {
    let text = reply
        .json()
        .and_then(|body| body["state"].as_str().map(str::to_owned));
    let state = match (reply.status, resource, text.as_deref()) {
        (StatusCode::OK, Resource::Power, Some("on")) => ObservedState::On,
        (StatusCode::OK, Resource::Power, Some("off")) => ObservedState::Off,
        (StatusCode::OK, Resource::Storage | Resource::Network, Some("fenced")) => ObservedState::Fenced,
        (StatusCode::OK, Resource::Storage | Resource::Network, Some("unfenced")) => ObservedState::Unfenced,
        _ => return Reading::Unclear(reply.words()),
    };
    Reading::State(state, format!("state is {}", state.as_str()))
}
