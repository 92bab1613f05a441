//! The driver `cinder`: the volumes of a host's servers.
//!
//! Cinder does not tell who is connected to what by host, so the way leads through Nova: the host's servers, their volumes, and Cinder's
//! attachments of those. Deleting an attachment disconnects its host at the storage; before that, a second attachment keeps the volume for
//! its server, and is the mark by which a later attempt, or another worker, knows what was begun. Whether a host that was disconnected can
//! really write no more depends on the storage, so that it is a proof only for backends that the method says are trusted.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_backends::openstack::{CINDER, Cloud, Fenced, HeldVolumes, Trust};
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
        place: Some(PLACE),
        lingers_s: 120,
        device: |_| None,
        can_prove: |parameters| value_of(parameters, "trusted_backends").is_some_and(|list| !list.trim().is_empty()),
    },
    make: |settings| Arc::new(Cinder::new(settings.clouds.clone(), Arc::clone(&settings.clock))),
};

fn are_backends(list: &str) -> bool {
    let is_odd =
        |name: &str| name.is_empty() || name.contains(['@', '#', '*']) || name.contains(char::is_whitespace);
    !list.split(',').map(str::trim).any(is_odd)
}

/// The driver `cinder`.
pub struct Cinder {
    clouds: Clouds,
    clock: Clock,
}

impl Cinder {
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
impl Driver for Cinder {
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
                FencingKind::StorageFence => at.cut_off(&Trust::of(&method.parameters)).await,
                FencingKind::StorageUnfence => at.release_volumes().await,
                other => Ok(Fenced::No(format!("driver cinder cannot do {other}"))),
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
        let volumes = read(at.time, at.volumes()).await?;
        let HeldVolumes { all, connected } = volumes.map_err(WorkerError::refused)?;
        let state = if connected == 0 && all > 0 {
            ObservedState::Fenced
        } else {
            ObservedState::Unfenced
        };
        let host = at.host;
        let detail = format!("{host} is connected to {connected} of the {all} volumes of its servers");
        Ok(seen(state, &detail, &self.clock))
    }

    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        self.clouds.validate(request)
    }
}
