//! Starting one server elsewhere.
//!
//! Nova keeps a record of every evacuation. The next attempt, after a worker died or its time ran out, finds the record and follows it: a
//! second evacuation is asked for only when the last one has failed. Nova itself would accept a second one beside the first, and the two
//! would wreck each other.

mod asking;
mod ending;

use std::sync::Arc;
use std::time::Duration;

use crate::BackendError;
use crate::openstack::{Evacuation, EvacuationStatus};
use ringfence_core::{Finding, MoveReport, MoveStep, Stuck, WorkloadState};
use tokio::time::{Instant, sleep};

use super::Done;
use super::belongings::Belongings;
use super::looks::{AskingTurn, HostLooks, Looks, recent};
use super::sight::{Sight, Situation};
use crate::Unanswered;
use crate::openstack::host::{HostOf, PAUSE};

/// Between two checks whether the destination is up.
const DESTINATION_EVERY: Duration = Duration::from_secs(10);
/// Between two looks at an evacuation.
const SHORTEST_PAUSE: Duration = Duration::from_millis(150);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The move of one server.
struct Move<'a> {
    at: &'a HostOf<'a>,
    looks: Arc<HostLooks>,
    /// Held until the evacuation is asked for, or is not needed.
    turn: Option<AskingTurn>,
    server: &'a str,
    begun: Instant,
    /// The server's last evacuation.
    last: Option<Evacuation>,
    /// The newest evacuation from before this attempt.
    known: u64,
    asked_at: Option<Instant>,
    /// Whether Nova may yet carry out a request that it has not answered.
    open: &'a Unanswered,
    /// Since when Nova has reported a rebuild without a record of an evacuation.
    rebuilding_since: Option<Instant>,
    /// Whether the records have to be read before the next step.
    must_look: bool,
    waited_since: Instant,
    /// Whether the server's state was declared.
    is_declared: bool,
    /// The number of an evacuation that is not waited for, since its destination is dead.
    given_up: Option<u64>,
    /// When the destination was last checked.
    destination_seen_at: Instant,
    /// Whether the attempt may only look, and ask for nothing.
    only_looks: bool,
    /// The state in which the owner left the server.
    was: WorkloadState,
    /// Whether the server is to end stopped.
    is_off: bool,
    /// Whether the server was started on its new host.
    is_started: bool,
    looks_for_fault: u32,
    report: MoveReport,
}

/// What follows a look.
enum Next {
    Look,
    Wait,
    Over(Done),
}

impl HostOf<'_> {
    pub(super) async fn move_away(
        &self,
        step: &MoveStep,
        open: &Unanswered,
        looks: &Looks,
    ) -> Result<Done, BackendError> {
        let mut belongings = Belongings::of(self, &step.cut_off_by);
        let mut moving = Move::begin(self, looks, step, open).await?;
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

    /// The pause grows with the time waited, so that it adds only a small part to the whole.
    fn pause_after(&self, waited: Duration) -> Duration {
        let pause = (waited / 20).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        let left = self.time.left();
        pause.min(left.saturating_sub(PAUSE)).max(SHORTEST_PAUSE)
    }
}

impl<'a> Move<'a> {
    async fn begin(
        at: &'a HostOf<'a>,
        looks: &'a Looks,
        step: &'a MoveStep,
        open: &'a Unanswered,
    ) -> Result<Self, BackendError> {
        let begun = Instant::now();
        let looks = looks.of(at);
        let turn = match step.only_look {
            true => None,
            false => Some(looks.turn().await),
        };
        let workload = &step.workload;
        let given_up = step.given_up.as_ref().and_then(|id| id.parse().ok());
        let last = looks.last_evacuation(at, &workload.id, recent(begun)).await?;
        let last = last.map(|last| unless_given_up(last, given_up));
        Ok(Self {
            at,
            looks,
            turn,
            server: &workload.id,
            begun,
            known: last.as_ref().map_or(0, |evacuation| evacuation.id),
            last,
            asked_at: None,
            open,
            given_up,
            destination_seen_at: begun,
            rebuilding_since: None,
            must_look: false,
            waited_since: begun,
            is_declared: false,
            only_looks: step.only_look,
            was: workload.state,
            is_off: workload.state == WorkloadState::Stopped,
            is_started: false,
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

    /// The evacuation that its destination has begun. The order of an evacuation that is only accepted may still wait for its destination,
    /// which would carry it out when it is back.
    fn under_way(&self) -> Option<Stuck> {
        let has_begun = |last: &&Evacuation| last.status == EvacuationStatus::PreMigrating;
        let last = self.last.as_ref().filter(has_begun)?;
        let to = last.to.clone()?;
        Some(Stuck {
            id: last.id.to_string(),
            to,
        })
    }

    /// Nova waits for ever for a destination that was forced down. The engine knows whether that host is dead.
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
            "nova has not ended the evacuation, and its destination {} is forced down",
            stuck.to
        );
        Ok(Some(Done::NotYet(why, Some(self.found()))))
    }

    /// Once Nova carries out the evacuation, a look that fails is repeated: the next attempt would know less.
    fn goes_on_after(&self, error: &BackendError) -> bool {
        self.asked_at.is_some() && (error.is_passing() || self.open.is_open())
    }

    async fn see(&self) -> Result<Sight, BackendError> {
        if let Some(last) = self.last.as_ref().filter(|last| self.has_brought(last)) {
            return Ok(Sight::told_by(last));
        }
        // A server that was evacuated before may be elsewhere since it was listed.
        if self.last.is_none()
            && let Some((listed_at, server)) = self.looks.take_listed(self.server, Instant::now())
        {
            return Ok(Sight::listed(self.last.clone(), server, listed_at));
        }
        self.at.see(self.server, self.last.clone()).await
    }

    /// Whether it is this attempt's evacuation, and has brought the server somewhere: Nova writes `done` last. `completed` says less:
    /// `nova-compute` writes it when it starts on the host, also for an evacuation that is under way.
    fn has_brought(&self, last: &Evacuation) -> bool {
        self.asked_at.is_some()
            && self.is_new(last)
            && last.status == EvacuationStatus::Done
            && last.to.is_some()
    }

    /// Whether the evacuation was asked for after this attempt began.
    fn is_new(&self, evacuation: &Evacuation) -> bool {
        evacuation.id > self.known
    }

    async fn act(&mut self, sight: &Sight, belongings: &mut Belongings<'_>) -> Result<Next, BackendError> {
        let step = sight.step(self.at.host);
        let ports_left = belongings.release_ports(self.server, &step).await?;
        match step {
            Situation::Arrived(to) => match belongings.left(self.server, ports_left).await? {
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
            Situation::Failed(why) if self.asked_at.is_some() => self.failed(why).await,
            // An evacuation that failed before this attempt does not stop another.
            Situation::Ask | Situation::Failed(_) if self.asked_at.is_none() => self.ask(sight).await,
            // Nova has accepted the request, and has no record yet.
            Situation::Ask | Situation::Failed(_) | Situation::Wait => Ok(Next::Wait),
        }
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
}

/// The record of an evacuation that is given up, without Nova's status: nothing carries it out any more.
fn unless_given_up(mut last: Evacuation, given_up: Option<u64>) -> Evacuation {
    if last.status == EvacuationStatus::PreMigrating && given_up.is_some_and(|record| last.id <= record) {
        last.status = EvacuationStatus::Other("given up".to_owned());
    }
    last
}
