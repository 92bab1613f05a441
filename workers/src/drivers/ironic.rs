//! The driver `ironic`: a node of OpenStack's bare metal service, which has the way to the node's BMC.
//!
//! Ironic keeps an account of the power, and under maintenance, where it keeps its hands off, the account is of what it last did or read.
//! It reads the device only when it is told to switch. So what counts is what the node shows after it was told a second time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_backends::openstack::{Cloud, Fenced, IRONIC, NodePower};
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    Declaration, FencingKind, FrozenMethod, Observation, Parameter, Place, Problem, Resource, value_of,
};

use crate::driver::{Clock, Driver, Report};
use crate::drivers::Entry;
use crate::openstack::{CLOUD, Clouds, act, read, seen};
use crate::{Secrets, WorkerError};

const PLACE: Place = Place {
    platform: CLOUD.name,
    host: "node",
    answers_for_all: false,
};

pub(super) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: IRONIC,
        about: "OpenStack Ironic: the power of a node",
        resources: &[Resource::Power],
        parameters: &[
            CLOUD,
            Parameter::optional(
                "node",
                "the node's name or id; the name that the host has in its cloud if absent",
            )
            .tells_apart(),
        ],
        secrets: &[],
        others: None,
        place: Some(PLACE),
        lingers_s: 120,
        device: |parameters| {
            let (cloud, node) = (value_of(parameters, "cloud")?, value_of(parameters, "node")?);
            Some(format!("ironic/{cloud}/{node}"))
        },
        can_prove: |_| true,
    },
    make: |settings| Arc::new(Ironic::new(settings.clouds.clone(), Arc::clone(&settings.clock))),
};

/// The driver `ironic`.
pub struct Ironic {
    clouds: Clouds,
    clock: Clock,
}

impl Ironic {
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
impl Driver for Ironic {
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
        let switching = async {
            match kind {
                FencingKind::PowerOff => at.switch_off().await,
                FencingKind::PowerOn => at.switch_on().await,
                other => Ok(Fenced::No(format!("driver ironic cannot do {other}"))),
            }
        };
        act(kind, at.time, switching, &self.clock).await
    }

    async fn observe(
        &self,
        method: &FrozenMethod,
        _: &Secrets,
        budget: Duration,
    ) -> Result<Observation, WorkerError> {
        let at = self.clouds.host(&method.parameters, PLACE, budget);
        let at = at.map_err(WorkerError::refused)?;
        match read(at.time, at.power()).await? {
            NodePower::Known(state, detail) => Ok(seen(state, &detail, &self.clock)),
            NodePower::Unclear(why) => Err(WorkerError::unclear(why)),
            NodePower::NoNode(why) => Err(WorkerError::refused(why)),
        }
    }

    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        self.clouds.validate(request)
    }
}
