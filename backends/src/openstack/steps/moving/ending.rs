//! The end of a move.

use crate::BackendError;
use crate::openstack::{ComputeService, Evacuation, Server, VmState};
use ringfence_core::{Finding, MoveReport, WorkloadState};

use super::{Move, Next};
use crate::openstack::host::HostOf;
use crate::openstack::steps::{Done, state};

/// How many of a server's actions are searched for its owner's last wish.
const ACTIONS: u32 = 50;
/// How often a server is looked at for the reason why its evacuation has failed.
const MAX_LOOKS_FOR_FAULT: u32 = 10;

impl HostOf<'_> {
    /// Whether another host is up. Just after an outage of Nova itself, Nova takes no host for up, and so finds none that could take a
    /// server.
    async fn has_neighbours(&self) -> Result<bool, BackendError> {
        let services = self.cloud.services().await?;
        let is_other =
            |service: &&ComputeService| service.binary == "nova-compute" && service.host != self.host;
        let mut others = services.iter().filter(is_other);
        Ok(others.any(|service| service.is_up() && !service.forced_down))
    }

    /// Stops a server again that the second evacuation has started, because the first one failed: the server ends as its owner left it.
    /// Returns what was done, for the message.
    async fn leave_off(&self, id: &str) -> Result<&'static str, BackendError> {
        let server = self.cloud.server(id).await?;
        // Nova stops the server by itself if its first evacuation succeeded, and may be doing so.
        let runs = |server: Server| server.vm_state == VmState::Active && server.task_state.is_none();
        if !server.is_some_and(runs) {
            return Ok("");
        }
        match self.cloud.stop(id).await {
            Ok(_) => Ok(", stopped again as its owner left it"),
            // Another request is being carried out on the server.
            Err(BackendError::Refused { .. }) => Ok(", running although it was stopped before"),
            Err(error) => Err(error),
        }
    }
}

impl Move<'_> {
    /// The server is on another host. What ran before has to run there.
    pub(super) async fn arrived(&mut self, to: Option<String>) -> Result<Next, BackendError> {
        self.report.to.clone_from(&to);
        let Some(to) = to else {
            let detail = "it is deleted".to_owned();
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

    /// A host that came back had stopped the guest before Nova was asked, so Nova calls the server stopped.
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
        let why = format!("it is on {to} and does not run there: nova was asked to start it");
        Ok(Next::Over(Done::NotYet(why, Some(self.found()))))
    }

    async fn was_stopped_by_its_owner(&self) -> Result<bool, BackendError> {
        let actions = self.at.cloud.last_actions(self.server, ACTIONS).await?;
        let mut others = actions.iter().filter(|action| action.action != "evacuate");
        Ok(others
            .next()
            .is_some_and(|last| last.action == "stop" && last.user_id.is_some()))
    }

    /// Waits while the record that failed is not yet the one of this attempt's request.
    pub(super) async fn failed(&mut self, why: Option<String>) -> Result<Next, BackendError> {
        let is_ours = self.last.as_ref().is_some_and(|last| self.is_new(last));
        if !is_ours || (why.is_none() && self.looks_for_fault < MAX_LOOKS_FOR_FAULT) {
            self.looks_for_fault += u32::from(is_ours);
            return Ok(Next::Wait);
        }
        let why = why.unwrap_or_else(|| "nova does not say why".to_owned());
        if is_full(&why) && !self.at.has_neighbours().await? {
            let why = format!("nova takes no other host for up: {why}");
            return Ok(Next::Over(Done::Away(why)));
        }
        self.report.no_room = is_full(&why);
        // Hosts that are full stay full; another failure may pass.
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
                Some(to) => format!("nova has not ended the evacuation: {} to {to}", last.status),
                None => format!("nova has not ended the evacuation: {}", last.status),
            },
            (None, Some(_)) => "nova has not ended the evacuation: no record yet".to_owned(),
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

/// Whether Nova says that no host can take the server.
fn is_full(why: &str) -> bool {
    why.to_lowercase().contains("no valid host")
}
