//! Asking Nova to start a server elsewhere, where nothing forbids it and no evacuation of the server is under way.

use std::time::Duration;

use crate::BackendError;
use crate::openstack::{Evacuation, EvacuationStatus, Server, VmState};
use tokio::time::Instant;

use super::{Move, Next};
use crate::openstack::host::HostOf;
use crate::openstack::steps::Done;
use crate::openstack::steps::looks::{HostLooks, recent};
use crate::openstack::steps::sight::{SEEN_FOR, Sight};

/// Nova first shows that it is rebuilding a server, and then writes the record.
const RECORD_COMES_WITHIN: Duration = Duration::from_secs(10);

impl HostOf<'_> {
    /// Nova checks only that the host is forced down, which Ringfence itself has done.
    async fn may_ask(&self, looks: &HostLooks, not_before: Instant) -> Result<Option<Done>, BackendError> {
        let Some(service) = looks.service(self, not_before).await? else {
            return Ok(Some(self.unknown_host()));
        };
        if looks.stirs(&service) {
            let why = format!(
                "nova-compute on {} has given a sign of life: it may be starting",
                self.host
            );
            return Ok(Some(Done::NotYet(why, None)));
        }
        if service.forced_down {
            return Ok(None);
        }
        let why = format!(
            "{} is not forced down any more; a call to Nova has ended that",
            self.host
        );
        Ok(Some(Done::NotYet(why, None)))
    }

    /// Why this server must not be started elsewhere.
    fn must_not(&self, server: &Server) -> Option<String> {
        if server.host.as_deref() != Some(self.host) {
            return Some(format!("it is not on {} any more", self.host));
        }
        match server.task_state.as_deref() {
            Some("deleting") => Some("it is being deleted".to_owned()),
            // The guest may have reached the destination before the host died.
            Some("migrating") => Some(
                "it was being migrated live when its host died, and may run at the destination: look there, and set its state by hand"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

impl Move<'_> {
    /// The record is read after the server: it shows whatever Nova has begun between the two looks without this attempt's knowledge.
    pub(super) async fn ask(&mut self, sight: &Sight) -> Result<Next, BackendError> {
        if self.only_looks {
            let why = "another worker may still ask nova for its evacuation, and nova shows none yet";
            return Ok(self.refused(why.to_owned()));
        }
        if self.turn.is_none() {
            self.turn = Some(self.looks.turn().await);
            return Ok(Next::Look);
        }
        if let Some(done) = self.at.may_ask(&self.looks, recent(self.begun)).await? {
            return Ok(Next::Over(done));
        }
        let (known, began) = (self.last.clone(), Instant::now());
        self.look(sight.seen_at.max(recent(self.begun))).await?;
        let has_changed = self.last != known;
        if has_changed || sight.is_out_of_date(Instant::now()) || began.elapsed() > SEEN_FOR {
            return Ok(Next::Look);
        }
        let Some(server) = &sight.server else {
            return Ok(self.refused("it is deleted".to_owned()));
        };
        if let Some(why) = self.at.must_not(server) {
            return Ok(self.refused(why));
        }
        if self.may_be_rebuilding(server) || self.is_being_evacuated(server).await? {
            return Ok(Next::Wait);
        }
        self.is_off |= !self.is_declared && sight.was_off();
        match to_be_declared(server).filter(|_| !self.is_declared) {
            Some(state) => self.declare(state).await,
            None => self.request().await,
        }
    }

    /// A task that was under way when the host died will never end, and a guest that was paused or suspended is lost. The state is
    /// declared, so that the server ends as its owner left it.
    async fn declare(&mut self, state: &str) -> Result<Next, BackendError> {
        self.at.cloud.reset_state(self.server, state).await?;
        self.is_declared = true;
        Ok(Next::Look)
    }

    async fn request(&mut self) -> Result<Next, BackendError> {
        self.open.begin();
        match self.at.cloud.evacuate(self.server).await {
            Ok(request_id) => self.report.request_id = request_id,
            // Nova may have accepted the request nevertheless: the record may come yet, and a second request would wreck the first.
            Err(error) if error.is_passing() => {
                tracing::warn!(server = self.server, %error, "nova may have taken an evacuation that it has not answered");
                self.asked_at = Some(Instant::now());
                return Ok(Next::Wait);
            }
            Err(error) => {
                self.open.end();
                return match error {
                    BackendError::Refused { why, .. } => Ok(self.refused(why)),
                    error => Err(error),
                };
            }
        }
        self.open.end();
        self.asked_at = Some(Instant::now());
        Ok(Next::Wait)
    }

    /// Whether the server may be in an evacuation whose record has not come yet, which lasts a limited time.
    fn may_be_rebuilding(&mut self, server: &Server) -> bool {
        if !server.is_rebuilding() {
            self.rebuilding_since = None;
            return false;
        }
        self.rebuilding_since.get_or_insert_with(Instant::now).elapsed() < RECORD_COMES_WITHIN
    }

    /// An evacuation goes on even if `nova-compute` has marked its record completed when it started on the host. A second one would wreck
    /// it.
    async fn is_being_evacuated(&self, server: &Server) -> Result<bool, BackendError> {
        let is_completed = |last: &Evacuation| last.status == EvacuationStatus::Completed;
        if !server.is_rebuilding() || !self.last.as_ref().is_some_and(is_completed) {
            return Ok(false);
        }
        let last = self.at.cloud.last_action(self.server).await?;
        Ok(last.is_some_and(|last| last.action == "evacuate"))
    }

    fn refused(&self, why: String) -> Next {
        Next::Over(Done::NotYet(why, Some(self.found())))
    }
}

/// The state that a server has to be declared to be in before Nova evacuates it; none if Nova evacuates it as it is.
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
