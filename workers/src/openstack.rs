//! What the drivers of a cloud's services have in common: which cloud and host a method names, and what is reported of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_backends::openstack::{Cloud, Fenced, HostOf, ReadBack};
use ringfence_backends::{BackendError, TimeGiven};
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    FencingKind, FrozenMethod, Observation, ObservedState, Outcome, Parameter, Parameters, Place, Problem,
};
use tokio::time::timeout_at;

use crate::driver::{Clock, Driver, DriverSettings, Report};
use crate::text::cut;
use crate::{Secrets, WorkerError};

/// Which cloud.
pub(crate) const CLOUD: Parameter = Parameter::optional(
    "cloud",
    "one of openstack.clouds of the worker; the host's own if absent",
)
.says_where();

const OUT_OF_TIME: &str = "the time ran out";

/// The clouds of the configuration by name.
struct Clouds(BTreeMap<String, Arc<Cloud>>);

impl Clouds {
    fn new(clouds: impl IntoIterator<Item = Arc<Cloud>>) -> Self {
        let named = clouds.into_iter().map(|cloud| (cloud.name().to_owned(), cloud));
        Self(named.collect())
    }

    /// The host that these two parameters name.
    fn host<'a>(
        &'a self,
        parameters: &'a Parameters,
        place: Place,
        budget: Duration,
    ) -> Result<HostOf<'a>, String> {
        let time = TimeGiven::of(budget);
        let parameter = |name: &str| {
            let value = parameters.get(name).map(String::as_str);
            value.ok_or_else(|| format!("the task names no {name}"))
        };
        let (cloud, host) = (self.named(parameter(place.platform)?)?, parameter(place.host)?);
        Ok(HostOf { cloud, host, time })
    }

    fn named(&self, name: &str) -> Result<&Cloud, String> {
        let cloud = self.0.get(name).map(Arc::as_ref);
        cloud.ok_or_else(|| {
            let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            format!("this worker's configuration has no cloud {name:?}; it has: {known}")
        })
    }

    /// What can be known of a method without asking its cloud.
    fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        let named = request.parameters.get(CLOUD.name).map(|name| self.named(name));
        let why = named.and_then(Result::err);
        why.map(|why| {
            Problem::new(
                format!("parameters.{}", CLOUD.name),
                format!("cannot be used: {why}"),
            )
        })
        .into_iter()
        .collect()
    }
}

/// What a driver of one of a cloud's services does of its own.
#[async_trait]
pub(crate) trait Service: Send + Sync {
    /// The parameters that name the host.
    const PLACE: Place;

    /// Makes it true and reads it back.
    async fn act(
        &self,
        at: &HostOf<'_>,
        kind: FencingKind,
        method: &FrozenMethod,
    ) -> Result<Fenced, BackendError>;

    /// What there is to be seen, in words too.
    async fn look(&self, at: &HostOf<'_>) -> Result<(ObservedState, String), WorkerError>;
}

/// The driver of one of a cloud's services.
pub(crate) struct ServiceDriver<S> {
    service: S,
    clouds: Clouds,
    clock: Clock,
}

impl<S: Service> ServiceDriver<S> {
    /// With the clouds of the configuration.
    pub fn new(service: S, settings: &DriverSettings) -> Self {
        Self {
            service,
            clouds: Clouds::new(settings.clouds.iter().cloned()),
            clock: Arc::clone(&settings.clock),
        }
    }
}

#[async_trait]
impl<S: Service> Driver for ServiceDriver<S> {
    async fn act_and_observe(
        &self,
        kind: FencingKind,
        method: &FrozenMethod,
        _: &Secrets,
        budget: Duration,
    ) -> Report {
        match self.clouds.host(&method.parameters, S::PLACE, budget) {
            Ok(at) => act(kind, at.time, self.service.act(&at, kind, method), &self.clock).await,
            Err(why) => Report::refused(why),
        }
    }

    async fn observe(
        &self,
        method: &FrozenMethod,
        _: &Secrets,
        budget: Duration,
    ) -> Result<Observation, WorkerError> {
        let at = self.clouds.host(&method.parameters, S::PLACE, budget);
        let (state, detail) = self.service.look(&at.map_err(WorkerError::refused)?).await?;
        Ok(Observation {
            state,
            detail: cut(&detail),
            observed_at: (self.clock)(),
            after_ms: 0,
            before: None,
            proves: false,
        })
    }

    async fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        self.clouds.validate(request)
    }
}

/// Carries out what is wanted, for as long as there is time.
async fn act(
    kind: FencingKind,
    time: TimeGiven,
    acting: impl Future<Output = Result<Fenced, BackendError>>,
    clock: &Clock,
) -> Report {
    let done = match timeout_at(time.until, acting).await {
        Ok(Ok(done)) => done,
        // What has failed may have been done, or a part of it: that is not known.
        Ok(Err(error)) => Fenced::NotYet(error.to_string()),
        Err(_) => Fenced::NotYet(OUT_OF_TIME.to_owned()),
    };
    let confirmed = |read: &ReadBack, proves| Report {
        outcome: Outcome::Confirmed,
        observation: Some(Observation {
            state: kind.wanted_state(),
            detail: cut(&read.detail),
            observed_at: clock(),
            after_ms: time.ms_before(read.from),
            before: read.before,
            proves,
        }),
        finding: None,
        detail: String::new(),
    };
    match done {
        Fenced::So(read) => confirmed(&read, true),
        Fenced::OnPaper(read) => confirmed(&read, false),
        Fenced::No(detail) => Report::refused(cut(&detail)),
        Fenced::NotYet(detail) => Report::unknown(cut(&detail)),
    }
}

/// Reads what there is to be seen, for as long as there is time.
pub(crate) async fn read<T>(
    time: TimeGiven,
    looking: impl Future<Output = Result<T, BackendError>>,
) -> Result<T, WorkerError> {
    let looked = timeout_at(time.until, looking).await;
    Ok(looked.map_err(|_| WorkerError::unclear(OUT_OF_TIME))??)
}

impl From<BackendError> for WorkerError {
    fn from(error: BackendError) -> Self {
        if error.is_passing() {
            Self::unclear(cut(&error.to_string()))
        } else {
            Self::refused(cut(&error.to_string()))
        }
    }
}
