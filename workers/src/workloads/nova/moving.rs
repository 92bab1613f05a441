//! Starting one server elsewhere.
//!
//! Nova keeps a record of every evacuation. Whoever comes later, because a worker died or its time ran out, finds it there and follows it:
//! a second one is asked for only when the last one has failed. Nova itself would take a second one beside it, and the two would wreck each
//! other.

use std::time::Duration;

use ringfence_backends::BackendError;
use ringfence_backends::openstack::{Evacuation, EvacuationStatus, Server, VmState};
use ringfence_core::{Finding, MoveReport, WorkloadState};
use tokio::time::{Instant, sleep};

use super::Done;
use super::belongings::Belongings;
use super::looks::Looks;
use crate::driver::WorkloadJob;
use crate::openstack::{HostOf, PAUSE};

/// How often a server is looked at for why its evacuation has failed.
const MAX_LOOKS_FOR_FAULT: u32 = 10;

/// Between two looks at an evacuation.
const SHORTEST_PAUSE: Duration = Duration::from_millis(150);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

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
struct Sight {
    last: Option<Evacuation>,
    /// Not looked at while Nova is at the evacuation: its record says all there is, and costs Nova less than the server.
    server: Option<Server>,
}

impl HostOf<'_> {
    pub(super) async fn move_away(&self, job: WorkloadJob<'_>, looks: &Looks) -> Result<Done, BackendError> {
        let Some(workload) = job.workload else {
            return Ok(Done::No("the task names no server".to_owned(), None));
        };
        let begun = Instant::now();
        let mut last = looks.last_evacuation(self, &workload.id, begun).await?;
        let known = last.as_ref().map_or(0, |evacuation| evacuation.id);
        let mut is_fresh = true;
        let mut report = MoveReport::default();
        let mut asked_at: Option<Instant> = None;
        let mut is_off = workload.state == WorkloadState::Stopped;
        let mut looks_for_fault = 0;
        let mut belongings = Belongings::of(self, &job.method.parameters);
        loop {
            let sight = self.see(&workload.id, last).await?;
            let step = sight.step(self.host);
            let ports_left = belongings.give_back_ports(&workload.id, &step).await?;
            match step {
                Step::Arrived(to) => match belongings.left(&workload.id, ports_left).await? {
                    None => {
                        let left = if is_off {
                            self.leave_off(&workload.id).await?
                        } else {
                            ""
                        };
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
                Step::Failed(None) if asked_at.is_some() && looks_for_fault < MAX_LOOKS_FOR_FAULT => {
                    looks_for_fault += 1
                }
                Step::Failed(why) if asked_at.is_some() => {
                    let why = why.unwrap_or_else(|| "nova does not say why".to_owned());
                    report.no_room = is_full(&why);
                    return Ok(not_moved(why, report));
                }
                // One that failed before this attempt is no reason not to try again. Nobody must have tried a moment ago.
                Step::Ask | Step::Failed(_) if asked_at.is_none() && !is_fresh => {
                    last = looks.last_evacuation(self, &workload.id, Instant::now()).await?;
                    is_fresh = true;
                    continue;
                }
                Step::Ask | Step::Failed(_) if asked_at.is_none() => {
                    if let Some(done) = self.may_ask(looks).await? {
                        return Ok(done);
                    }
                    is_off |= sight.server.as_ref().is_some_and(was_off);
                    match self.ask(&workload.id, sight.server).await? {
                        Asked::Taken(request_id) => report.request_id = request_id,
                        Asked::Refused(why) => return Ok(Done::NotYet(why, Some(Finding::Move(report)))),
                    }
                    asked_at = Some(Instant::now());
                }
                // Nova has taken it, and its record is not there yet.
                Step::Ask | Step::Failed(_) | Step::Wait => {}
            }
            if !self.has_time() {
                let latest = sight
                    .last
                    .filter(|latest| latest.id > known || asked_at.is_none());
                let how = latest.map_or("no record yet".to_owned(), |latest| latest.status.to_string());
                return Ok(Done::NotYet(
                    format!("nova is still at it: {how}"),
                    Some(Finding::Move(report)),
                ));
            }
            let pause = self.pause_after(begun.elapsed());
            sleep(pause).await;
            let not_before = asked_at.max(Instant::now().checked_sub(pause));
            let not_before = not_before.unwrap_or_else(Instant::now);
            last = looks.last_evacuation(self, &workload.id, not_before).await?;
            is_fresh = false;
        }
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
            // Somebody is doing something else to it.
            Err(BackendError::Refused { .. }) => Ok(", running although it was stopped before"),
            Err(error) => Err(error),
        }
    }

    /// Who has waited for long waits a little longer for the next look: what that may add stays a small part of it.
    fn pause_after(&self, waited: Duration) -> Duration {
        let pause = (waited / 20).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        let left = self.until.saturating_duration_since(Instant::now());
        pause.min(left.saturating_sub(PAUSE)).max(SHORTEST_PAUSE)
    }

    /// As it is at this moment.
    pub(super) async fn last_evacuation(&self, server: &str) -> Result<Option<Evacuation>, BackendError> {
        let mut all = self.cloud.evacuations_of(server).await?;
        all.retain(|evacuation| evacuation.from.as_deref() == Some(self.host));
        Ok(all.pop())
    }

    async fn see(&self, id: &str, last: Option<Evacuation>) -> Result<Sight, BackendError> {
        let is_under_way = last
            .as_ref()
            .is_some_and(|evacuation| evacuation.status.is_under_way());
        let server = if is_under_way {
            None
        } else {
            self.cloud.server(id).await?
        };
        Ok(Sight { last, server })
    }

    /// Nova would take it from a host that it believes to be alive for no reason but ours.
    async fn may_ask(&self, looks: &Looks) -> Result<Option<Done>, BackendError> {
        let Some(service) = looks.service(self).await? else {
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
    async fn ask(&self, id: &str, server: Option<Server>) -> Result<Asked, BackendError> {
        let Some(server) = server else {
            return Ok(Asked::Refused("it is no more".to_owned()));
        };
        if let Some(why) = self.must_not(&server) {
            return Ok(Asked::Refused(why));
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

impl Sight {
    /// What is to be done about a server that was on `host`.
    fn step(&self, host: &str) -> Step {
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

/// Nova has given it up, and it was not running before: an evacuation that failed has only hidden that its owner had stopped it.
fn was_off(server: &Server) -> bool {
    server.vm_state == VmState::Error && server.power_state == SHUT_DOWN
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
