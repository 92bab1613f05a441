//! Workload steps by Nova: a host of an OpenStack cloud and its servers.
//!
//! Each step reads first, and reads back afterwards. Whether the host may be emptied was decided before the attempt was granted; Nova
//! checks only that the host's service counts as down.

mod belongings;
mod looks;
mod moving;
mod rejoining;
mod service;
mod sight;
mod sign;
mod starting;

use ringfence_core::{Finding, MAX_LISTED, Outcome, Workload, WorkloadState, WorkloadStep};
use tokio::time::{Instant, timeout_at};

use super::host::HostOf;
use super::{Server, VmState};
use crate::{BackendError, StepOrder, StepReport};
pub(super) use looks::Looks;

/// The reason with which a service is disabled and forced down. By this reason a rejoin knows what it may enable again.
pub(super) const REASON: &str = "fenced by Ringfence";
/// The longest name of a server that is reported, in characters.
const MAX_NAME_CHARS: usize = 255;

/// How a step went.
pub(super) enum Done {
    /// The wanted state was read back.
    So(String),
    /// The wanted state was read back, with a finding.
    Found(String, Finding),
    /// A definite no, with a finding.
    No(String, Option<Finding>),
    /// The wanted state is not reached yet.
    NotYet(String, Option<Finding>),
    /// Nova could not be asked: nothing was begun.
    Away(String),
}

impl From<Done> for StepReport {
    fn from(done: Done) -> Self {
        let report = |outcome, detail, finding| Self {
            outcome,
            detail,
            finding,
        };
        match done {
            Done::So(detail) => report(Outcome::Confirmed, detail, None),
            Done::Found(detail, finding) => report(Outcome::Confirmed, detail, Some(finding)),
            Done::No(why, finding) => report(Outcome::Refused, why, finding),
            Done::NotYet(why, finding) => report(Outcome::Unknown, why, finding),
            Done::Away(why) => report(Outcome::Unknown, why, Some(Finding::Away)),
        }
    }
}

/// An error that no repetition helps against is a no. A service that is away has heard nothing, or was asked only for what may be repeated.
fn failed(error: BackendError) -> Done {
    let why = error.to_string();
    match error {
        BackendError::Settings { .. } | BackendError::Version { .. } => Done::No(why, None),
        BackendError::Away { .. } | BackendError::Late { .. } | BackendError::Unreadable { .. } => {
            Done::Away(why)
        }
        BackendError::Denied { .. }
        | BackendError::NotFound { .. }
        | BackendError::NoEndpoint { .. }
        | BackendError::Refused { .. } => Done::NotYet(why, None),
    }
}

impl HostOf<'_> {
    pub(super) async fn carry_out(&self, order: StepOrder<'_>, looks: &Looks) -> StepReport {
        let done = timeout_at(self.time.until, self.try_to(order, looks)).await;
        let done = done.unwrap_or_else(|_| Ok(Done::NotYet("the time ran out".to_owned(), None)));
        done.unwrap_or_else(failed).into()
    }

    async fn try_to(&self, order: StepOrder<'_>, looks: &Looks) -> Result<Done, BackendError> {
        match order.step {
            WorkloadStep::Isolate { .. } | WorkloadStep::Empty => Ok(Done::So(
                "a cloud starts and removes nothing by itself".to_owned(),
            )),
            WorkloadStep::MarkDown { evacuation: _ } => self.force_down().await,
            WorkloadStep::MarkUp => self.force_up().await,
            WorkloadStep::List { metadata_keys } => self.list(metadata_keys, looks).await,
            WorkloadStep::Move(step) => self.move_away(step, order.unanswered, looks).await,
            WorkloadStep::AddCapacity { host } => HostOf { host, ..*self }.add_spare().await,
            WorkloadStep::CleanUp => self.clean_up().await,
            WorkloadStep::Start { fenced_at } => self.start(*fenced_at).await,
        }
    }

    async fn list(&self, metadata_keys: &[String], looks: &Looks) -> Result<Done, BackendError> {
        let begun = Instant::now();
        let servers = self.cloud.servers_on(self.host).await?;
        let workloads: Vec<Workload> = servers
            .iter()
            .filter_map(|server| workload(server, metadata_keys))
            .take(MAX_LISTED)
            .collect();
        looks.of(self).listed(begun, servers);
        let detail = format!("{} servers belong to {}", workloads.len(), self.host);
        Ok(Done::Found(detail, Finding::Workloads(workloads)))
    }
}

/// The state of a server in the terms of the rules; `None` if its guest is on no host.
fn state(server: &Server) -> Option<WorkloadState> {
    match server.vm_state {
        VmState::Active => Some(WorkloadState::Running),
        VmState::Stopped => Some(WorkloadState::Stopped),
        VmState::Error => Some(WorkloadState::Failed),
        VmState::Building | VmState::Other(_) => Some(WorkloadState::Held),
        VmState::Deleted | VmState::ShelvedOffloaded => None,
    }
}

/// A server in the terms of the rules; `None` if its guest is on no host.
fn workload(server: &Server, keys: &[String]) -> Option<Workload> {
    let state = state(server)?;
    let metadata = keys.iter().filter_map(|key| server.metadata.get_key_value(key));
    Some(Workload {
        id: server.id.clone(),
        name: server.name.chars().take(MAX_NAME_CHARS).collect(),
        owner: None,
        state,
        metadata: metadata
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    })
}
