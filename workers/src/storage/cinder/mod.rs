//! The driver `cinder`: the volumes of a host's servers.
//!
//! Cinder does not tell who is connected to what by host, so the way leads through Nova: the host's servers, their volumes, and Cinder's
//! attachments of those. Deleting an attachment disconnects its host at the storage; before that, a second attachment keeps the volume for
//! its server, and is the mark by which a later attempt, or another worker, knows what was begun. Whether a host that was disconnected can
//! really write no more depends on the storage, so that it is a proof only for backends that somebody vouches for.

mod cutting;
mod giving_back;
mod held;
mod note;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_backends::openstack::Cloud;
use ringfence_bus::ValidateRequest;
use ringfence_core::{FrozenMethod, Observation, ObservedState, Parameters, Problem, TaskKind};

pub(crate) use giving_back::release_reserves_of;

use crate::driver::{Clock, Driver, Report};
use crate::openstack::{Clouds, Done, seen};
use crate::{Secrets, WorkerError};

const PLACE: [&str; 2] = ["cloud", "host"];

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

/// What somebody vouches for.
struct Trust<'a> {
    /// Backends that let a host write no more once it is disconnected.
    backends: Vec<&'a str>,
    /// Whether the disks of servers that are no volumes are on their host alone.
    local_disks: bool,
}

impl<'a> Trust<'a> {
    fn of(parameters: &'a Parameters) -> Self {
        let value = |name: &str| parameters.get(name).map_or("", String::as_str);
        let backends = value("trusted_backends").split(',').map(str::trim);
        Self {
            backends: backends.filter(|name| !name.is_empty()).collect(),
            local_disks: value("local_disks") == "true",
        }
    }
}

#[async_trait]
impl Driver for Cinder {
    async fn act_and_observe(
        &self,
        kind: TaskKind,
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
                TaskKind::StorageFence => at.cut_off(&Trust::of(&method.parameters)).await,
                TaskKind::StorageUnfence => at.give_volumes_back().await,
                other => Ok(Done::No(format!("driver cinder cannot do {other}"))),
            }
        };
        at.act(kind, acting, &self.clock).await
    }

    async fn observe(
        &self,
        method: &FrozenMethod,
        _: &Secrets,
        budget: Duration,
    ) -> Result<Observation, WorkerError> {
        let at = self.clouds.host(&method.parameters, PLACE, budget);
        let at = at.map_err(WorkerError::refused)?;
        let looking = async { Ok::<_, WorkerError>((at.is_unknown().await?, at.held().await?)) };
        let (unknown, held) = at.read(looking).await?;
        if let Some(why) = unknown {
            return Err(WorkerError::refused(why));
        }
        let connected = held.volumes.iter().filter(|volume| volume.is_connected()).count();
        let state = if connected == 0 && !held.volumes.is_empty() {
            ObservedState::Fenced
        } else {
            ObservedState::Unfenced
        };
        let (all, host) = (held.volumes.len(), at.host);
        let detail = format!("{host} is connected to {connected} of the {all} volumes of its servers");
        Ok(seen(state, &detail, &self.clock))
    }

    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        self.clouds.validate(request)
    }
}
