//! What the drivers have in common whose devices are objects of a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringfence_backends::kubernetes::Cluster;
use ringfence_backends::{BackendError, Platform};
use ringfence_bus::ValidateRequest;
use ringfence_core::{FrozenMethod, Parameter, Problem, value_of};
use tokio::time::error::Elapsed;

use super::required;
use crate::WorkerError;
use crate::act::{Answer, Reading};
use crate::driver::DriverSettings;

/// Which cluster it is.
pub(super) const CLUSTER: Parameter = Parameter::required(
    "cluster",
    "one of kubernetes.clusters of the worker: the cluster that has the object",
)
.says_where();

/// Why a reading is unclear that was cut off.
pub(super) const OUT_OF_TIME: &str = "the API server has not answered in time";

/// The clusters of the configuration by name.
pub(super) struct Clusters(BTreeMap<String, Arc<Cluster>>);

impl Clusters {
    pub fn of(settings: &DriverSettings) -> Self {
        let clusters = settings.clusters.iter().map(Arc::clone);
        Self(
            clusters
                .map(|cluster| (cluster.name().to_owned(), cluster))
                .collect(),
        )
    }

    /// The cluster that the method names.
    pub fn of_method(&self, method: &FrozenMethod) -> Result<&Cluster, WorkerError> {
        self.named(required(method, CLUSTER.name)?)
            .map_err(WorkerError::refused)
    }

    /// What is wrong with the parameter that names it.
    pub fn validate(&self, request: &ValidateRequest) -> Vec<Problem> {
        let name = value_of(&request.parameters, CLUSTER.name);
        let why = name.and_then(|name| self.named(name).err());
        why.map(|why| Problem::new("parameters.cluster", format!("cannot be used: {why}")))
            .into_iter()
            .collect()
    }

    fn named(&self, name: &str) -> Result<&Cluster, String> {
        let cluster = self.0.get(name).map(Arc::as_ref);
        cluster.ok_or_else(|| {
            let known: Vec<_> = self.0.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            format!("this worker's configuration has no cluster {name:?}; it has: {known}")
        })
    }
}

/// An object that could not be read.
pub(super) fn unread(error: &BackendError) -> Reading {
    match error.is_passing() {
        true => Reading::Unclear(error.to_string()),
        false => Reading::Refused(error.to_string()),
    }
}

/// What became of a command; the inner error is a definite no.
pub(super) fn answer(done: Result<Result<Result<String, String>, BackendError>, Elapsed>) -> Answer {
    match done {
        Ok(Ok(Ok(words))) => Answer::Sent(words),
        Ok(Ok(Err(why))) => Answer::Refused(why),
        Ok(Err(
            error @ (BackendError::NotFound { .. }
            | BackendError::Denied { .. }
            | BackendError::Settings { .. }),
        )) => Answer::Refused(error.to_string()),
        // What has failed may have been done.
        Ok(Err(error)) => Answer::Sent(error.to_string()),
        Err(_) => Answer::Sent(OUT_OF_TIME.to_owned()),
    }
}
