//! Calls drivers of a cloud's services directly, without an engine.

use std::collections::BTreeMap;
use std::time::Duration;

use ringfence_core::{FencingKind, FrozenMethod, MethodId, MethodTimes, Observation, Outcome, Parameters};
use ringfence_lab::{Cloud, OPENSTACK_PASSWORD, User};
use ringfence_workers::{DriverSettings, Drivers, Report, Secrets, WorkerError};
use std::sync::Arc;
use tokio::time::timeout;
use uuid::Uuid;

use super::plant::{CLOUD, backend, entry};

const BUDGET: Duration = Duration::from_secs(60);

/// The drivers with one user's credentials.
pub struct Hand {
    drivers: Drivers,
    _folder: tempfile::TempDir,
}

/// A frozen method for a host of the cloud.
pub fn method(driver: &str, host: &str, more: &[(&str, &str)]) -> FrozenMethod {
    let declared = ringfence_workers::catalogue().get(driver).unwrap();
    let place = declared.place.unwrap();
    let pairs = [(place.platform, CLOUD), (place.host, host)]
        .into_iter()
        .chain(more.iter().copied());
    let parameters: Parameters = pairs
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    FrozenMethod {
        id: MethodId(Uuid::nil()),
        name: driver.to_owned(),
        resource: declared.resources[0],
        driver: driver.to_owned(),
        device: (declared.device)(&parameters),
        service_of: None,
        can_prove: (declared.can_prove)(&parameters),
        parameters,
        secrets: BTreeMap::new(),
        zone: "default".to_owned(),
        times: MethodTimes::default(),
    }
}

impl Hand {
    /// Drivers with this user's credentials.
    pub fn of(cloud: &Cloud, user: User) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let entry = entry(cloud, user, OPENSTACK_PASSWORD, "");
        let clouds = [backend(&folder, &entry)];
        let settings = DriverSettings {
            clouds: clouds.to_vec(),
            ..DriverSettings::new(Arc::new(|| chrono::DateTime::UNIX_EPOCH))
        };
        Self {
            drivers: Drivers::new(&settings),
            _folder: folder,
        }
    }

    pub async fn act(&self, kind: FencingKind, method: &FrozenMethod) -> Report {
        self.act_within(kind, method, BUDGET).await
    }

    pub async fn act_within(&self, kind: FencingKind, method: &FrozenMethod, budget: Duration) -> Report {
        let driver = self.drivers.get(&method.driver).unwrap();
        driver
            .act_and_observe(kind, method, &Secrets::default(), budget)
            .await
    }

    /// Acts as a chain of workers, each of which is killed a little later than the one before, until one completes the task.
    pub async fn act_dying(&self, kind: FencingKind, method: &FrozenMethod) -> Report {
        for tenths in 1.. {
            let done = timeout(Duration::from_millis(tenths * 100), self.act(kind, method)).await;
            if let Ok(report) = done.as_ref()
                && report.outcome == Outcome::Confirmed
            {
                return report.clone();
            }
            assert!(tenths < 100, "not done: {done:?}");
        }
        unreachable!()
    }

    pub async fn check(&self, method: &FrozenMethod) -> Result<Observation, WorkerError> {
        let driver = self.drivers.get(&method.driver).unwrap();
        driver.observe(method, &Secrets::default(), BUDGET).await
    }
}

/// What was read back; panics unless the task was confirmed.
pub fn seen(report: &Report) -> &Observation {
    assert_eq!(report.outcome, Outcome::Confirmed, "{report:?}");
    report.observation.as_ref().unwrap()
}
