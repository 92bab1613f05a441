//! What there is to be seen of a server that is being moved, and what follows from it.

use ringfence_backends::BackendError;
use ringfence_backends::openstack::{Evacuation, EvacuationStatus, Server, VmState};
use tokio::time::Instant;

use super::looks::LISTED_FOR;
use crate::openstack::HostOf;

/// Nova's number for a guest that is shut down.
const SHUT_DOWN: i64 = 4;

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

/// A server and its last evacuation from the host.
pub(super) struct Sight {
    last: Option<Evacuation>,
    /// Where the record alone says that it is.
    told: Option<String>,
    /// Not looked at while Nova is at the evacuation: its record says all there is, and costs Nova less than the server.
    pub server: Option<Server>,
    /// When the look at the whole host began which has found it.
    listed_at: Option<Instant>,
}

impl HostOf<'_> {
    /// As it is at this moment.
    pub(super) async fn last_evacuation(&self, server: &str) -> Result<Option<Evacuation>, BackendError> {
        let mut all = self.cloud.evacuations_of(server).await?;
        all.retain(|evacuation| evacuation.from.as_deref() == Some(self.host));
        Ok(all.pop())
    }

    pub(super) async fn see(&self, id: &str, last: Option<Evacuation>) -> Result<Sight, BackendError> {
        let is_under_way = last
            .as_ref()
            .is_some_and(|evacuation| evacuation.status.is_under_way());
        let server = if is_under_way {
            None
        } else {
            self.cloud.server(id).await?
        };
        Ok(Sight {
            last,
            told: None,
            server,
            listed_at: None,
        })
    }
}

impl Sight {
    /// A server as it was listed a moment ago.
    pub fn listed(last: Option<Evacuation>, server: Server, listed_at: Instant) -> Self {
        Self {
            last,
            told: None,
            server: Some(server),
            listed_at: Some(listed_at),
        }
    }

    /// Whether the server was listed, and not looked at by itself, and that so long ago that it may be elsewhere by now.
    pub fn is_out_of_date(&self, now: Instant) -> bool {
        self.listed_at
            .is_some_and(|listed_at| now > listed_at + LISTED_FOR)
    }

    /// What the record says of a server that it has brought elsewhere. The server need not be looked at for it.
    pub fn told_by(record: &Evacuation) -> Self {
        Self {
            told: record.to.clone(),
            last: Some(record.clone()),
            server: None,
            listed_at: None,
        }
    }

    /// What is to be done about a server that was on `host`.
    pub fn step(&self, host: &str) -> Step {
        if let Some(to) = &self.told {
            return Step::Arrived(Some(to.clone()));
        }
        let last = self.last.as_ref().map(|evacuation| &evacuation.status);
        if last.is_some_and(EvacuationStatus::is_under_way) {
            return Step::Wait;
        }
        let Some(server) = &self.server else {
            return Step::Arrived(None);
        };
        if matches!(server.vm_state, VmState::Deleted) {
            return Step::Arrived(None);
        }
        // Nova would bring it back to life.
        if server.task_state.as_deref() == Some("deleting") {
            return Step::Wait;
        }
        let is_here = server.host.as_deref() == Some(host);
        if server.task_state.is_some() && !is_here {
            return Step::Wait;
        }
        match last {
            // Nova writes the record first, and then why, and that it has let go of the server.
            Some(EvacuationStatus::Failed) if server.task_state.is_some() => Step::Wait,
            Some(EvacuationStatus::Failed) => Step::Failed(fault(server)),
            _ if is_here => Step::Ask,
            // Nobody has it, and it is not gone.
            _ if server.host.is_none() && server.vm_state != VmState::ShelvedOffloaded => Step::Wait,
            // Its owner, or an administrator, may have moved it by other means: what counts is where it is.
            _ => Step::Arrived(server.host.clone()),
        }
    }

    /// Nova has given it up, and it was not running before: an evacuation that failed has only hidden that its owner had stopped it.
    pub fn was_off(&self) -> bool {
        let was_off = |server: &Server| server.vm_state == VmState::Error && server.power_state == SHUT_DOWN;
        self.server.as_ref().is_some_and(was_off)
    }
}

fn fault(server: &Server) -> Option<String> {
    let fault = server.fault.as_ref().map(|fault| fault.message.as_str());
    fault.filter(|message| !message.is_empty()).map(str::to_owned)
}
