//! The driver `nova`: a host of an OpenStack cloud and its servers.
//!
//! Every task is read first and read back afterwards. That a host may be emptied at all was decided before the attempt was granted; Nova
//! checks no more than that the host's service counts as down.

mod belongings;
mod looks;
mod moving;
mod rejoining;
mod service;
mod sight;
mod sign;
mod starting;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_backends::BackendError;
use ringfence_backends::openstack::{Cloud, Server, VmState};
use ringfence_core::{Finding, MAX_LISTED, ObservedState, Outcome, TaskKind, Workload, WorkloadState};
use tokio::time::{Instant, timeout_at};

use self::looks::Looks;
use crate::driver::{Clock, Report, WorkloadDriver, WorkloadJob};
use crate::openstack::{Clouds, HostOf};
use crate::text::cut;

/// Why a service was disabled and forced down. By these words a rejoin knows what it may enable again.
pub(super) const REASON: &str = "fenced by Ringfence";
/// The longest name of a server that is told on, in characters.
const MAX_NAME_CHARS: usize = 255;

/// The driver `nova`.
pub struct Nova {
    clouds: Clouds,
    looks: Looks,
    clock: Clock,
}

/// How a task went.
pub(super) enum Done {
    /// What was wanted was read back.
    So(String),
    /// The same, and something was found out.
    Found(String, Finding),
    /// A definite no.
    No(String, Option<Finding>),
    /// Not yet.
    NotYet(String, Option<Finding>),
}

impl Nova {
    /// With the clouds of the configuration.
    #[must_use]
    pub fn new(clouds: impl IntoIterator<Item = Arc<Cloud>>, clock: Clock) -> Self {
        Self {
            clouds: Clouds::new(clouds),
            looks: Looks::default(),
            clock,
        }
    }

    fn report(&self, done: Done, wanted: ObservedState) -> Report {
        let seen = |detail: &str| ringfence_core::Observation {
            state: wanted,
            detail: cut(detail),
            observed_at: (self.clock)(),
            after_ms: 0,
            before: None,
            proves: true,
        };
        match done {
            Done::So(detail) => Report {
                outcome: Outcome::Confirmed,
                observation: Some(seen(&detail)),
                finding: None,
                detail: String::new(),
            },
            Done::Found(detail, finding) => Report {
                outcome: Outcome::Confirmed,
                observation: Some(seen(&detail)),
                finding: Some(finding),
                detail: String::new(),
            },
            Done::No(detail, finding) => Report {
                finding,
                ..Report::refused(cut(&detail))
            },
            Done::NotYet(detail, finding) => Report {
                finding,
                ..Report::unknown(cut(&detail))
            },
        }
    }
}

#[async_trait]
impl WorkloadDriver for Nova {
    async fn carry_out(&self, job: WorkloadJob<'_>, budget: Duration) -> Report {
        let at = match self
            .clouds
            .host(&job.method.parameters, ["cloud", "host"], budget)
        {
            Ok(at) => at,
            Err(why) => return Report::refused(why),
        };
        let done = timeout_at(at.time.until, at.carry_out(job, &self.looks)).await;
        let done = done.unwrap_or_else(|_| Ok(Done::NotYet("the time ran out".to_owned(), None)));
        self.report(done.unwrap_or_else(failed), job.kind.wanted_state())
    }
}

/// What no repetition helps against is a no; after everything else nobody knows.
fn failed(error: BackendError) -> Done {
    let why = error.to_string();
    match error {
        BackendError::Settings { .. } | BackendError::Version { .. } => Done::No(why, None),
        BackendError::Denied { .. }
        | BackendError::NotFound { .. }
        | BackendError::NoEndpoint { .. }
        | BackendError::Refused { .. }
        | BackendError::Away { .. }
        | BackendError::Late { .. }
        | BackendError::Unreadable { .. } => Done::NotYet(why, None),
    }
}

impl HostOf<'_> {
    async fn carry_out(&self, job: WorkloadJob<'_>, looks: &Looks) -> Result<Done, BackendError> {
        match job.kind {
            TaskKind::WorkloadsForceDown => self.force_down().await,
            TaskKind::WorkloadsForceUp => self.force_up().await,
            TaskKind::WorkloadsList => self.list(job, looks).await,
            TaskKind::WorkloadsMove => self.move_away(job, looks).await,
            TaskKind::WorkloadsAddSpare => self.add_spare().await,
            TaskKind::WorkloadsCleanUp => self.clean_up().await,
            TaskKind::WorkloadsStart => self.start(job).await,
            TaskKind::PowerOff
            | TaskKind::PowerOn
            | TaskKind::StorageFence
            | TaskKind::StorageUnfence
            | TaskKind::NetworkFence
            | TaskKind::NetworkUnfence => Ok(Done::No(format!("driver nova cannot do {}", job.kind), None)),
        }
    }

    async fn list(&self, job: WorkloadJob<'_>, looks: &Looks) -> Result<Done, BackendError> {
        let parameters = &job.method.parameters;
        let keys = ["metadata_key", "priority_key"].map(|name| parameters.get(name).map(String::as_str));
        let begun = Instant::now();
        let servers = self.cloud.servers_on(self.host).await?;
        let workloads: Vec<Workload> = servers
            .iter()
            .filter_map(|server| workload(server, &keys))
            .take(MAX_LISTED)
            .collect();
        looks.of(self).listed(begun, servers);
        let detail = format!("{} servers belong to {}", workloads.len(), self.host);
        Ok(Done::Found(detail, Finding::Workloads(workloads)))
    }
}

/// A server as the rules see it; `None` if its guest lives nowhere.
fn workload(server: &Server, keys: &[Option<&str>]) -> Option<Workload> {
    let state = match server.vm_state {
        VmState::Active => WorkloadState::Running,
        VmState::Stopped => WorkloadState::Stopped,
        VmState::Error => WorkloadState::Failed,
        VmState::Building | VmState::Other(_) => WorkloadState::Held,
        VmState::Deleted | VmState::ShelvedOffloaded => return None,
    };
    let wanted = |key: &&str| server.metadata.contains_key(*key);
    let metadata = keys.iter().flatten().filter(|key| wanted(key));
    Some(Workload {
        id: server.id.clone(),
        name: server.name.chars().take(MAX_NAME_CHARS).collect(),
        state,
        metadata: metadata
            .map(|key| ((*key).to_owned(), server.metadata[*key].clone()))
            .collect(),
    })
}
