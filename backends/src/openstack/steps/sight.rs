//! What there is to be seen of a server that is being moved, and what follows from it.

use std::time::Duration;

use crate::BackendError;
use crate::openstack::{Evacuation, EvacuationStatus, Server, VmState};
use tokio::time::Instant;

use super::looks::LISTED_FOR;
use crate::openstack::host::HostOf;

/// What was looked at for its own sake is good for so long: no request waits longer for what has to be seen beside it, if all is well.
pub(super) const SEEN_FOR: Duration = Duration::from_secs(5);

/// Nova's number for a guest that is shut down.
const SHUT_DOWN: i64 = 4;

/// What to do about a server at this moment.
pub(super) enum Situation {
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
    /// When it was looked at; for one that was listed, when that look began.
    pub seen_at: Instant,
    is_listed: bool,
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
            seen_at: Instant::now(),
            is_listed: false,
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
            seen_at: listed_at,
            is_listed: true,
        }
    }

    /// Whether it was so long ago that the server may be elsewhere by now.
    pub fn is_out_of_date(&self, now: Instant) -> bool {
        let good_for = if self.is_listed { LISTED_FOR } else { SEEN_FOR };
        now > self.seen_at + good_for
    }

    /// What the record says of a server that it has brought elsewhere. The server need not be looked at for it.
    pub fn told_by(record: &Evacuation) -> Self {
        Self {
            told: record.to.clone(),
            last: Some(record.clone()),
            server: None,
            seen_at: Instant::now(),
            is_listed: false,
        }
    }

    /// What is to be done about a server that was on `host`.
    pub fn step(&self, host: &str) -> Situation {
        if let Some(to) = &self.told {
            return Situation::Arrived(Some(to.clone()));
        }
        let last = self.last.as_ref().map(|evacuation| &evacuation.status);
        if last.is_some_and(EvacuationStatus::is_under_way) {
            return Situation::Wait;
        }
        let Some(server) = &self.server else {
            return Situation::Arrived(None);
        };
        if matches!(server.vm_state, VmState::Deleted) {
            return Situation::Arrived(None);
        }
        // Nova would bring it back to life.
        if server.task_state.as_deref() == Some("deleting") {
            return Situation::Wait;
        }
        let is_here = server.host.as_deref() == Some(host);
        if server.task_state.is_some() && !is_here {
            return Situation::Wait;
        }
        match last {
            // Nova writes the record first, and then why, and that it has let go of the server.
            Some(EvacuationStatus::Failed) if server.task_state.is_some() => Situation::Wait,
            Some(EvacuationStatus::Failed) if is_here || !is_well(server) => Situation::Failed(fault(server)),
            _ if is_here => Situation::Ask,
            // Nobody has it, and it is not gone.
            _ if server.host.is_none() && server.vm_state != VmState::ShelvedOffloaded => Situation::Wait,
            // Its owner, or an administrator, may have moved it by other means: what counts is where it is.
            _ => Situation::Arrived(server.host.clone()),
        }
    }

    /// Nova has given it up, and it was not running before: an evacuation that failed has only hidden that its owner had stopped it.
    pub fn was_off(&self) -> bool {
        let was_off = |server: &Server| server.vm_state == VmState::Error && server.power_state == SHUT_DOWN;
        self.server.as_ref().is_some_and(was_off)
    }
}

/// Whether it is as its owner may want it.
fn is_well(server: &Server) -> bool {
    let is_somewhere = server.host.is_some() && matches!(server.vm_state, VmState::Active | VmState::Stopped);
    is_somewhere || server.vm_state == VmState::ShelvedOffloaded
}

fn fault(server: &Server) -> Option<String> {
    let fault = server.fault.as_ref().map(|fault| fault.message.as_str());
    fault.filter(|message| !message.is_empty()).map(str::to_owned)
}
