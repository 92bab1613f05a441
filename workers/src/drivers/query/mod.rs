//! Drivers that act on nothing: they ask others whether a fence of a host may begin.

mod prometheus;
mod reach;
mod webhook;

use std::time::Duration;

use async_trait::async_trait;
use ringfence_bus::ValidateRequest;
use ringfence_core::{Answer, FencingKind, FrozenMethod, Observation, Problem, Question};
use tokio::time::Instant;

pub(super) use self::prometheus::DRIVER as PROMETHEUS;
pub(super) use self::reach::DRIVER as REACH;
pub(super) use self::webhook::DRIVER as WEBHOOK;
use crate::driver::{Driver, Report};
use crate::{Secrets, WorkerError};

/// The longest reason, in characters.
const MAX_REASON_CHARS: usize = 500;

/// Others that can be asked.
#[async_trait]
trait Others: Send + Sync {
    /// What they say; it is unclear what they say later than `until`.
    async fn ask(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        question: &Question,
        until: Instant,
    ) -> Result<Answer, WorkerError>;
}

/// A driver that asks these.
struct Asks<O>(O);

#[async_trait]
impl<O: Others> Driver for Asks<O> {
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        _: &Secrets,
        _: Duration,
    ) -> Report {
        Report::refused(format!("driver {} cannot do {kind}", method.driver))
    }

    async fn observe(
        &self,
        method: &FrozenMethod,
        _: &Secrets,
        _: Duration,
    ) -> Result<Observation, WorkerError> {
        Err(WorkerError::refused(format!(
            "driver {} reads no device",
            method.driver
        )))
    }

    async fn ask(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        question: &Question,
        budget: Duration,
    ) -> Result<Answer, WorkerError> {
        let until = Instant::now() + budget;
        let answer = self.0.ask(method, secrets, question, until).await?;
        let reason = secrets.mask(&answer.reason);
        Ok(Answer {
            reason: reason.chars().take(MAX_REASON_CHARS).collect(),
            ..answer
        })
    }

    async fn validate(&self, _: &ValidateRequest) -> Vec<Problem> {
        Vec::new()
    }
}
