//! What every driver does, and the drivers that a worker has.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_backends::kubernetes::Cluster;
use ringfence_backends::openstack::Cloud;
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    Answer, CephSurvey, FencingKind, Finding, FrozenMethod, Heartbeat, Observation, Outcome, Problem,
    Question, Timestamp,
};
use url::Url;

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

    /// The outcome is not known.
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

/// A host, and those that are gone beside it, by the names that a storage knows them by.
#[derive(Clone, Copy, Debug)]
pub struct HostInStorage<'a> {
    /// The host.
    pub host: &'a str,
    /// FENCED, or being fenced.
    pub gone: &'a [String],
}

/// Speaks to devices of one sort.
///
/// A driver has stopped for good before its budget ends: its children are dead and reaped, its requests dropped. Dropping a
/// future of a driver stops it at once in this sense.
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

    /// What a fence of a host would cost the storage that a method reaches, and changes nothing. Hosts that are `gone` are FENCED or being fenced. The errors are
    /// those of [`Driver::observe`].
    async fn survey(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        about: HostInStorage<'_>,
        budget: Duration,
    ) -> Result<CephSurvey, WorkerError> {
        let _ = (secrets, about, budget);
        let driver = &method.driver;
        Err(WorkerError::refused(format!(
            "driver {driver} cannot tell what a fence would cost"
        )))
    }

    /// Asks others whether a fence of a host may begin, and changes nothing. What cannot be told is an error, and the errors are those of [`Driver::observe`].
    async fn ask(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        question: &Question,
        budget: Duration,
    ) -> Result<Answer, WorkerError> {
        let _ = (secrets, question, budget);
        let driver = &method.driver;
        Err(WorkerError::refused(format!(
            "driver {driver} cannot be asked about a fence"
        )))
    }

    /// Reads what these hosts write to a shared storage, or when it has heard them, and changes nothing. The hosts go by the names that the storage knows them by. The errors are
    /// those of [`Driver::observe`].
    async fn heartbeats(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        hosts: &[String],
        budget: Duration,
    ) -> Result<BTreeMap<String, Heartbeat>, WorkerError> {
        let _ = (secrets, hosts, budget);
        let driver = &method.driver;
        Err(WorkerError::refused(format!(
            "driver {driver} reads no heartbeats"
        )))
    }

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
    /// The program `ceph`.
    pub ceph: PathBuf,
    /// The base URL of the simulators; without it there are no simulated devices.
    pub simulator: Option<Url>,
    /// The clouds of the configuration.
    pub clouds: Vec<Arc<Cloud>>,
    /// The clusters of the configuration.
    pub clusters: Vec<Arc<Cluster>>,
}

impl DriverSettings {
    /// The places where Debian puts the programs, no simulator, no cloud and no cluster.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self {
            clock,
            agent_path: vec![PathBuf::from("/usr/sbin")],
            ipmitool: PathBuf::from("/usr/bin/ipmitool"),
            ceph: PathBuf::from("/usr/bin/ceph"),
            simulator: None,
            clouds: Vec::new(),
            clusters: Vec::new(),
        }
    }
}
