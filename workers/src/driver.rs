//! What every driver does, and which driver is which.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_backends::Platform;
use ringfence_backends::openstack::Cloud;
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    Driver as DriverName, FencingKind, Finding, FrozenMethod, Observation, Outcome, PlatformHost, Problem,
    Timestamp,
};
use url::Url;

use crate::fence_agent::FenceAgent;
use crate::network::Neutron;
use crate::platform::PlatformDriver;
use crate::power::{Ipmi, Ironic, Redfish};
use crate::simulated::Simulated;
use crate::storage::Cinder;
use crate::{Secrets, WorkerError};

/// Tells the time of an observation; for people.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How an attempt went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// `Confirmed` only with the wanted state in `observation`.
    pub outcome: Outcome,
    /// What was read back last, if anything was.
    pub observation: Option<Observation>,
    /// What was found out beside the state, by a task on workloads.
    pub finding: Option<Finding>,
    /// Why it did not succeed, in words; empty if it did.
    pub detail: String,
}

impl Report {
    /// A definite no.
    pub(crate) fn refused(detail: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Refused,
            observation: None,
            finding: None,
            detail: detail.into(),
        }
    }

    /// Nobody knows.
    pub(crate) fn unknown(detail: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Unknown,
            observation: None,
            finding: None,
            detail: detail.into(),
        }
    }
}

impl From<WorkerError> for Report {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Secret { .. } | WorkerError::Refused { .. } | WorkerError::Configuration(_) => {
                Self::refused(error.to_string())
            }
            WorkerError::Unclear { .. } | WorkerError::Bus(_) => Self::unknown(error.to_string()),
        }
    }
}

/// Speaks to devices of one sort.
///
/// A driver has stopped for good before its budget ends: its children are dead and reaped, its requests dropped. Dropping a
/// future of a driver stops it at once in the same sense.
#[async_trait]
pub trait Driver: Send + Sync {
    /// Makes it true and reads it back; a command's own success is never believed. What takes something from the host is commanded even
    /// where the device shows that it is so already.
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Report;

    /// Reads the device's state and changes nothing. The error is [`WorkerError::Refused`] or [`WorkerError::Unclear`].
    async fn observe(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Result<Observation, WorkerError>;

    /// What is wrong with parameters, as far as it can be known on this machine without the device.
    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem>;
}

/// What the drivers need to know of this machine.
#[derive(Clone)]
pub struct DriverSettings {
    /// Tells the time of an observation.
    pub clock: Clock,
    /// Where fence agents are looked for, in this order.
    pub agent_path: Vec<PathBuf>,
    /// The program `ipmitool`.
    pub ipmitool: PathBuf,
    /// The base URL of the simulators; without it there are no simulated devices.
    pub simulator: Option<Url>,
}

impl DriverSettings {
    /// The places where Debian puts the programs, and no simulator.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            agent_path: vec![PathBuf::from("/usr/sbin")],
            ipmitool: PathBuf::from("/usr/bin/ipmitool"),
            simulator: None,
        }
    }
}

/// The drivers of a worker by name, and the platforms that it asks.
#[derive(Clone, Default)]
pub struct Drivers {
    devices: BTreeMap<DriverName, Arc<dyn Driver>>,
    platforms: Vec<PlatformDriver>,
}

impl Drivers {
    /// All drivers.
    #[must_use]
    pub fn new(settings: DriverSettings) -> Self {
        let clock = settings.clock;
        Self::default()
            .with(
                DriverName::FenceAgent,
                Arc::new(FenceAgent::new(settings.agent_path, Arc::clone(&clock))),
            )
            .with(DriverName::Redfish, Arc::new(Redfish::new(Arc::clone(&clock))))
            .with(
                DriverName::Ipmi,
                Arc::new(Ipmi::new(settings.ipmitool, Arc::clone(&clock))),
            )
            .with(
                DriverName::Simulated,
                Arc::new(Simulated::new(settings.simulator, clock)),
            )
    }

    /// These drivers with one put in place of what was there.
    #[must_use]
    pub fn with(mut self, name: DriverName, driver: Arc<dyn Driver>) -> Self {
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

    /// These drivers with those that speak to the services of clouds.
    #[must_use]
    pub fn with_clouds(self, clouds: &[Arc<Cloud>], clock: &Clock) -> Self {
        let all = || clouds.iter().map(Arc::clone);
        self.with(
            DriverName::Cinder,
            Arc::new(Cinder::new(all(), Arc::clone(clock))),
        )
        .with(
            DriverName::Neutron,
            Arc::new(Neutron::new(all(), Arc::clone(clock))),
        )
        .with(
            DriverName::Ironic,
            Arc::new(Ironic::new(all(), Arc::clone(clock))),
        )
    }

    /// What asks the platform of a host.
    pub(crate) fn platform_of(&self, at: &PlatformHost) -> Option<PlatformDriver> {
        self.platforms.iter().find(|platform| platform.has(at)).cloned()
    }

    /// The driver of this name.
    #[must_use]
    pub fn get(&self, name: DriverName) -> Option<Arc<dyn Driver>> {
        self.devices.get(&name).map(Arc::clone)
    }
}
