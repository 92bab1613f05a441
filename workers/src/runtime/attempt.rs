//! One claimed attempt: a driver at work, watched until it has stopped.

use std::sync::Arc;
use std::time::Duration;

use ringfence_bus::TaskMessage;
use ringfence_core::{Finding, MoveReport, Outcome, Resource};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinError;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use super::context::Context;
use super::locks::Held;
use super::metrics::Metrics;
use super::task::End;
use crate::driver::{Open, Report, WorkloadJob};
use crate::secrets::Secrets;
use crate::{WorkerError, act};

/// A driver ends by itself this long before the granted time does, so that it can say what it saw.
const MARGIN: Duration = Duration::from_millis(200);
/// How long a driver that was told to stop is waited for.
const STOP_WAIT: Duration = Duration::from_secs(30);

/// The device, and a place among those who act. The place comes last: who waits for a device keeps nobody from acting.
pub(super) struct Turn {
    _held: Held,
    _place: OwnedSemaphorePermit,
}

impl Turn {
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
    /// What its backend may yet do.
    pub open: Arc<Open>,
}

impl Attempt {
    /// Lets the driver act until it ends, the time is up, or `taken_back` says why it must stop.
    pub(super) async fn carry_out(self, turn: Option<Turn>, taken_back: impl Future<Output = String>) -> End {
        let open = Arc::clone(&self.open);
        match self.watch(turn, taken_back).await {
            End::Report(report) if open.is_open() => End::Report(unanswered(report)),
            end => end,
        }
    }

    async fn watch(self, turn: Option<Turn>, taken_back: impl Future<Output = String>) -> End {
        let (context, until) = (Arc::clone(&self.context), self.until);
        let work = tokio::spawn(self.drive(turn).in_current_span());
        let mut work = AbortOnDropHandle::new(work);
        let why = tokio::select! {
            ended = &mut work => return finished(&context, ended),
            why = taken_back => format!("the engine took the attempt back: {why}"),
            () = sleep_until(until) => "the granted time ran out".to_owned(),
            () = context.stop_drivers.cancelled() => "the worker was stopped".to_owned(),
        };
        work.abort();
        match timeout(STOP_WAIT, work).await {
            Ok(Err(stopped)) if stopped.is_cancelled() => End::Report(Report::unknown(why)),
            Ok(ended) => finished(&context, ended),
            Err(_) => {
                Metrics::count(&context.metrics.drivers_stuck);
                tracing::error!(why, "a driver does not stop; nothing is reported");
                End::Stuck
            }
        }
    }

    async fn drive(self, turn: Option<Turn>) -> Report {
        let _turn = match turn {
            Some(turn) => turn,
            None => match timeout_at(self.until, self.wait_for_turn()).await {
                Ok(Some(turn)) => turn,
                Ok(None) | Err(_) => {
                    return Report::unknown("this worker's last command to the device had not ended");
                }
            },
        };
        let secrets = match self.secrets().await {
            Ok(secrets) => secrets,
            Err(error) => return error.into(),
        };
        let report = act::clean(self.ask_driver(&secrets).await, &secrets);
        self.believe(report)
    }

    async fn wait_for_turn(&self) -> Option<Turn> {
        let held = self.context.locks.hold(self.task.method.device.as_deref()).await;
        Turn::new(&self.context, held).await
    }

    async fn secrets(&self) -> Result<Secrets, WorkerError> {
        timeout_at(self.until, resolve(&self.task.method.secrets))
            .await
            .unwrap_or_else(|_| Err(WorkerError::unclear("the secrets could not be read in time")))
    }

    async fn ask_driver(&self, secrets: &Secrets) -> Report {
        let method = &self.task.method;
        let left = self.until.saturating_duration_since(Instant::now());
        let budget = left - MARGIN.min(left / 10);
        let missing = || Report::refused(format!("this worker has no driver {}", method.driver));
        if self.task.kind.resource() == Resource::Workloads {
            let Some(driver) = self.context.drivers.workloads(method.driver) else {
                return missing();
            };
            return driver.carry_out(self.workload_job(), budget).await;
        }
        let Some(driver) = self.context.drivers.get(method.driver) else {
            return missing();
        };
        driver
            .act_and_observe(self.task.kind, method, secrets, budget)
            .await
    }

    fn workload_job(&self) -> WorkloadJob<'_> {
        WorkloadJob {
            kind: self.task.kind,
            method: &self.task.method,
            workload: self.task.workload.as_deref(),
            open: &self.open,
        }
    }

    /// Whatever a driver says: confirmed is only what was read back.
    fn believe(&self, report: Report) -> Report {
        let wanted = self.task.kind.wanted_state();
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
        Some(Finding::Workloads(_)) | None => MoveReport::default(),
    };
    Report {
        finding: Some(Finding::Move(MoveReport {
            unanswered: true,
            ..found
        })),
        ..report
    }
}

/// Off the async threads: files may be slow.
pub(super) async fn resolve(
    references: &std::collections::BTreeMap<String, ringfence_core::SecretReference>,
) -> Result<Secrets, WorkerError> {
    if references.is_empty() {
        return Secrets::resolve(references);
    }
    let references = references.clone();
    tokio::task::spawn_blocking(move || Secrets::resolve(&references))
        .await
        .unwrap_or_else(|_| Err(WorkerError::unclear("the secrets could not be read")))
}

fn finished(context: &Context, ended: Result<Report, JoinError>) -> End {
    End::Report(ended.unwrap_or_else(|_| {
        Metrics::count(&context.metrics.driver_panics);
        tracing::error!("a driver panicked");
        Report::unknown("the driver died in the middle of the attempt")
    }))
}
