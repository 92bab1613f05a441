//! What came of a move.

use crate::BackendError;
use crate::openstack::{ComputeService, Evacuation, Server, VmState};
use ringfence_core::{Finding, MoveReport, WorkloadState};

use super::{Move, Next};
use crate::openstack::host::HostOf;
use crate::openstack::steps::{Done, state};

/// So many things that were done to a server are looked through for what its owner wanted last.
const ACTIONS: u32 = 50;
/// How often a server is looked at for why its evacuation has failed.
const MAX_LOOKS_FOR_FAULT: u32 = 10;

impl HostOf<'_> {
    /// Whether any other host is up. Just after Nova itself was away, it takes none for up, and so for able to take a server.
    async fn has_neighbours(&self) -> Result<bool, BackendError> {
        let services = self.cloud.services().await?;
        let is_other =
            |service: &&ComputeService| service.binary == "nova-compute" && service.host != self.host;
        let mut others = services.iter().filter(is_other);
        Ok(others.any(|service| service.is_up() && !service.forced_down))
    }

    /// A server that was stopped, and whose first evacuation failed, is started by the second: it ends as its owner left it. What was done,
    /// if anything was.
    async fn leave_off(&self, id: &str) -> Result<&'static str, BackendError> {
        let server = self.cloud.server(id).await?;
        // Nova stops it by itself if its first evacuation succeeded, and may be at it.
        let runs = |server: Server| server.vm_state == VmState::Active && server.task_state.is_none();
        if !server.is_some_and(runs) {
            return Ok("");
        }
        match self.cloud.stop(id).await {
            Ok(_) => Ok(", stopped again as its owner left it"),
            // Another request is being carried out on it.
            Err(BackendError::Refused { .. }) => Ok(", running although it was stopped before"),
            Err(error) => Err(error),
        }
    }
}

impl Move<'_> {
    /// It is elsewhere. What ran before has to run there.
    pub(super) async fn arrived(&mut self, to: Option<String>) -> Result<Next, BackendError> {
        self.report.to.clone_from(&to);
        let Some(to) = to else {
            let detail = "it is no more".to_owned();
            return Ok(Next::Over(Done::Found(detail, self.found())));
        };
        let left = if self.is_off {
            self.at.leave_off(self.server).await?
        } else {
            ""
        };
        let server = self.at.cloud.server(self.server).await?;
        self.report.state_after = server.as_ref().and_then(state);
        match server {
            Some(server) if self.was == WorkloadState::Running && server.vm_state == VmState::Stopped => {
                self.stopped_at(&to, &server).await
            }
            Some(_) | None => Ok(self.is_on(&format!("{to}{left}"))),
        }
    }

    fn is_on(&self, place: &str) -> Next {
        Next::Over(Done::Found(format!("it is on {place}"), self.found()))
    }

    /// A host that came back had stopped its guest before Nova was asked, by which Nova calls it stopped.
    async fn stopped_at(&mut self, to: &str, server: &Server) -> Result<Next, BackendError> {
        if server.task_state.is_none() && !self.is_started {
            if self.was_stopped_by_its_owner().await? {
                return Ok(self.is_on(&format!("{to}, stopped by its owner meanwhile")));
            }
            self.at.cloud.start(self.server).await?;
            self.is_started = true;
        }
        if self.at.has_time() {
            return Ok(Next::Wait);
        }
        let why = format!("it is on {to}, and does not run there: nova was asked to start it");
        Ok(Next::Over(Done::NotYet(why, Some(self.found()))))
    }

    async fn was_stopped_by_its_owner(&self) -> Result<bool, BackendError> {
        let actions = self.at.cloud.last_actions(self.server, ACTIONS).await?;
        let mut others = actions.iter().filter(|action| action.action != "evacuate");
        Ok(others
            .next()
            .is_some_and(|last| last.action == "stop" && last.user_id.is_some()))
    }

    /// The evacuation that this attempt has asked for, or the one before it if its record is not there yet.
    pub(super) async fn failed(&mut self, why: Option<String>) -> Result<Next, BackendError> {
        let is_ours = self.last.as_ref().is_some_and(|last| self.is_new(last));
        if !is_ours || (why.is_none() && self.looks_for_fault < MAX_LOOKS_FOR_FAULT) {
            self.looks_for_fault += u32::from(is_ours);
            return Ok(Next::Wait);
        }
        let why = why.unwrap_or_else(|| "nova does not say why".to_owned());
        if is_full(&why) && !self.at.has_neighbours().await? {
            let why = format!("nova takes no other host for up at the moment: {why}");
            return Ok(Next::Over(Done::Away(why)));
        }
        self.report.no_room = is_full(&why);
        // A host that is full stays full; anything else may pass.
        Ok(Next::Over(if self.report.no_room {
            Done::No(why, Some(self.found()))
        } else {
            Done::NotYet(why, Some(self.found()))
        }))
    }

    pub(super) fn out_of_time(&self) -> Done {
        let is_told = |last: &&Evacuation| self.is_new(last) || self.asked_at.is_none();
        let how = self.last.as_ref().filter(is_told);
        let why = match (how, self.asked_at) {
            (Some(last), _) => match &last.to {
                Some(to) => format!("nova is still at it: {} to {to}", last.status),
                None => format!("nova is still at it: {}", last.status),
            },
            (None, Some(_)) => "nova is still at it: no record yet".to_owned(),
            (None, None) => "the time ran out before nova could be asked".to_owned(),
        };
        Done::NotYet(why, Some(self.found()))
    }

    pub(super) fn found(&self) -> Finding {
        Finding::Move(MoveReport {
            stuck: self.under_way(),
            ..self.report.clone()
        })
    }
}

/// Nova's words for a server that no host could take.
fn is_full(why: &str) -> bool {
    why.to_lowercase().contains("no valid host")
}
