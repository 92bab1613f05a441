//! What a worker asks: drivers by name, and platforms.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringfence_backends::Platform;
use ringfence_backends::kubernetes::Cluster;
use ringfence_core::{PlatformHost, SecretReference};

use crate::driver::{Clock, Driver, DriverSettings};
use crate::drivers::DRIVERS;
use crate::platform::PlatformDriver;
use crate::{Secrets, WorkerError};

/// The drivers of a worker by name, and the platforms that it asks.
#[derive(Clone, Default)]
pub struct Drivers {
    devices: BTreeMap<&'static str, Arc<dyn Driver>>,
    platforms: Vec<PlatformDriver>,
    /// Where Secrets are looked up.
    clusters: Vec<Arc<Cluster>>,
}

impl Drivers {
    /// All drivers.
    #[must_use]
    pub fn new(settings: &DriverSettings) -> Self {
        let none = Self {
            clusters: settings.clusters.clone(),
            ..Self::default()
        };
        let entries = DRIVERS.iter();
        entries.fold(none, |drivers, entry| {
            drivers.with(entry.declaration.name, (entry.make)(settings))
        })
    }

    /// These drivers with one put in place of what was there.
    #[must_use]
    pub fn with(mut self, name: &'static str, driver: Arc<dyn Driver>) -> Self {
        self.devices.insert(name, driver);
        self
    }

    /// These drivers, and these platforms for workload steps.
    #[must_use]
    pub fn with_platforms(mut self, platforms: &[Arc<dyn Platform>], clock: &Clock) -> Self {
        let drivers = platforms
            .iter()
            .map(|platform| PlatformDriver::new(platform, clock));
        self.platforms.extend(drivers);
        self
    }

    /// What asks the platform of a host.
    pub(crate) fn platform_of(&self, at: &PlatformHost) -> Option<PlatformDriver> {
        self.platforms.iter().find(|platform| platform.has(at)).cloned()
    }

    /// The secrets of these references.
    pub(crate) async fn secrets(
        &self,
        references: &BTreeMap<String, SecretReference>,
    ) -> Result<Secrets, WorkerError> {
        Box::pin(Secrets::resolve(references, &self.clusters)).await
    }

    /// The driver of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn Driver>> {
        self.devices.get(name).map(Arc::clone)
    }
}
