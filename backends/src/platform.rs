//! The one way in which the rest of Ringfence speaks to platforms: what their hosts look like, and what is done to their workloads.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ringfence_core::{Backend, Finding, Outcome, PlatformHost, Poll, Timestamp, WorkloadStep};

use crate::BackendError;

/// A cloud or a cluster, which places workloads on hosts.
#[async_trait]
pub trait Platform: Send + Sync + Debug {
    /// Its name in the configuration.
    fn name(&self) -> &str;

    /// Which sort it is.
    fn kind(&self) -> Backend;

    /// How long one question to it may take.
    fn timeout(&self) -> Duration;

    /// Its name with its sort before it: the source of its reports.
    fn label(&self) -> String {
        self.kind().label(self.name())
    }

    /// How all its hosts look at this moment: what it tells when it is asked, or what it has told by then of its own accord.
    ///
    /// # Errors
    /// It is away, or refuses.
    async fn look(&self) -> Result<Poll, BackendError>;

    /// Waits until a look may show something new. Platforms are asked in intervals as well: one that tells nothing of its own accord never
    /// ends this wait.
    async fn changed(&self) {
        std::future::pending().await
    }

    /// Whether it can be used. Nothing is changed.
    async fn preflight(&self, now: Timestamp) -> Vec<Preflight>;

    /// Whether its hosts can be fenced by a driver of its own services. Nothing is changed.
    async fn preflight_fencing(&self, driver: &str) -> Vec<Preflight>;

    /// Does a step, and reads it back; what it answered to a command is never believed. Dropped, it sends nothing more; what the platform
    /// has taken by then, the next attempt finds there.
    async fn carry_out(&self, order: StepOrder<'_>, budget: Duration) -> StepReport;
}

/// One step to do.
#[derive(Clone, Copy, Debug)]
pub struct StepOrder<'a> {
    /// What.
    pub step: &'a WorkloadStep,
    /// Of which host.
    pub at: &'a PlatformHost,
    /// Whether the platform may yet do something that it was asked for.
    pub unanswered: &'a Unanswered,
}

/// How a step went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    /// `Confirmed` only where it was read back.
    pub outcome: Outcome,
    /// What was read back; else why it is not done.
    pub detail: String,
    /// What was found out beside that.
    pub finding: Option<Finding>,
}

/// Whether a platform was asked to start a workload elsewhere, has not answered, and shows nothing of it. The worker that stops the step
/// reads it.
#[derive(Debug, Default)]
pub struct Unanswered(AtomicBool);

impl Unanswered {
    /// It is being asked.
    pub fn begin(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// It has answered, or what it was asked for is to be seen.
    pub fn end(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    /// Whether it may yet be carried out.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// One thing that was found when a platform was looked at before it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preflight {
    /// As it should be.
    Good(String),
    /// It works, and something is not as it should be: what, and what to do.
    Warning(String, String),
    /// It cannot be used for something: what, and what to do.
    Failure(String, String),
}
