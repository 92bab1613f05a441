//! Starting one server elsewhere.
//!
//! Nova keeps a record of every evacuation. Whoever comes later, because a worker died or its time ran out, finds it there and follows it:
//! a second one is asked for only when the last one has failed. Nova itself would take a second one beside it, and the two would wreck each
//! other.

use std::sync::Arc;
use std::time::Duration;

use ringfence_backends::BackendError;
use ringfence_backends::openstack::{Evacuation, EvacuationStatus, Server, VmState};
use ringfence_core::{Finding, MoveReport, Stuck, Workload, WorkloadState};
use tokio::time::{Instant, sleep};

use super::Done;
use super::belongings::Belongings;
use super::looks::{AskingTurn, HostLooks, Looks, recent};
use super::sight::{SEEN_FOR, Sight, Step};
use crate::driver::{Open, WorkloadJob};
use crate::openstack::{HostOf, PAUSE};

/// How often a server is looked at for why its evacuation has failed.
const MAX_LOOKS_FOR_FAULT: u32 = 10;
/// Nova first says that it is rebuilding a server, and then writes the record of it.
const RECORD_COMES_WITHIN: Duration = Duration::from_secs(10);

/// Between two looks whether the host that a server goes to is there.
const DESTINATION_EVERY: Duration = Duration::from_secs(10);
/// The parameter that names an evacuation which is not to be waited for.
const GIVEN_UP: &str = "given_up";
/// Between two looks at an evacuation.
const SHORTEST_PAUSE: Duration = Duration::from_millis(150);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// One server on its way.
struct Move<'a> {
    at: &'a HostOf<'a>,
    looks: Arc<HostLooks>,
    /// Until its evacuation is asked for, or it is seen that it need not be.
    turn: Option<AskingTurn>,
    server: &'a str,
    begun: Instant,
    /// Its last evacuation.
    last: Option<Evacuation>,
    /// The newest that was there before this attempt.
    known: u64,
    asked_at: Option<Instant>,
    /// Whether Nova may yet carry out what it has not answered.
    open: &'a Open,
    /// Since when somebody seems to be at it of whom there is no record.
    rebuilding_since: Option<Instant>,
    /// Whether its records have to be looked at first, as they are since then.
    must_look: bool,
    waited_since: Instant,
    /// Whether its state was declared.
    is_declared: bool,
    /// The number of one that is not waited for: the host that it goes to is dead.
    given_up: Option<u64>,
    /// When it was looked last whether the host that it goes to is there.
    destination_seen_at: Instant,
    /// Whether it is to end stopped.
    is_off: bool,
    looks_for_fault: u32,
    report: MoveReport,
}

/// What comes after a look.
enum Next {
    Look,
    Wait,
    Over(Done),
}

impl HostOf<'_> {
    pub(super) async fn move_away(&self, job: WorkloadJob<'_>, looks: &Looks) -> Result<Done, BackendError> {
        let Some(workload) = job.workload else {
            return Ok(Done::No("the task names no server".to_owned(), None));
        };
        let mut belongings = Belongings::of(self, &job.method.parameters);
        let mut moving = Move::begin(self, looks, workload, job).await?;
        loop {
            let next = match moving.step(&mut belongings).await {
                Err(error) if moving.goes_on_after(&error) => Next::Wait,
                next => next?,
            };
            if !matches!(next, Next::Look) {
                moving.turn = None;
            }
            match next {
                Next::Over(done) => return Ok(done),
                _ if !self.has_time() => return Ok(moving.out_of_time()),
                Next::Look => {}
                Next::Wait => moving.wait().await,
            }
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

    /// Nova would take it from a host that it believes to be alive for no reason but ours.
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
            "{} is not forced down any more; somebody has taken that back",
            self.host
        );
        Ok(Some(Done::NotYet(why, None)))
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

impl<'a> Move<'a> {
    async fn begin(
        at: &'a HostOf<'a>,
        looks: &'a Looks,
        workload: &'a Workload,
        job: WorkloadJob<'a>,
    ) -> Result<Self, BackendError> {
        let begun = Instant::now();
        let looks = looks.of(at);
        let turn = looks.turn().await;
        let given_up = job.method.parameters.get(GIVEN_UP);
        let given_up = given_up.and_then(|record| record.parse().ok());
        let last = looks.last_evacuation(at, &workload.id, recent(begun)).await?;
        let last = last.map(|last| unless_given_up(last, given_up));
        Ok(Self {
            at,
            looks,
            turn: Some(turn),
            server: &workload.id,
            begun,
            known: last.as_ref().map_or(0, |evacuation| evacuation.id),
            last,
            asked_at: None,
            open: job.open,
            given_up,
            destination_seen_at: begun,
            rebuilding_since: None,
            must_look: false,
            waited_since: begun,
            is_declared: false,
            is_off: workload.state == WorkloadState::Stopped,
            looks_for_fault: 0,
            report: MoveReport::default(),
        })
    }

    async fn step(&mut self, belongings: &mut Belongings<'_>) -> Result<Next, BackendError> {
        if self.must_look {
            let not_before = self.asked_at.max(Some(self.waited_since));
            self.look(not_before.unwrap_or(self.begun)).await?;
            self.must_look = false;
        }
        if let Some(done) = self.unless_in_vain().await? {
            return Ok(Next::Over(done));
        }
        let sight = self.see().await?;
        self.act(&sight, belongings).await
    }

    /// The evacuation that its destination has begun. Of one that is only accepted the order may still wait for that host, which would carry
    /// it out when it is back.
    fn under_way(&self) -> Option<Stuck> {
        let has_begun = |last: &&Evacuation| last.status == EvacuationStatus::PreMigrating;
        let last = self.last.as_ref().filter(has_begun)?;
        let to = last.to.clone()?;
        Some(Stuck { record: last.id, to })
    }

    /// Nova goes on waiting for a destination that was forced down, for ever. An engine knows whether that one is dead.
    async fn unless_in_vain(&mut self) -> Result<Option<Done>, BackendError> {
        let Some(stuck) = self.under_way() else {
            return Ok(None);
        };
        if self.destination_seen_at.elapsed() < DESTINATION_EVERY {
            return Ok(None);
        }
        self.destination_seen_at = Instant::now();
        let service = self.at.cloud.compute_service(&stuck.to).await?;
        if !service.is_some_and(|service| service.forced_down) {
            return Ok(None);
        }
        let why = format!(
            "nova is still at it, and its destination {} is forced down",
            stuck.to
        );
        Ok(Some(Done::NotYet(why, Some(self.found()))))
    }

    /// Once Nova is at it, a look that fails is made again: the attempt after this one would know less.
    fn goes_on_after(&self, error: &BackendError) -> bool {
        self.asked_at.is_some() && (error.is_passing() || self.open.is_open())
    }

    async fn see(&self) -> Result<Sight, BackendError> {
        if let Some(last) = self.last.as_ref().filter(|last| self.has_brought(last)) {
            return Ok(Sight::told_by(last));
        }
        // What was evacuated before may be elsewhere since it was listed.
        if self.last.is_none()
            && let Some((listed_at, server)) = self.looks.take_listed(self.server, Instant::now())
        {
            return Ok(Sight::listed(self.last.clone(), server, listed_at));
        }
        self.at.see(self.server, self.last.clone()).await
    }

    /// Whether it is this attempt's evacuation, and has brought the server somewhere: Nova writes that down last.
    fn has_brought(&self, last: &Evacuation) -> bool {
        let is_done = matches!(last.status, EvacuationStatus::Done | EvacuationStatus::Completed);
        self.asked_at.is_some() && self.is_new(last) && is_done && last.to.is_some()
    }

    /// Whether it was asked for after this attempt began.
    fn is_new(&self, evacuation: &Evacuation) -> bool {
        evacuation.id > self.known
    }

    async fn act(&mut self, sight: &Sight, belongings: &mut Belongings<'_>) -> Result<Next, BackendError> {
        let step = sight.step(self.at.host);
        let ports_left = belongings.give_back_ports(self.server, &step).await?;
        match step {
            Step::Arrived(to) => match belongings.left(self.server, ports_left).await? {
                None => self.arrived(to).await,
                Some(_) if self.at.has_time() => Ok(Next::Wait),
                Some(left) => {
                    let report = MoveReport {
                        to,
                        ..self.report.clone()
                    };
                    let why = format!("it has moved, but {left}");
                    Ok(Next::Over(Done::NotYet(why, Some(Finding::Move(report)))))
                }
            },
            Step::Failed(why) if self.asked_at.is_some() => Ok(self.failed(why)),
            // One that failed before this attempt is no reason not to try again.
            Step::Ask | Step::Failed(_) if self.asked_at.is_none() => self.ask(sight).await,
            // Nova has taken it, and its record is not there yet.
            Step::Ask | Step::Failed(_) | Step::Wait => Ok(Next::Wait),
        }
    }

    /// The record is read after the server was: whatever Nova has begun between the two looks, and this attempt knows nothing of, it shows.
    async fn ask(&mut self, sight: &Sight) -> Result<Next, BackendError> {
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
            return Ok(self.refused("it is no more".to_owned()));
        };
        if let Some(why) = self.at.must_not(server) {
            return Ok(self.refused(why));
        }
        if self.may_be_rebuilding(server) {
            return Ok(Next::Wait);
        }
        self.is_off |= !self.is_declared && sight.was_off();
        match to_be_declared(server).filter(|_| !self.is_declared) {
            Some(state) => self.declare(state).await,
            None => self.request().await,
        }
    }

    /// What was being done to a server when its host died will never end, and a guest that was paused or suspended is no more: both are
    /// declared to be what they are, so that the server ends as its owner left it.
    async fn declare(&mut self, state: &str) -> Result<Next, BackendError> {
        self.at.cloud.reset_state(self.server, state).await?;
        self.is_declared = true;
        Ok(Next::Look)
    }

    async fn request(&mut self) -> Result<Next, BackendError> {
        self.open.begin();
        match self.at.cloud.evacuate(self.server).await {
            Ok(request_id) => self.report.request_id = request_id,
            // It may have been taken all the same: its record may come yet, and a second request would wreck the first.
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

    /// For as long as its record may come, if somebody has just asked for it.
    fn may_be_rebuilding(&mut self, server: &Server) -> bool {
        if !server.is_rebuilding() {
            self.rebuilding_since = None;
            return false;
        }
        self.rebuilding_since.get_or_insert_with(Instant::now).elapsed() < RECORD_COMES_WITHIN
    }

    fn refused(&self, why: String) -> Next {
        Next::Over(Done::NotYet(why, Some(self.found())))
    }

    async fn wait(&mut self) {
        let pause = self.at.pause_after(self.begun.elapsed());
        self.waited_since = Instant::now();
        sleep(pause).await;
        self.must_look = true;
    }

    async fn look(&mut self, not_before: Instant) -> Result<(), BackendError> {
        let last = self
            .looks
            .last_evacuation(self.at, self.server, not_before)
            .await?;
        self.last = last.map(|last| unless_given_up(last, self.given_up));
        if self.last.as_ref().is_some_and(|last| self.is_new(last)) {
            self.open.end();
        }
        Ok(())
    }

    async fn arrived(&mut self, to: Option<String>) -> Result<Next, BackendError> {
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
    fn failed(&mut self, why: Option<String>) -> Next {
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

    fn out_of_time(&self) -> Done {
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

    fn found(&self) -> Finding {
        Finding::Move(MoveReport {
            stuck: self.under_way(),
            ..self.report.clone()
        })
    }
}

/// Nothing will come of it any more: whatever Nova says, nobody is at it.
fn unless_given_up(mut last: Evacuation, given_up: Option<u64>) -> Evacuation {
    if last.status == EvacuationStatus::PreMigrating && given_up.is_some_and(|record| last.id <= record) {
        last.status = EvacuationStatus::Other("given up".to_owned());
    }
    last
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

/// Nova's words for a server that no host could take.
fn is_full(why: &str) -> bool {
    why.to_lowercase().contains("no valid host")
}
