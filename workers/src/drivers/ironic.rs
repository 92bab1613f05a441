//! The driver `ironic`: a node of OpenStack's bare metal service, which has the way to the node's BMC.
//!
//! Ironic records the power state. Under maintenance, where Ironic does not act by itself, the record is the last state that Ironic set or
//! read. Ironic reads the device only when it is told to switch, so only the record after a second command counts.

use std::sync::Arc;

use async_trait::async_trait;
use ringfence_backends::BackendError;
use ringfence_backends::openstack::{Fenced, HostOf, IRONIC, NodePower};
use ringfence_core::{
    Declaration, FencingKind, FrozenMethod, ObservedState, Parameter, Place, Resource, value_of,
};

use crate::WorkerError;
use crate::drivers::Entry;
use crate::openstack::{CLOUD, Service, ServiceDriver, read};

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
        place: Some(Ironic::PLACE),
        lingers_s: 120,
        device: |parameters| {
            let (cloud, node) = (value_of(parameters, "cloud")?, value_of(parameters, "node")?);
            Some(format!("ironic/{cloud}/{node}"))
        },
        can_prove: |_| true,
    },
    make: |settings| Arc::new(ServiceDriver::new(Ironic, settings)),
};

/// The driver `ironic`.
struct Ironic;

#[async_trait]
impl Service for Ironic {
    const PLACE: Place = Place {
        platform: CLOUD.name,
        host: "node",
        answers_for_all: false,
    };

    async fn act(
        &self,
        at: &HostOf<'_>,
        kind: FencingKind,
        _: &FrozenMethod,
    ) -> Result<Fenced, BackendError> {
        match kind {
            FencingKind::PowerOff => at.switch_off().await,
            FencingKind::PowerOn => at.switch_on().await,
            other => Ok(Fenced::No(format!("driver ironic cannot do {other}"))),
        }
    }

    async fn look(&self, at: &HostOf<'_>) -> Result<(ObservedState, String), WorkerError> {
        match read(at.time, at.power()).await? {
            NodePower::Known(state, detail) => Ok((state, detail)),
            NodePower::Unclear(why) => Err(WorkerError::unclear(why)),
            NodePower::NoNode(why) => Err(WorkerError::refused(why)),
        }
    }
}
