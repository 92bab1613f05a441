//! Storages that are read as files: one that is gone may hold a reading for ever.
//!
//! So each reading has a thread of its own, beside those that serve, and a method, as it is filled in, has one at a time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use ringfence_core::{FrozenMethod, MethodId, Parameters};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::{Answer, Reads, Storage};
use crate::driver::DriverSettings;
use crate::{Secrets, WorkerError};

/// Readings of one driver that have not come back; a storage that hangs keeps a thread each.
const MOST_UNDER_WAY: usize = 16;
/// Between two looks whether the reading before has come back.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Methods, each as it is filled in.
type UnderWay = Arc<Mutex<BTreeSet<(MethodId, Parameters)>>>;
/// Reads a storage, however long that takes.
type Read = fn(&Parameters, &[String]) -> Answer;

/// What is read in a thread.
pub(super) struct InThread {
    read: Read,
    under_way: UnderWay,
}

/// A driver that reads so.
pub(super) fn driver(read: Read, settings: &DriverSettings) -> Reads<InThread> {
    Reads {
        storage: InThread {
            read,
            under_way: Arc::default(),
        },
        clock: Arc::clone(&settings.clock),
    }
}

#[async_trait]
impl Storage for InThread {
    async fn read(&self, method: &FrozenMethod, _: &Secrets, hosts: &[String], _: Instant) -> Answer {
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
}

impl InThread {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use ringfence_core::{MethodTimes, Resource, Timestamp};
    use uuid::Uuid;

    use super::super::needed;
    use super::*;
    use crate::driver::Driver;

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
        let reads = driver(hanging, &DriverSettings::new(Arc::new(|| Timestamp::UNIX_EPOCH)));
        let read = async |method, budget_ms| {
            reads
                .heartbeats(method, &Secrets::default(), &[], Duration::from_millis(budget_ms))
                .await
        };
        for _ in 0..3 {
            let late = read(&gone, 100).await.unwrap_err();
            assert_eq!(late.to_string(), "the storage did not answer in time");
        }
        assert_eq!(reads.storage.under_way.lock().len(), 1);
        read(&there, 10_000).await.unwrap();
        std::fs::write(dir.path().join("gone"), "").unwrap();
        read(&gone, 10_000).await.unwrap();
        while !reads.storage.under_way.lock().is_empty() {
            sleep(LOOK_AGAIN).await;
        }
    }
}
