//! What Nova shows of a server that is being moved, and what follows from it.

use std::time::Duration;

use crate::BackendError;
use crate::openstack::{Evacuation, EvacuationStatus, Server, VmState};
use tokio::time::Instant;

use super::looks::LISTED_FOR;
use crate::openstack::host::HostOf;

/// How long a look counts that was made for another purpose: no request waits longer for the look that goes with it, if all is well.
pub(super) const SEEN_FOR: Duration = Duration::from_secs(5);

/// Nova's number for a guest that is shut down.
const SHUT_DOWN: i64 = 4;

/// The next step for a server.
pub(super) enum Situation {
    /// The server runs elsewhere, or is deleted.
    Arrived(Option<String>),
    /// Nova is working on the server.
    Wait,
    /// The server is still on its host, and no evacuation is under way.
    Ask,
    /// The last evacuation has failed, and none is under way. The text is Nova's reason, which comes a moment later.
    Failed(Option<String>),
}

/// A server and its last evacuation from the host.
pub(super) struct Sight {
    last: Option<Evacuation>,
    /// The server's host as the record alone tells it.
    told: Option<String>,
    /// Not read while an evacuation is under way: its record says all that is needed, and costs Nova less than the server.
    pub server: Option<Server>,
    /// When the server was read; for a server that was listed, when that listing began.
    pub seen_at: Instant,
    is_listed: bool,
}

impl HostOf<'_> {
    /// The server's last evacuation at this moment.
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

    /// Whether the look is so old that the server may be elsewhere by now.
    pub fn is_out_of_date(&self, now: Instant) -> bool {
        let good_for = if self.is_listed { LISTED_FOR } else { SEEN_FOR };
        now > self.seen_at + good_for
    }

    /// A look at a record that says where the server is now. The server need not be read.
    pub fn told_by(record: &Evacuation) -> Self {
        Self {
            told: record.to.clone(),
            last: Some(record.clone()),
            server: None,
            seen_at: Instant::now(),
            is_listed: false,
        }
    }

    /// The next step for a server that was on `host`.
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
        // Nova would evacuate a server that is being deleted, and so restore it.
        if server.task_state.as_deref() == Some("deleting") {
            return Situation::Wait;
        }
        let is_here = server.host.as_deref() == Some(host);
        if server.task_state.is_some() && !is_here {
            return Situation::Wait;
        }
        match last {
            // Nova first writes the record, and then the reason, and that no task is under way.
            Some(EvacuationStatus::Failed) if server.task_state.is_some() => Situation::Wait,
            Some(EvacuationStatus::Failed) if is_here || !is_well(server) => Situation::Failed(fault(server)),
            _ if is_here => Situation::Ask,
            // The server has no host, and is not deleted.
            _ if server.host.is_none() && server.vm_state != VmState::ShelvedOffloaded => Situation::Wait,
            // The owner, or an administrator, may have moved the server by other means: only where it is counts.
            _ => Situation::Arrived(server.host.clone()),
        }
    }

    /// Whether Nova has given the server up, which did not run before: a failed evacuation has only hidden that its owner had stopped it.
    pub fn was_off(&self) -> bool {
        let was_off = |server: &Server| server.vm_state == VmState::Error && server.power_state == SHUT_DOWN;
        self.server.as_ref().is_some_and(was_off)
    }
}

/// Whether the server is in a state that its owner may want.
fn is_well(server: &Server) -> bool {
    let is_somewhere = server.host.is_some() && matches!(server.vm_state, VmState::Active | VmState::Stopped);
    is_somewhere || server.vm_state == VmState::ShelvedOffloaded
}

fn fault(server: &Server) -> Option<String> {
    let fault = server.fault.as_ref().map(|fault| fault.message.as_str());
    fault.filter(|message| !message.is_empty()).map(str::to_owned)
}
