//! Drivers that act on nothing: they read what hosts write to a shared storage to show that they are alive.
//!
//! A storage that is gone may hold a reading for ever. So each reading has a thread of its own, beside those that serve, and a method, as it is filled in, has one at a time.

mod direct;
mod file;
mod lease;
mod sanlock;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    FencingKind, FrozenMethod, Heartbeat, MethodId, Observation, ObservedState, Parameter, Parameters,
    Problem, value_of,
};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

pub(super) use self::file::DRIVER as FILE;
pub(super) use self::sanlock::DRIVER as SANLOCK;
use crate::driver::{Clock, Driver, DriverSettings, Report};
use crate::{Secrets, WorkerError};

/// Readings of one driver that have not come back; a storage that hangs keeps a thread each.
const MOST_UNDER_WAY: usize = 16;
/// Between two looks whether the reading before has come back.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Hosts of one reading.
const MOST_HOSTS: usize = 500;
const HOST: &str = "host";
/// The parameter that says after how many seconds without a heartbeat a host is UNREACHABLE.
const SILENT_AFTER: &str = "silent_after_s";
const ALLOWED_PATH: &str = "an absolute path is allowed";

/// Methods, each as it is filled in.
type UnderWay = Arc<Mutex<BTreeSet<(MethodId, Parameters)>>>;
type Answer = Result<BTreeMap<String, Heartbeat>, WorkerError>;
/// Reads a storage, however long that takes.
type Read = fn(&Parameters, &[String]) -> Answer;

/// A driver that reads heartbeats.
struct Reads {
    read: Read,
    clock: Clock,
    under_way: UnderWay,
}

impl Reads {
    fn new(read: Read, settings: &DriverSettings) -> Self {
        Self {
            read,
            clock: Arc::clone(&settings.clock),
            under_way: Arc::default(),
        }
    }

    /// Reads in a thread of its own.
    async fn read(&self, method: &FrozenMethod, hosts: &[String]) -> Answer {
        let place = self.place(method).await;
        let (read, parameters, hosts) = (self.read, method.parameters.clone(), hosts.to_vec());
        let (sender, answer) = oneshot::channel();
        let reading = move || {
            let read = read(&parameters, &hosts);
            drop(place);
            // An answer that comes too late is not waited for.
            let _ = sender.send(read);
        };
        std::thread::Builder::new()
            .name("heartbeats".to_owned())
            .spawn(reading)
            .map_err(|error| WorkerError::unclear(format!("no thread could be started: {error}")))?;
        let broke_off = |_| Err(WorkerError::unclear("the reading broke off"));
        answer.await.unwrap_or_else(broke_off)
    }

    /// Waits until no other reading of the method, as it is filled in, is under way.
    async fn place(&self, method: &FrozenMethod) -> Place {
        let method = (method.id, method.parameters.clone());
        loop {
            if let Some(place) = Place::take(&self.under_way, &method) {
                return place;
            }
            sleep(LOOK_AGAIN).await;
        }
    }
}

/// The one reading of a method that may be under way.
struct Place {
    all: UnderWay,
    method: (MethodId, Parameters),
}

impl Place {
    fn take(all: &UnderWay, method: &(MethodId, Parameters)) -> Option<Self> {
        let mut taken = all.lock();
        let is_free = taken.len() < MOST_UNDER_WAY && taken.insert(method.clone());
        is_free.then(|| Self {
            all: Arc::clone(all),
            method: method.clone(),
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.all.lock().remove(&self.method);
    }
}

#[async_trait]
impl Driver for Reads {
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
        _: &Secrets,
        budget: Duration,
    ) -> Result<Observation, WorkerError> {
        let host = value_of(&method.parameters, HOST).map(ToOwned::to_owned);
        let read = self.heartbeats(method, host.as_slice(), budget).await?;
        let (state, detail) = match read.into_values().next() {
            None => (ObservedState::Readable, "the storage can be read".to_owned()),
            Some(Heartbeat::Written { writer, mark }) => (
                ObservedState::Readable,
                format!("a heartbeat is there: {writer} {mark}"),
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

    async fn heartbeats(&self, method: &FrozenMethod, hosts: &[String], budget: Duration) -> Answer {
        if hosts.len() > MOST_HOSTS {
            let count = hosts.len();
            return Err(WorkerError::refused(format!(
                "{count} hosts are too many for one reading; {MOST_HOSTS} are allowed"
            )));
        }
        let late = |_| Err(WorkerError::unclear("the storage did not answer in time"));
        timeout(budget, self.read(method, hosts))
            .await
            .unwrap_or_else(late)
    }

    async fn validate(&self, _: &ValidateRequest) -> Vec<Problem> {
        Vec::new()
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ringfence_core::{MethodTimes, Resource, Timestamp};
    use uuid::Uuid;

    use super::*;

    /// Comes back once the file of this name is there, as a storage that hangs and returns.
    fn hanging(parameters: &Parameters, _: &[String]) -> Answer {
        while !Path::new(needed(parameters, "file")?).exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(BTreeMap::new())
    }

    fn method(number: u128, file: &Path) -> FrozenMethod {
        FrozenMethod {
            id: MethodId(Uuid::from_u128(number)),
            name: "m".to_owned(),
            resource: Resource::Heartbeat,
            driver: "hanging".to_owned(),
            parameters: [("file".to_owned(), file.display().to_string())].into(),
            secrets: BTreeMap::new(),
            zone: "default".to_owned(),
            device: None,
            service_of: None,
            can_prove: false,
            times: MethodTimes::default(),
        }
    }

    #[tokio::test]
    async fn a_storage_that_hangs_holds_one_thread_and_keeps_no_other_from_being_read() {
        let dir = tempfile::tempdir().unwrap();
        let (gone, there) = (method(1, &dir.path().join("gone")), method(2, dir.path()));
        let reads = Reads::new(hanging, &DriverSettings::new(Arc::new(|| Timestamp::UNIX_EPOCH)));
        let read = async |method, budget_ms| {
            reads
                .heartbeats(method, &[], Duration::from_millis(budget_ms))
                .await
        };
        for _ in 0..3 {
            let late = read(&gone, 100).await.unwrap_err();
            assert_eq!(late.to_string(), "the storage did not answer in time");
        }
        assert_eq!(reads.under_way.lock().len(), 1);
        read(&there, 10_000).await.unwrap();
        std::fs::write(dir.path().join("gone"), "").unwrap();
        read(&gone, 10_000).await.unwrap();
        while !reads.under_way.lock().is_empty() {
            sleep(LOOK_AGAIN).await;
        }
    }
}
