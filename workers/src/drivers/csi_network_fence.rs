//! The driver `csi-network-fence`: a node's addresses cut off from its storage by csi-addons, which asks the storage's CSI driver.
//!
//! Every command is an object `NetworkFence` of its own, and only the status of that very object counts.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_backends::kubernetes::{FenceState, NetworkFenceReading, NetworkFencing};
use ringfence_backends::{ALLOWED_ADDRESSES, Addresses, BackendError, TimeGiven};
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    Declaration, FencingKind, FrozenMethod, Observation, ObservedState, Parameter, Problem, Resource,
    value_of,
};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use crate::act::{self, Answer, Device, Reading};
use crate::driver::{Clock, Driver, DriverSettings, Report};
use crate::drivers::clusters::{self, CLUSTER, Clusters, OUT_OF_TIME};
use crate::drivers::{Entry, required};
use crate::{Secrets, WorkerError};

const CLASS: &str = "class";
const NODE: &str = "node";
const CIDRS: &str = "cidrs";

pub(super) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "csi-network-fence",
        about: "csi-addons: the node's addresses cut off from the storage of a CSI driver",
        resources: &[Resource::Storage],
        parameters: &[
            CLUSTER,
            Parameter::required(CLASS, "the NetworkFenceClass: which storage, and by which account").says_where(),
            Parameter::required(NODE, "the node, which its CSI driver has as the node's id").tells_apart(),
            Parameter::optional(
                CIDRS,
                "all addresses from which the node reaches the storage; those that its CSI driver has reported if absent",
            )
            .tells_apart()
            .allowing(ALLOWED_ADDRESSES, |list| Addresses::parse(list).is_ok()),
        ],
        secrets: &[],
        others: None,
        place: None,
        // An object that an API server makes late; what csi-addons may yet do is waited for by the next command.
        lingers_s: 120,
        device: |parameters| {
            let value = |name| value_of(parameters, name);
            let (cluster, class, node) = (value(CLUSTER.name)?, value(CLASS)?, value(NODE)?);
            Some(format!("csi-network-fence/{cluster}/{class}/{node}"))
        },
        can_prove: |_| true,
    },
    make: |settings| Arc::new(CsiNetworkFence::new(settings)),
};

/// The driver `csi-network-fence`.
struct CsiNetworkFence {
    clusters: Clusters,
    clock: Clock,
}

impl CsiNetworkFence {
    fn new(settings: &DriverSettings) -> Self {
        Self {
            clusters: Clusters::of(settings),
            clock: Arc::clone(&settings.clock),
        }
    }

    fn fencing<'a>(
        &'a self,
        method: &'a FrozenMethod,
        cidrs: Option<&'a Addresses>,
    ) -> Result<NetworkFencing<'a>, WorkerError> {
        Ok(NetworkFencing {
            cluster: self.clusters.of_method(method)?,
            class: required(method, CLASS)?,
            node: required(method, NODE)?,
            cidrs,
        })
    }
}

fn cidrs(method: &FrozenMethod) -> Result<Option<Addresses>, WorkerError> {
    let given = value_of(&method.parameters, CIDRS).map(Addresses::parse);
    given
        .transpose()
        .map_err(|why| WorkerError::refused(format!("parameter {CIDRS} {why}; {ALLOWED_ADDRESSES}")))
}

#[async_trait]
impl Driver for CsiNetworkFence {
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Report {
        let time = TimeGiven::of(budget);
        let cidrs = match cidrs(method) {
            Ok(cidrs) => cidrs,
            Err(error) => return error.into(),
        };
        match self.fencing(method, cidrs.as_ref()) {
            Ok(fencing) => {
                let command = Command {
                    name: fencing.new_name(),
                    fencing,
                };
                act::act_and_observe(&command, kind, secrets, &self.clock, time).await
            }
            Err(error) => error.into(),
        }
    }

    async fn observe(
        &self,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Result<Observation, WorkerError> {
        let until = Instant::now() + budget;
        let cidrs = cidrs(method)?;
        let fencing = self.fencing(method, cidrs.as_ref())?;
        let reading = reading(timeout_at(until, fencing.look()).await);
        act::observed(reading, secrets, &self.clock)
    }

    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        self.clusters.validate(request)
    }
}

/// One command, which is the object of this name.
struct Command<'a> {
    fencing: NetworkFencing<'a>,
    name: String,
}

#[async_trait]
impl Device for Command<'_> {
    async fn read(&self, until: Instant) -> Reading {
        reading(timeout_at(until, self.fencing.read_back(&self.name)).await)
    }

    async fn command(&self, kind: FencingKind, until: Instant) -> Answer {
        let wanted = match kind {
            FencingKind::StorageFence => FenceState::Fenced,
            FencingKind::StorageUnfence => FenceState::Unfenced,
            other => return Answer::Refused(format!("driver csi-network-fence cannot do {other}")),
        };
        clusters::answer(timeout_at(until, self.fencing.ask(wanted, &self.name, until)).await)
    }

    fn pause(&self) -> Duration {
        Duration::from_millis(500)
    }
}

fn reading(read: Result<Result<NetworkFenceReading, BackendError>, Elapsed>) -> Reading {
    match read {
        Ok(Ok(NetworkFenceReading::Done(FenceState::Fenced, words))) => {
            Reading::State(ObservedState::Fenced, words)
        }
        Ok(Ok(NetworkFenceReading::Done(FenceState::Unfenced, words))) => {
            Reading::State(ObservedState::Unfenced, words)
        }
        Ok(Ok(NetworkFenceReading::Unclear(why))) => Reading::Unclear(why),
        Ok(Ok(NetworkFenceReading::Refused(why))) => Reading::Refused(why),
        Ok(Err(error)) => clusters::unread(&error),
        Err(_) => Reading::Unclear(OUT_OF_TIME.to_owned()),
    }
}
