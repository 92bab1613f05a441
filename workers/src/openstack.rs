//! What the drivers of a cloud's services have in common: which cloud and host a method names, and what is reported of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ringfence_backends::openstack::{Cloud, Fenced, HostOf, ReadBack};
use ringfence_backends::{BackendError, TimeGiven};
use ringfence_bus::ValidateRequest;
use ringfence_core::{
    FencingKind, Observation, ObservedState, Outcome, Parameter, Parameters, Place, Problem,
};
use tokio::time::timeout_at;

use crate::WorkerError;
use crate::driver::{Clock, Report};
use crate::text::cut;

/// Which cloud.
pub(crate) const CLOUD: Parameter = Parameter::optional(
    "cloud",
    "one of openstack.clouds of the worker; the host's own if absent",
)
.says_where();

const OUT_OF_TIME: &str = "the time ran out";

/// The clouds of the configuration by name.
pub(crate) struct Clouds(BTreeMap<String, Arc<Cloud>>);

impl Clouds {
    pub fn new(clouds: impl IntoIterator<Item = Arc<Cloud>>) -> Self {
        let named = clouds.into_iter().map(|cloud| (cloud.name().to_owned(), cloud));
        Self(named.collect())
    }

    /// The host that these two parameters name.
    pub fn host<'a>(
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
    pub fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
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

/// Carries out what is wanted, for as long as there is time.
pub(crate) async fn act(
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

/// What was seen without changing anything.
pub(crate) fn seen(state: ObservedState, detail: &str, clock: &Clock) -> Observation {
    Observation {
        state,
        detail: cut(detail),
        observed_at: clock(),
        after_ms: 0,
        before: None,
        proves: false,
    }
}
