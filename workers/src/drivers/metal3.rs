//! The driver `metal3`: the power of a bare-metal host, by Metal3's operator.
//!
//! The operator holds the host off while an annotation of ours is on its object. What it reports counts as off only where it reported on
//! when the annotation was written: its report has no time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_backends::TimeGiven;
use ringfence_backends::kubernetes::{BareMetalHost, BareMetalPower};
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    Declaration, FencingKind, FrozenMethod, Observation, ObservedState, Parameter, Problem, Resource,
    value_of,
};
use tokio::time::{Instant, timeout_at};

use crate::act::{self, Answer, Device, Reading};
use crate::driver::{Clock, Driver, DriverSettings, Report};
use crate::drivers::clusters::{self, CLUSTER, Clusters, OUT_OF_TIME};
use crate::drivers::{Entry, required};
use crate::{Secrets, WorkerError};

pub(super) static DRIVER: Entry = Entry {
    declaration: Declaration {
        name: "metal3",
        about: "Metal3: the power of a BareMetalHost",
        resources: &[Resource::Power],
        parameters: &[
            CLUSTER,
            Parameter::required("namespace", "the namespace of the object")
                .says_where()
                .or_of_host(),
            Parameter::required("host", "the object's name")
                .tells_apart()
                .or_of_host(),
        ],
        secrets: &[],
        others: None,
        place: None,
        lingers_s: 120,
        device: |parameters| {
            let value = |name| value_of(parameters, name);
            let (cluster, namespace, host) = (value(CLUSTER.name)?, value("namespace")?, value("host")?);
            Some(format!("metal3/{cluster}/{namespace}/{host}"))
        },
        can_prove: |_| true,
    },
    make: |settings| Arc::new(Metal3::new(settings)),
};

/// The driver `metal3`.
struct Metal3 {
    clusters: Clusters,
    clock: Clock,
}

impl Metal3 {
    fn new(settings: &DriverSettings) -> Self {
        Self {
            clusters: Clusters::of(settings),
            clock: Arc::clone(&settings.clock),
        }
    }

    fn held<'a>(&'a self, host: BareMetalHost<'a>) -> Held<'a> {
        let clock = &self.clock;
        Held { host, clock }
    }

    fn host<'a>(&'a self, method: &'a FrozenMethod) -> Result<BareMetalHost<'a>, WorkerError> {
        Ok(BareMetalHost {
            cluster: self.clusters.of_method(method)?,
            namespace: required(method, "namespace")?,
            name: required(method, "host")?,
        })
    }
}

#[async_trait]
impl Driver for Metal3 {
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        secrets: &Secrets,
        budget: Duration,
    ) -> Report {
        let time = TimeGiven::of(budget);
        match self.host(method) {
            Ok(host) => act::act_and_observe(&self.held(host), kind, secrets, &self.clock, time).await,
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
        act::observe(&self.held(self.host(method)?), secrets, &self.clock, until).await
    }

    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        self.clusters.validate(request)
    }
}

/// A host that its operator switches.
struct Held<'a> {
    host: BareMetalHost<'a>,
    clock: &'a Clock,
}

#[async_trait]
impl Device for Held<'_> {
    async fn read(&self, until: Instant) -> Reading {
        match timeout_at(until, self.host.power()).await {
            Ok(Ok(BareMetalPower::On)) => {
                Reading::State(ObservedState::On, "status.poweredOn is true".to_owned())
            }
            Ok(Ok(BareMetalPower::Off)) => Reading::State(
                ObservedState::Off,
                "status.poweredOn is false, and was true when the command came".to_owned(),
            ),
            Ok(Ok(BareMetalPower::Unclear(why))) => Reading::Unclear(why),
            Ok(Ok(BareMetalPower::Refused(why))) => Reading::Refused(why),
            Ok(Err(error)) => clusters::unread(&error),
            Err(_) => Reading::Unclear(OUT_OF_TIME.to_owned()),
        }
    }

    async fn command(&self, kind: FencingKind, until: Instant) -> Answer {
        let acting = async {
            let done = match kind {
                FencingKind::PowerOff => self.host.hold_off((self.clock)()).await?,
                FencingKind::PowerOn => self.host.release().await?,
                other => Err(format!("driver metal3 cannot do {other}")),
            };
            Ok(done.map(|()| "the object was changed".to_owned()))
        };
        clusters::answer(timeout_at(until, acting).await)
    }

    fn pause(&self) -> Duration {
        Duration::from_secs(1)
    }
}
