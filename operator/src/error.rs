//! Why an object could not be served.

use std::time::Duration;

use ringfence_backends::BackendError;
use ringfence_db::DbError;
use ringfence_engine::EngineError;

use crate::text::{MESSAGE, cut};

/// Why an object could not be served. It is tried again.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// The API server says no.
    #[error("the API server of cluster {cluster} refuses ({code}): {message}")]
    Refused {
        /// The cluster's name in the configuration.
        cluster: String,
        /// The status of the answer.
        code: u16,
        /// Why.
        message: String,
    },
    /// The API server cannot be asked.
    #[error("the API server of cluster {cluster} cannot be asked")]
    Api {
        /// The cluster's name in the configuration.
        cluster: String,
        /// What it says.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server has not answered in time.
    #[error("the API server of cluster {cluster} has not answered within {} s", limit.as_secs_f64())]
    Late {
        /// The cluster's name in the configuration.
        cluster: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The cluster has more objects of a kind than are read.
    #[error("cluster {cluster} has more than {most} objects of a kind, which is the most that is read")]
    TooMany {
        /// The cluster's name in the configuration.
        cluster: String,
        /// The most.
        most: usize,
    },
    /// The cluster cannot be reached as it is configured.
    #[error(transparent)]
    Settings(#[from] BackendError),
    /// The engine has not made the change.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The database cannot be read.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl OperatorError {
    /// An answer that is none.
    pub(crate) fn of(cluster: &str, error: kube::Error) -> Self {
        let cluster = cluster.to_owned();
        match error {
            kube::Error::Api(status) => Self::Refused {
                cluster,
                code: status.code,
                message: cut(&status.message, MESSAGE),
            },
            source => Self::Api {
                cluster,
                source: Box::new(source),
            },
        }
    }

    /// Whether another program has changed the object in between, or made it: it is read anew.
    pub(crate) fn is_overtaken(&self) -> bool {
        matches!(self, Self::Refused { code: 409, .. })
    }

    /// Whether there is no such object, or no such kind of objects.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { code: 404, .. })
    }

    /// Whether the API server has not answered.
    pub(crate) fn is_away(&self) -> bool {
        matches!(self, Self::Api { .. } | Self::Late { .. })
    }

    /// Whether the right is missing.
    pub(crate) fn is_denied(&self) -> bool {
        matches!(self, Self::Refused { code: 403, .. })
    }
}
