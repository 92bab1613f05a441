//! The driver `neutron`: the ports by which a host's servers reach the network.
//!
//! Neutron writes down that a port carries nothing, and the agent on the fenced host itself is who would have to do it. So it is a proof only
//! where the method says that what stands behind Neutron is trusted. Each port that is set down has a tag before, by which it is found again.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_backends::openstack::{Cloud, Fenced, NEUTRON};
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    Declaration, FencingKind, FrozenMethod, Observation, ObservedState, Parameter, Place, Problem, Resource,
    value_of,
};

use crate::driver::{Clock, Driver, Report};
use crate::drivers::Entry;
use crate::openstack::{CLOUD, Clouds, act, read, seen};
use crate::{Secrets, WorkerError};

const PLACE: Place = Place {
    platform: CLOUD.name,
    host: "host",
    answers_for_all: true,
};

pub(super) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: NEUTRON,
        about: "OpenStack Neutron: the ports of the host's servers",
        resources: &[Resource::Network],
        parameters: &[
            CLOUD,
            Parameter::optional("host", "what Neutron calls the host; the name that it has in its cloud if absent").tells_apart(),
            Parameter::optional(
                "trusted",
                "true says that something else than the host itself cuts off a port that is set down; nothing is proven without it",
            )
            .by_default("false")
            .flag(),
        ],
        secrets: &[],
        others: None,
        place: Some(PLACE),
        lingers_s: 120,
        device: |_| None,
        can_prove: |parameters| value_of(parameters, "trusted") == Some("true"),
    },
    make: |settings| Arc::new(Neutron::new(settings.clouds.clone(), Arc::clone(&settings.clock))),
};

/// The driver `neutron`.
pub struct Neutron {
    clouds: Clouds,
    clock: Clock,
}

impl Neutron {
    /// With the clouds of the configuration.
    #[must_use]
    pub fn new(clouds: impl IntoIterator<Item = Arc<Cloud>>, clock: Clock) -> Self {
        Self {
            clouds: Clouds::new(clouds),
            clock,
        }
    }
}

#[async_trait]
impl Driver for Neutron {
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        _: &Secrets,
        budget: Duration,
    ) -> Report {
        let at = match self.clouds.host(&method.parameters, PLACE, budget) {
            Ok(at) => at,
            Err(why) => return Report::refused(why),
        };
        let acting = async {
            match kind {
                FencingKind::NetworkFence => at.set_ports_down(method.can_prove).await,
                FencingKind::NetworkUnfence => at.release_ports().await,
                other => Ok(Fenced::No(format!("driver neutron cannot do {other}"))),
            }
        };
        act(kind, at.time, acting, &self.clock).await
    }

    async fn observe(
        &self,
        method: &FrozenMethod,
        _: &Secrets,
        budget: Duration,
    ) -> Result<Observation, WorkerError> {
        let at = self.clouds.host(&method.parameters, PLACE, budget);
        let at = at.map_err(WorkerError::refused)?;
        let ports = read(at.time, at.ports()).await?;
        let ports = ports.map_err(WorkerError::refused)?;
        let up = ports.iter().filter(|port| port.is_up).count();
        let state = if up == 0 && !ports.is_empty() {
            ObservedState::Fenced
        } else {
            ObservedState::Unfenced
        };
        let detail = format!("{up} of {} ports of {} are up", ports.len(), at.host);
        Ok(seen(state, &detail, &self.clock))
    }

    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        self.clouds.validate(request)
    }
}
