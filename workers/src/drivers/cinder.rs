//! The driver `cinder`: the volumes of a host's servers.
//!
//! Cinder does not tell who is connected to what by host, so the way leads through Nova: the host's servers, their volumes, and Cinder's
//! attachments of those. Deleting an attachment disconnects its host at the storage; before that, a second attachment keeps the volume for
//! its server, and is the mark by which a later attempt, or another worker, knows what was begun. Whether a host that was disconnected can
//! really write no more depends on the storage, so that it is a proof only for backends that the method says are trusted.

use std::sync::Arc;

use async_trait::async_trait;
use ringfence_backends::BackendError;
use ringfence_backends::openstack::{CINDER, Fenced, HeldVolumes, HostOf, Trust};
use ringfence_core::{
    Declaration, FencingKind, FrozenMethod, ObservedState, Parameter, Place, Resource, value_of,
};

use crate::WorkerError;
use crate::drivers::Entry;
use crate::openstack::{CLOUD, Service, ServiceDriver, read};

pub(super) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: CINDER,
        about: "OpenStack Cinder: the volumes of the host's servers",
        resources: &[Resource::Storage],
        parameters: &[
            CLOUD,
            Parameter::optional("host", "what Nova calls the host; the name that it has in its cloud if absent").tells_apart(),
            Parameter::optional(
                "trusted_backends",
                "names of Cinder's backends whose terminate_connection keeps a host from writing; nothing is proven without them",
            )
            .allowing(
                "names of backends with commas between them are allowed, such as lvm-1,array-2: what stands between '@' and '#' in \
                 os-vol-host-attr:host of a volume",
                are_backends,
            ),
            Parameter::optional(
                "local_disks",
                "true says that disks of servers that are no volumes are on their host alone, not on shared storage",
            )
            .by_default("false")
            .flag(),
        ],
        secrets: &[],
        others: None,
        place: Some(Cinder::PLACE),
        lingers_s: 120,
        device: |_| None,
        can_prove: |parameters| value_of(parameters, "trusted_backends").is_some_and(|list| !list.trim().is_empty()),
    },
    make: |settings| Arc::new(ServiceDriver::new(Cinder, settings)),
};

fn are_backends(list: &str) -> bool {
    let is_odd =
        |name: &str| name.is_empty() || name.contains(['@', '#', '*']) || name.contains(char::is_whitespace);
    !list.split(',').map(str::trim).any(is_odd)
}

/// The driver `cinder`.
struct Cinder;

#[async_trait]
impl Service for Cinder {
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
            FencingKind::StorageFence => at.cut_off(&Trust::of(&method.parameters)).await,
            FencingKind::StorageUnfence => at.release_volumes().await,
            other => Ok(Fenced::No(format!("driver cinder cannot do {other}"))),
        }
    }

    async fn look(&self, at: &HostOf<'_>) -> Result<(ObservedState, String), WorkerError> {
        let volumes = read(at.time, at.volumes()).await?;
        let HeldVolumes { all, connected } = volumes.map_err(WorkerError::refused)?;
        let state = if connected == 0 && all > 0 {
            ObservedState::Fenced
        } else {
            ObservedState::Unfenced
        };
        let host = at.host;
        Ok((
            state,
            format!("{host} is connected to {connected} of the {all} volumes of its servers"),
        ))
    }
}
