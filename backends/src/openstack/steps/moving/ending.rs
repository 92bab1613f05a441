//! What came of a move.

use crate::BackendError;
use crate::openstack::{Evacuation, Server, VmState};
use ringfence_core::{Finding, MoveReport};

use super::{Move, Next};
use crate::openstack::host::HostOf;
use crate::openstack::steps::Done;

/// How often a server is looked at for why its evacuation has failed.
const MAX_LOOKS_FOR_FAULT: u32 = 10;

impl HostOf<'_> {
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
            // Somebody is doing something else to it.
            Err(BackendError::Refused { .. }) => Ok(", running although it was stopped before"),
            Err(error) => Err(error),
        }
    }
}

impl Move<'_> {
    pub(super) async fn arrived(&mut self, to: Option<String>) -> Result<Next, BackendError> {
        let left = if self.is_off {
            self.at.leave_off(self.server).await?
        } else {
            ""
        };
        let detail = match &to {
            Some(to) => format!("it is on {to}{left}"),
            None => "it is no more".to_owned(),
        };
        self.report.to = to;
        Ok(Next::Over(Done::Found(detail, self.found())))
    }

    /// The evacuation that this attempt has asked for, or the one before it if its record is not there yet.
    pub(super) fn failed(&mut self, why: Option<String>) -> Next {
        let is_ours = self.last.as_ref().is_some_and(|last| self.is_new(last));
        if !is_ours || (why.is_none() && self.looks_for_fault < MAX_LOOKS_FOR_FAULT) {
            self.looks_for_fault += u32::from(is_ours);
            return Next::Wait;
        }
        let why = why.unwrap_or_else(|| "nova does not say why".to_owned());
        self.report.no_room = is_full(&why);
        // A host that is full stays full; anything else may pass.
        Next::Over(if self.report.no_room {
            Done::No(why, Some(self.found()))
        } else {
            Done::NotYet(why, Some(self.found()))
        })
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
