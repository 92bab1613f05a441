//! Starting one server elsewhere.
//!
//! Nova keeps a record of every evacuation. Whoever comes later, because a worker died or its time ran out, finds it there and follows it:
//! a second one is asked for only when the last one has failed. Nova itself would take a second one beside it, and the two would wreck each
//! other.

use ringfence_backends::BackendError;
use ringfence_backends::openstack::{Evacuation, EvacuationStatus, Server, VmState};
use ringfence_core::{Finding, MoveReport, WorkloadState};
use tokio::time::sleep;

use super::Done;
use super::belongings::Belongings;
use crate::driver::WorkloadJob;
use crate::openstack::{HostOf, PAUSE};

/// How often a server is looked at for why its evacuation has failed.
const MAX_LOOKS_FOR_FAULT: u32 = 10;

/// What to do about a server at this moment.
pub(super) enum Step {
    /// It runs elsewhere, or is no more.
    Arrived(Option<String>),
    /// Nova is at it.
    Wait,
    /// It is still on its host, and nobody is at it.
    Ask,
    /// The last evacuation has failed, and nobody is at it. Why, once Nova says it: a moment later.
    Failed(Option<String>),
}

impl HostOf<'_> {
    pub(super) async fn move_away(&self, job: WorkloadJob<'_>) -> Result<Done, BackendError> {
        let Some(workload) = job.workload else {
            return Ok(Done::No("the task names no server".to_owned(), None));
        };
        let known = self
            .last_evacuation(&workload.id)
            .await?
            .map_or(0, |evacuation| evacuation.id);
        let mut report = MoveReport::default();
        let mut has_asked = false;
        let mut looks_for_fault = 0;
        let mut belongings = Belongings::of(self, &job.method.parameters);
        loop {
            let step = self.look(&workload.id).await?;
            let ports_left = belongings.give_back_ports(&workload.id, &step).await?;
            match step {
                Step::Arrived(to) => match belongings.left(&workload.id, ports_left).await? {
                    None => {
                        let left = self.leave_stopped(job).await?;
                        return Ok(arrived(to, left, report));
                    }
                    Some(left) if !self.has_time() => {
                        let why = format!("it has moved, but {left}");
                        return Ok(Done::NotYet(
                            why,
                            Some(Finding::Move(MoveReport { to, ..report })),
                        ));
                    }
                    Some(_) => {}
                },
                Step::Failed(None) if has_asked && looks_for_fault < MAX_LOOKS_FOR_FAULT => {
                    looks_for_fault += 1
                }
                Step::Failed(why) if has_asked => {
                    let why = why.unwrap_or_else(|| "nova does not say why".to_owned());
                    report.no_room = is_full(&why);
                    return Ok(not_moved(why, report));
                }
                // One that failed before this attempt is no reason not to try again.
                Step::Ask | Step::Failed(_) if !has_asked => {
                    if let Some(done) = self.may_ask().await? {
                        return Ok(done);
                    }
                    match self.ask(&workload.id).await? {
                        Asked::Taken(request_id) => report.request_id = request_id,
                        Asked::Refused(why) => return Ok(Done::NotYet(why, Some(Finding::Move(report)))),
                    }
                    has_asked = true;
                }
                // Nova has taken it, and its record is not there yet.
                Step::Ask | Step::Failed(_) | Step::Wait => {}
            }
            if !self.has_time() {
                let latest = self.last_evacuation(&workload.id).await?;
                let how = latest.filter(|latest| latest.id > known || !has_asked);
                let how = how.map_or("no record yet".to_owned(), |latest| latest.status.to_string());
                return Ok(Done::NotYet(
                    format!("nova is still at it: {how}"),
                    Some(Finding::Move(report)),
                ));
            }
            sleep(PAUSE).await;
        }
    }

    /// A server that was stopped, and whose first evacuation failed, is started by the second: it ends as its owner left it. What was done,
    /// if anything was.
    async fn leave_stopped(&self, job: WorkloadJob<'_>) -> Result<&'static str, BackendError> {
        let Some(workload) = job.workload.filter(|known| known.state == WorkloadState::Stopped) else {
            return Ok("");
        };
        let server = self.cloud.server(&workload.id).await?;
        // Nova stops it by itself if its first evacuation succeeded, and may be at it.
        let runs = |server: Server| server.vm_state == VmState::Active && server.task_state.is_none();
        if !server.is_some_and(runs) {
            return Ok("");
        }
        match self.cloud.stop(&workload.id).await {
            Ok(_) => Ok(", stopped again as its owner left it"),
            // Somebody is doing something else to it.
            Err(BackendError::Refused { .. }) => Ok(", running although it was stopped before"),
            Err(error) => Err(error),
        }
    }

    async fn last_evacuation(&self, server: &str) -> Result<Option<Evacuation>, BackendError> {
        let mut all = self.cloud.evacuations_of(server).await?;
        all.retain(|evacuation| evacuation.from.as_deref() == Some(self.host));
        Ok(all.pop())
    }

    async fn look(&self, id: &str) -> Result<Step, BackendError> {
        let last = self
            .last_evacuation(id)
            .await?
            .map(|evacuation| evacuation.status);
        // As long as Nova is at it, its record says all there is, and costs it less than the server.
        if last.as_ref().is_some_and(EvacuationStatus::is_under_way) {
            return Ok(Step::Wait);
        }
        let Some(server) = self.cloud.server(id).await? else {
            return Ok(Step::Arrived(None));
        };
        if matches!(server.vm_state, VmState::Deleted) {
            return Ok(Step::Arrived(None));
        }
        // Nova would bring it back to life.
        if server.task_state.as_deref() == Some("deleting") {
            return Ok(Step::Wait);
        }
        let is_here = server.host.as_deref() == Some(self.host);
        if server.task_state.is_some() && !is_here {
            return Ok(Step::Wait);
        }
        Ok(match last {
            // Nova writes the record first, and then why, and that it has let go of the server.
            Some(EvacuationStatus::Failed) if server.task_state.is_some() => Step::Wait,
            Some(EvacuationStatus::Failed) if is_here => Step::Failed(fault(&server)),
            Some(EvacuationStatus::Done | EvacuationStatus::Completed) if is_here => Step::Ask,
            _ if is_here => Step::Ask,
            Some(EvacuationStatus::Failed) => Step::Failed(fault(&server)),
            // Nobody has it, and it is not gone.
            _ if server.host.is_none() && server.vm_state != VmState::ShelvedOffloaded => Step::Wait,
            // Its owner, or an administrator, may have moved it by other means: what counts is where it is.
            _ => Step::Arrived(server.host),
        })
    }

    /// Nova would take it from a host that it believes to be alive for no reason but ours.
    async fn may_ask(&self) -> Result<Option<Done>, BackendError> {
        let Some(service) = self.service().await? else {
            return Ok(Some(self.unknown_host()));
        };
        if service.forced_down {
            return Ok(None);
        }
        let why = format!(
            "{} is not forced down any more; somebody has taken that back",
            self.host
        );
        Ok(Some(Done::NotYet(why, None)))
    }

    /// What was being done to a server when its host died will never end, and a guest that was paused or suspended is no more: both are
    /// declared to be what they are, so that the server ends as its owner left it.
    async fn ask(&self, id: &str) -> Result<Asked, BackendError> {
        let Some(server) = self.cloud.server(id).await? else {
            return Ok(Asked::Refused("it is no more".to_owned()));
        };
        if let Some(why) = self.must_not(&server) {
            return Ok(Asked::Refused(why));
        }
        // Somebody else may have asked a moment ago: theirs is followed.
        let last = self.last_evacuation(id).await?;
        if last.is_some_and(|evacuation| evacuation.status.is_under_way()) {
            return Ok(Asked::Taken(None));
        }
        if let Some(state) = to_be_declared(&server) {
            self.cloud.reset_state(id, state).await?;
        }
        match self.cloud.evacuate(id).await {
            Ok(request_id) => Ok(Asked::Taken(request_id)),
            Err(BackendError::Refused { why, .. }) => Ok(Asked::Refused(why)),
            // It may have been taken all the same: its record may come yet, and a second request would wreck the first.
            Err(error) if error.is_passing() => Ok(Asked::Taken(None)),
            Err(error) => Err(error),
        }
    }

    /// Why a server is not to be started elsewhere, as it is at this moment.
    fn must_not(&self, server: &Server) -> Option<String> {
        if server.host.as_deref() != Some(self.host) {
            return Some(format!("it is not on {} any more", self.host));
        }
        match server.task_state.as_deref() {
            Some("deleting") => Some("it is being deleted".to_owned()),
            // Its guest may have reached the other host before this one died.
            Some("migrating") => Some(
                "it was being migrated live when its host died, and may run at the destination: look there, and set its state by hand"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

enum Asked {
    Taken(Option<String>),
    Refused(String),
}

/// The state that a server has to be declared to be in before Nova takes it; none if it takes it as it is.
fn to_be_declared(server: &Server) -> Option<&'static str> {
    match (&server.vm_state, &server.task_state) {
        (VmState::Active | VmState::Stopped | VmState::Error, None) => None,
        (VmState::Active | VmState::Other(_), _) => Some("active"),
        (
            VmState::Stopped
            | VmState::Error
            | VmState::Building
            | VmState::Deleted
            | VmState::ShelvedOffloaded,
            _,
        ) => Some("error"),
    }
}

fn fault(server: &Server) -> Option<String> {
    let fault = server.fault.as_ref().map(|fault| fault.message.as_str());
    fault.filter(|message| !message.is_empty()).map(str::to_owned)
}

/// Nova's words for a server that no host could take.
fn is_full(why: &str) -> bool {
    why.to_lowercase().contains("no valid host")
}

fn arrived(to: Option<String>, left: &str, report: MoveReport) -> Done {
    let detail = match &to {
        Some(to) => format!("it is on {to}{left}"),
        None => "it is no more".to_owned(),
    };
    Done::Found(detail, Finding::Move(MoveReport { to, ..report }))
}

fn not_moved(why: String, report: MoveReport) -> Done {
    // A host that is full stays full; anything else may pass.
    if report.no_room {
        Done::No(why, Some(Finding::Move(report)))
    } else {
        Done::NotYet(why, Some(Finding::Move(report)))
    }
}
