//! The driver `neutron`: the ports by which a host's servers reach the network.
//!
//! Neutron writes down that a port carries nothing, and the agent on the fenced host itself is who would have to do it. So it is a proof only
//! where the method says that what stands behind Neutron is trusted. Each port that is set down has a tag before, by which it is found again.

use std::sync::Arc;

use async_trait::async_trait;
use ringfence_backends::BackendError;
use ringfence_backends::openstack::{Fenced, HostOf, NEUTRON};
use ringfence_core::{
    Declaration, FencingKind, FrozenMethod, ObservedState, Parameter, Place, Resource, value_of,
};

use crate::WorkerError;
use crate::drivers::Entry;
use crate::openstack::{CLOUD, Service, ServiceDriver, read};

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
        place: Some(Neutron::PLACE),
        lingers_s: 120,
        device: |_| None,
        can_prove: |parameters| value_of(parameters, "trusted") == Some("true"),
    },
    make: |settings| Arc::new(ServiceDriver::new(Neutron, settings)),
};

/// The driver `neutron`.
struct Neutron;

#[async_trait]
impl Service for Neutron {
    const PLACE: Place = Place {
        platform: CLOUD.name,
        host: "host",
        answers_for_all: true,
    };

    async fn act(
        &self,
        at: &HostOf<'_>,
        kind: FencingKind,
        method: &FrozenMethod,
    ) -> Result<Fenced, BackendError> {
        match kind {
            FencingKind::NetworkFence => at.set_ports_down(method.can_prove).await,
            FencingKind::NetworkUnfence => at.release_ports().await,
            other => Ok(Fenced::No(format!("driver neutron cannot do {other}"))),
        }
    }

    async fn look(&self, at: &HostOf<'_>) -> Result<(ObservedState, String), WorkerError> {
        let ports = read(at.time, at.ports()).await?;
        let ports = ports.map_err(WorkerError::refused)?;
        let up = ports.iter().filter(|port| port.is_up).count();
        let state = if up == 0 && !ports.is_empty() {
            ObservedState::Fenced
        } else {
            ObservedState::Unfenced
        };
        Ok((
            state,
            format!("{up} of {} ports of {} are up", ports.len(), at.host),
        ))
    }
}
