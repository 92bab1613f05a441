//! Drivers that act on nothing: they read what hosts write to a shared storage to show that they are alive, or what a storage tells of its clients.

mod addresses;
mod direct;
mod file;
mod lease;
mod linstor;
mod nfs;
mod rbd;
mod sanlock;
mod thread;

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    FencingKind, FrozenMethod, Heartbeat, Observation, ObservedState, Parameter, Parameters, Problem,
    value_of,
};
use tokio::time::{Instant, timeout_at};

pub(super) use self::file::DRIVER as FILE;
pub(super) use self::linstor::DRIVER as LINSTOR;
pub(super) use self::nfs::DRIVER as NFS;
pub(super) use self::rbd::DRIVER as RBD;
pub(super) use self::sanlock::DRIVER as SANLOCK;
use crate::driver::{Clock, Driver, Report};
use crate::{Secrets, WorkerError};

/// Hosts of one reading.
const MOST_HOSTS: usize = 500;
const HOST: &str = "host";
/// The parameter that says after how many seconds without a heartbeat a host is UNREACHABLE.
const SILENT_AFTER: &str = "silent_after_s";
const ALLOWED_PATH: &str = "an absolute path is allowed";

type Answer = Result<BTreeMap<String, Heartbeat>, WorkerError>;

/// A storage that can be read.
#[async_trait]
trait Storage: Send + Sync {
    /// What it shows of these hosts. What comes later than `until` is dropped.
    async fn read(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        hosts: &[String],
        until: Instant,
    ) -> Answer;

    /// As [`Driver::validate`].
    async fn validate(&self, _: &ValidateRequest) -> Vec<Problem> {
        Vec::new()
    }
}

/// A driver that reads this storage.
struct Reads<S> {
    storage: S,
    clock: Clock,
}

#[async_trait]
impl<S: Storage> Driver for Reads<S> {
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        _: &Secrets,
        _: Duration,
    ) -> Report {
        Report::refused(format!("driver {} cannot do {kind}", method.driver))
    }

    /// Of the host that the method was filled in for; without one, whether the storage can be read.
    async fn observe(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Result<Observation, WorkerError> {
        let host = value_of(&method.parameters, HOST).map(ToOwned::to_owned);
        let read = self.heartbeats(method, secrets, host.as_slice(), budget).await?;
        let (state, detail) = match read.into_values().next() {
            None => (ObservedState::Readable, "the storage can be read".to_owned()),
            Some(Heartbeat::Written { writer, mark }) => (
                ObservedState::Readable,
                format!("a heartbeat is there: {writer} {mark}"),
            ),
            Some(Heartbeat::Heard { by, within_s }) => (
                ObservedState::Readable,
                format!("the storage has heard the host within {within_s} s: {by}"),
            ),
            Some(Heartbeat::Unheard) => (
                ObservedState::Readable,
                "the storage does not hear the host".to_owned(),
            ),
            Some(Heartbeat::Unclear { why }) => (ObservedState::Unknown, why),
        };
        Ok(Observation {
            state,
            detail,
            observed_at: (self.clock)(),
            after_ms: 0,
            before: None,
            proves: false,
        })
    }

    async fn heartbeats(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        hosts: &[String],
        budget: Duration,
    ) -> Answer {
        if hosts.len() > MOST_HOSTS {
            let count = hosts.len();
            return Err(WorkerError::refused(format!(
                "{count} hosts are too many for one reading; {MOST_HOSTS} are allowed"
            )));
        }
        let late = |_| Err(WorkerError::unclear("the storage did not answer in time"));
        let until = Instant::now() + budget;
        let reading = self.storage.read(method, secrets, hosts, until);
        timeout_at(until, reading).await.unwrap_or_else(late)
    }

    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        self.storage.validate(request).await
    }
}

/// `allowed` and `words` say after how many seconds: longer than the time between two heartbeats.
const fn silent_after(default: &'static str, words: &'static str, allowed: fn(&str) -> bool) -> Parameter {
    Parameter::optional(
        SILENT_AFTER,
        "seconds without a heartbeat after which a host that wrote before is UNREACHABLE",
    )
    .by_default(default)
    .allowing(words, allowed)
}

/// Whether a text is so many seconds, up to an hour.
fn are_seconds(text: &str, at_least: u32) -> bool {
    text.parse()
        .is_ok_and(|seconds: u32| (at_least..=3_600).contains(&seconds))
}

fn unclear(why: impl Into<String>) -> Heartbeat {
    Heartbeat::Unclear { why: why.into() }
}

fn needed<'a>(parameters: &'a Parameters, name: &str) -> Result<&'a str, WorkerError> {
    value_of(parameters, name).ok_or_else(|| WorkerError::refused(format!("the method has no {name}")))
}
