//! One claimed attempt: a driver at work, watched until it has stopped.

use std::sync::Arc;
use std::time::Duration;

use ringfence_backends::{StepOrder, Unanswered};
use ringfence_bus::TaskMessage;
use ringfence_core::{
    FencingKind, Finding, FrozenMethod, Job, Movable, MoveReport, Outcome, PlatformHost, WorkloadStep,
};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinError;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use super::context::Context;
use super::locks::Held;
use super::metrics::Metrics;
use super::task::{End, device_of};
use crate::driver::Report;
use crate::{WorkerError, act};

/// A driver ends by itself this long before the granted time does, so that it can say what it saw.
const MARGIN: Duration = Duration::from_millis(200);
/// How long a driver that was told to stop is waited for.
const STOP_WAIT: Duration = Duration::from_secs(30);

/// The device, and a place among the attempts that act. The place comes last: an attempt that waits for its device keeps no other from acting.
pub(super) struct ActingPermit {
    _held: Held,
    _place: OwnedSemaphorePermit,
}

impl ActingPermit {
    pub(super) async fn new(context: &Context, held: Held) -> Option<Self> {
        let place = Arc::clone(&context.acting).acquire_owned().await.ok()?;
        Some(Self {
            _held: held,
            _place: place,
        })
    }
}

pub(super) struct Attempt {
    pub context: Arc<Context>,
    pub task: TaskMessage,
    /// When everything must have stopped.
    pub until: Instant,
    /// What its platform may yet do.
    pub unanswered: Arc<Unanswered>,
}

impl Attempt {
    /// Lets the driver act until it ends, the time is up, or `taken_back` says why it must stop.
    pub(super) async fn carry_out(
        self,
        permit: Option<ActingPermit>,
        taken_back: impl Future<Output = String>,
    ) -> End {
        let asked = Arc::clone(&self.unanswered);
        match self.watch(permit, taken_back).await {
            End::Report(report) if asked.is_open() => End::Report(Box::new(unanswered(*report))),
            end => end,
        }
    }

    async fn watch(self, permit: Option<ActingPermit>, taken_back: impl Future<Output = String>) -> End {
        let (context, until) = (Arc::clone(&self.context), self.until);
        let work = tokio::spawn(self.drive(permit).in_current_span());
        let mut work = AbortOnDropHandle::new(work);
        let why = tokio::select! {
            ended = &mut work => return finished(&context, ended),
            why = taken_back => format!("the engine took the attempt back: {why}"),
            () = sleep_until(until) => "the granted time ran out".to_owned(),
            () = context.stop_drivers.cancelled() => "the worker was stopped".to_owned(),
        };
        work.abort();
        match timeout(STOP_WAIT, work).await {
            Ok(Err(stopped)) if stopped.is_cancelled() => End::Report(Box::new(Report::unknown(why))),
            Ok(ended) => finished(&context, ended),
            Err(_) => {
                Metrics::count(&context.metrics.drivers_stuck);
                tracing::error!(why, "a driver does not stop; nothing is reported");
                End::Stuck
            }
        }
    }

    async fn drive(self, permit: Option<ActingPermit>) -> Report {
        let _permit = match permit {
            Some(permit) => permit,
            None => match timeout_at(self.until, self.wait_for_permit()).await {
                Ok(Some(permit)) => permit,
                Ok(None) | Err(_) => {
                    return Report::unknown("this worker's last command to the device had not ended");
                }
            },
        };
        let report = match &self.task.job {
            Job::Fencing { kind, method } => self.ask_driver(*kind, method).await,
            Job::Step { step, at, movable } => self.ask_platform(step, at, *movable).await,
        };
        self.believe(report)
    }

    async fn wait_for_permit(&self) -> Option<ActingPermit> {
        let held = self.context.locks.hold(device_of(&self.task.job)).await;
        ActingPermit::new(&self.context, held).await
    }

    /// The time that a driver has, with a margin in which it can say what it saw.
    fn budget(&self) -> Duration {
        let left = self.until.saturating_duration_since(Instant::now());
        left - MARGIN.min(left / 10)
    }

    async fn ask_driver(&self, kind: FencingKind, method: &FrozenMethod) -> Report {
        let secrets = timeout_at(self.until, self.context.drivers.secrets(&method.secrets)).await;
        let secrets = match secrets {
            Ok(Ok(secrets)) => secrets,
            Ok(Err(error)) => return error.into(),
            Err(_) => return WorkerError::unclear("the secrets could not be read in time").into(),
        };
        let Some(driver) = self.context.drivers.get(&method.driver) else {
            return Report::refused(format!("this worker has no driver {}", method.driver));
        };
        let report = driver.act_and_observe(kind, method, &secrets, self.budget());
        act::clean(report.await, &secrets)
    }

    async fn ask_platform(&self, step: &WorkloadStep, at: &PlatformHost, movable: Movable) -> Report {
        let Some(platform) = self.context.drivers.platform_of(at) else {
            return Report::refused(format!("this worker's configuration has no {}", at.label()));
        };
        let order = StepOrder {
            step,
            at,
            movable,
            generation: self.task.generation,
            unanswered: &self.unanswered,
        };
        platform.carry_out(order, self.budget()).await
    }

    /// Whatever a driver says: confirmed is only what was read back.
    fn believe(&self, report: Report) -> Report {
        let wanted = self.task.job.kind().wanted_state();
        let read_back = report.observation.as_ref().is_some_and(|o| o.state == wanted);
        if report.outcome == Outcome::Confirmed && !read_back {
            let detail = format!("confirmed without reading back {}", wanted.as_str());
            return Report {
                outcome: Outcome::Unknown,
                detail,
                ..report
            };
        }
        report
    }
}

/// However the driver ended: what it asked for may come yet.
fn unanswered(report: Report) -> Report {
    let found = match &report.finding {
        Some(Finding::Move(found)) => found.clone(),
        Some(Finding::Workloads(_) | Finding::Away) | None => MoveReport::default(),
    };
    Report {
        finding: Some(Finding::Move(MoveReport {
            unanswered: true,
            ..found
        })),
        ..report
    }
}

fn finished(context: &Context, ended: Result<Report, JoinError>) -> End {
    End::Report(Box::new(ended.unwrap_or_else(|_| {
        Metrics::count(&context.metrics.driver_panics);
        tracing::error!("a driver panicked");
        Report::unknown("the driver died in the middle of the attempt")
    })))
}
