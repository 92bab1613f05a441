//! The interface of Ringfence to platforms: the state of their hosts, and the steps for their workloads.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ringfence_core::{
    Backend, Finding, Generation, Movable, Outcome, PlatformHost, Poll, Timestamp, WorkloadStep,
};

use crate::BackendError;

/// A cloud or a cluster, which places workloads on hosts.
#[async_trait]
pub trait Platform: Send + Sync + Debug {
    /// The platform's name in the configuration.
    fn name(&self) -> &str;

    /// The platform's kind.
    fn kind(&self) -> Backend;

    /// How long one call may take.
    fn timeout(&self) -> Duration;

    /// The kind and the name: the source of the platform's reports.
    fn label(&self) -> String {
        self.kind().label(self.name())
    }

    /// The state of all hosts: what the platform answers when it is asked, or what it has reported by itself so far.
    ///
    /// # Errors
    /// The platform is away, or refuses.
    async fn look(&self) -> Result<Poll, BackendError>;

    /// Waits until a look may show something new. Every platform is also asked in intervals: the wait for one that reports nothing by
    /// itself never ends.
    async fn changed(&self) {
        std::future::pending().await
    }

    /// Brings what the platform has been told of its hosts to what holds now, where others have changed it since the last look. The hosts
    /// are all that the platform has on record, as they were read after that look: what a step has changed meanwhile stays.
    ///
    /// # Errors
    /// The platform is away, or refuses.
    async fn keep(&self, _: &[KeptHost<'_>]) -> Result<(), BackendError> {
        Ok(())
    }

    /// The platform's gates which hold while every process of Ringfence is down. Nothing is changed.
    ///
    /// # Errors
    /// The platform is away, or refuses.
    async fn gates(&self) -> Result<Vec<SeenGate>, BackendError> {
        Ok(Vec::new())
    }

    /// Whether a host that a list of the platform does not name has left it for good, as the platform says when it is asked now. A platform that
    /// cannot tell for certain says so.
    ///
    /// # Errors
    /// The platform is away, or refuses.
    async fn departure(&self, _: &str) -> Result<Departure, BackendError> {
        Ok(Departure::NotTold)
    }

    /// Whether the platform can be used. Nothing is changed.
    async fn preflight(&self, now: Timestamp) -> Vec<Preflight>;

    /// Whether the platform's hosts can be fenced by a driver of its own services. Nothing is changed.
    async fn preflight_fencing(&self, driver: &str) -> Vec<Preflight>;

    /// Does a step and reads it back; the answer to a command proves nothing. When the future is dropped, it sends nothing more; the next
    /// attempt finds what the platform has begun by then.
    async fn carry_out(&self, order: StepOrder<'_>, budget: Duration) -> StepReport;
}

/// Whether a host has left its platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Nothing of the platform speaks of it any more.
    Gone,
    /// Something still does: what.
    Remains(String),
    /// The platform cannot tell for certain.
    NotTold,
}

/// What holds for one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptHost<'a> {
    /// The host's name on the platform.
    pub host: &'a str,
    /// Its generation.
    pub generation: Generation,
    /// Which of its workloads may be started elsewhere; `None` if none may.
    pub movable: Option<Movable>,
    /// Whether the platform has to be kept from starting workloads on it.
    pub is_isolated: bool,
    /// Whether marks on it that keep workloads off it are left over from a fence that is over.
    pub is_mark_left_over: bool,
}

/// A gate of a platform, as the platform has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenGate {
    /// Its name.
    pub name: &'static str,
    /// Whether it holds.
    pub state: GateState,
}

/// Whether a gate of a platform holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateState {
    /// It is there as it was shipped.
    Installed,
    /// It is not there.
    Missing,
    /// It is there, and not as it was shipped: what differs.
    Changed(String),
    /// The platform's version has no such gates.
    NotAvailable,
}

impl GateState {
    /// All words for it.
    pub const WORDS: [&str; 4] = ["installed", "missing", "changed", "not_available"];

    /// In one word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Installed => Self::WORDS[0],
            Self::Missing => Self::WORDS[1],
            Self::Changed(_) => Self::WORDS[2],
            Self::NotAvailable => Self::WORDS[3],
        }
    }
}

/// One step of an order.
#[derive(Clone, Copy, Debug)]
pub struct StepOrder<'a> {
    /// The step.
    pub step: &'a WorkloadStep,
    /// The host.
    pub at: &'a PlatformHost,
    /// Which workloads may be let go.
    pub movable: Movable,
    /// The generation of the operation.
    pub generation: Generation,
    /// Whether the platform may yet carry out a request that it has not answered.
    pub unanswered: &'a Unanswered,
}

/// How a step went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepReport {
    /// `Confirmed` only where the result was read back.
    pub outcome: Outcome,
    /// What was read back, or why the step is not done.
    pub detail: String,
    /// A finding besides.
    pub finding: Option<Finding>,
}

/// Whether a platform was asked to start a workload elsewhere, has not answered, and shows no sign of the request. The worker that stops
/// the step reads it.
#[derive(Debug, Default)]
pub struct Unanswered(AtomicBool);

impl Unanswered {
    /// A request is being made.
    pub fn begin(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// The request is answered, or the platform shows it.
    pub fn end(&self) {
        self.0.store(false, Ordering::SeqCst);
    }

    /// Whether the platform may yet carry out the request.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// One result of the checks of a platform before it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preflight {
    /// All is well.
    Good(String),
    /// The platform works, but something is wrong: what, and what to do.
    Warning(String, String),
    /// The platform cannot be used for something: what, and what to do.
    Failure(String, String),
}
