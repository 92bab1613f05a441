//! What every driver does, and which driver is which.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ringfence_backends::openstack::Cloud;
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    Driver as DriverName, Finding, FrozenMethod, Observation, Outcome, Problem, TaskKind, Timestamp, Workload,
};
use url::Url;

use crate::fence_agent::FenceAgent;
use crate::network::Neutron;
use crate::power::{Ipmi, Ironic, Redfish};
use crate::simulated::Simulated;
use crate::storage::Cinder;
use crate::workloads::Nova;
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
        kind: TaskKind,
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

/// One thing to do to the workloads of a host.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadJob<'a> {
    /// What.
    pub kind: TaskKind,
    /// Which cloud and which host.
    pub method: &'a FrozenMethod,
    /// Which workload, where it is about one.
    pub workload: Option<&'a Workload>,
    /// Whether the backend may yet do something that it was asked for.
    pub open: &'a Open,
}

/// Whether a backend was asked to start a workload elsewhere, has not answered, and shows nothing of it. Known to whoever stops the driver,
/// too.
#[derive(Debug, Default)]
pub struct Open(AtomicBool);

impl Open {
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

/// Speaks to the backends of hosts.
#[async_trait]
pub trait WorkloadDriver: Send + Sync {
    /// Makes it true and reads it back, as [`Driver::act_and_observe`]. Dropped, it sends nothing more; what the backend has taken by
    /// then, the next one finds there.
    async fn carry_out(&self, job: WorkloadJob<'_>, budget: Duration) -> Report;
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

/// The drivers of a worker, by name.
#[derive(Clone, Default)]
pub struct Drivers {
    devices: BTreeMap<DriverName, Arc<dyn Driver>>,
    workloads: BTreeMap<DriverName, Arc<dyn WorkloadDriver>>,
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

    /// The same for a driver of workloads.
    #[must_use]
    pub fn with_workloads(mut self, name: DriverName, driver: Arc<dyn WorkloadDriver>) -> Self {
        self.workloads.insert(name, driver);
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
        .with_workloads(DriverName::Nova, Arc::new(Nova::new(all(), Arc::clone(clock))))
    }

    /// The driver of workloads of this name.
    #[must_use]
    pub fn workloads(&self, name: DriverName) -> Option<Arc<dyn WorkloadDriver>> {
        self.workloads.get(&name).map(Arc::clone)
    }

    /// The driver of this name.
    #[must_use]
    pub fn get(&self, name: DriverName) -> Option<Arc<dyn Driver>> {
        self.devices.get(&name).map(Arc::clone)
    }
}
