//! Any ClusterLabs fence agent, for power, storage and network: its `off` fences, its `on` takes the fence away.

mod call;
mod check;
mod declaration;
mod metadata;
mod rules;

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_bus::ValidateRequest;
use ringfence_core::{FencingKind, FrozenMethod, Observation, ObservedState, Problem, Resource, error_chain};
use tokio::time::Instant;

use crate::act::{self, Answer, Device, Reading};
use crate::driver::{Clock, Driver, Report};
use crate::process::{Ended, ProcessError};
use crate::{Secrets, WorkerError};
use ringfence_backends::TimeGiven;

pub(crate) use declaration::DRIVER;

use call::{Call, Power};
use metadata::Catalogue;

/// How long an agent may take to print its metadata outside of an attempt's budget.
const METADATA_TIMEOUT: Duration = Duration::from_secs(10);

/// The driver `fence-agent`.
pub struct FenceAgent {
    catalogue: Catalogue,
    clock: Clock,
}

impl FenceAgent {
    /// With the folders in which agents are looked for, in this order.
    #[must_use]
    pub fn new(path: Vec<PathBuf>, clock: Clock) -> Self {
        Self {
            catalogue: Catalogue::new(path),
            clock,
        }
    }

    /// Everything that is settled before the agent is asked anything.
    async fn agent<'a>(
        &self,
        method: &'a FrozenMethod,
        secrets: &'a Secrets,
        until: Instant,
    ) -> Result<Agent<'a>, WorkerError> {
        let name = method
            .parameters
            .get("agent")
            .ok_or_else(|| WorkerError::refused(format!("method {} has no agent", method.name)))?;
        rules::check_parameters(name, &method.parameters, method.resource)?;
        let (path, metadata) = self.catalogue.get(name, until).await?;
        rules::check_metadata(name, &metadata, method.resource)?;
        Ok(Agent {
            path,
            name,
            method,
            secrets,
        })
    }
}

#[async_trait]
impl Driver for FenceAgent {
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Report {
        let time = TimeGiven::of(budget);
        match self.agent(method, secrets, time.until).await {
            Ok(agent) => act::act_and_observe(&agent, kind, secrets, &self.clock, time).await,
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
        let agent = self.agent(method, secrets, until).await?;
        act::observe(&agent, secrets, &self.clock, until).await
    }

    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        let Some(name) = request.parameters.get("agent") else {
            return vec![Problem::new(
                "parameters.agent",
                "is missing; driver fence-agent needs it",
            )];
        };
        match self.catalogue.get(name, Instant::now() + METADATA_TIMEOUT).await {
            Ok((_, metadata)) => check::check(name, &metadata, request),
            Err(error) => vec![Problem::new("parameters.agent", error_chain(&error))],
        }
    }
}

/// One agent with what it needs to reach one device.
struct Agent<'a> {
    path: PathBuf,
    name: &'a str,
    method: &'a FrozenMethod,
    secrets: &'a Secrets,
}

impl Agent<'_> {
    async fn run(&self, action: &str, until: Instant) -> Result<Ended, AgentError> {
        let secrets = self.secrets.iter().map(|(name, secret)| (name, secret.expose()));
        let parameters = self
            .method
            .parameters
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()));
        let call = Call::new(action, parameters.chain(secrets)).map_err(AgentError::Input)?;
        call.run(&self.path, until).await.map_err(AgentError::Process)
    }
}

enum AgentError {
    Input(String),
    Process(ProcessError),
}

#[async_trait]
impl Device for Agent<'_> {
    async fn read(&self, until: Instant) -> Reading {
        match self.run("status", until).await {
            Ok(ended) => match call::read_status(&ended) {
                Some(power) => {
                    Reading::State(state(self.method.resource, power), ended.stdout.trim().to_owned())
                }
                None if call::is_definite(&ended) => Reading::Refused(call::words(self.name, &ended)),
                None => Reading::Unclear(call::words(self.name, &ended)),
            },
            Err(AgentError::Input(why)) => Reading::Refused(why),
            Err(AgentError::Process(error @ ProcessError::Missing(_))) => Reading::Refused(error.to_string()),
            Err(AgentError::Process(error)) => Reading::Unclear(error_chain(&error)),
        }
    }

    async fn command(&self, kind: FencingKind, until: Instant) -> Answer {
        let action = match kind {
            FencingKind::PowerOff | FencingKind::StorageFence | FencingKind::NetworkFence => "off",
            FencingKind::PowerOn | FencingKind::StorageUnfence | FencingKind::NetworkUnfence => "on",
        };
        match self.run(action, until).await {
            Ok(ended) if call::is_definite(&ended) => Answer::Refused(call::words(self.name, &ended)),
            Ok(ended) => Answer::Sent(call::words(self.name, &ended)),
            Err(AgentError::Input(why)) => Answer::Refused(why),
            Err(AgentError::Process(error)) => Answer::Sent(error_chain(&error)),
        }
    }

    fn pause(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// What an agent's ON and OFF mean for what the method acts on.
fn state(resource: Resource, power: Power) -> ObservedState {
    match (resource, power) {
        (Resource::Power, Power::Off) => ObservedState::Off,
        (Resource::Power, Power::On) => ObservedState::On,
        (Resource::Storage | Resource::Network, Power::Off) => ObservedState::Fenced,
        (Resource::Storage | Resource::Network, Power::On) => ObservedState::Unfenced,
        (Resource::Workloads | Resource::Query | Resource::Heartbeat, Power::Off | Power::On) => {
            ObservedState::Unknown
        }
    }
}
