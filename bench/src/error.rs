//! The errors that end a measurement.

use std::io;

/// Why a run of the benchmarks ended early.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A variable that `cargo xtask bench` sets is missing.
    #[error("{0} is not set; run the figures with `cargo xtask bench`")]
    Unset(&'static str),
    /// A file or a program could not be used.
    #[error("cannot {what}")]
    System {
        /// What was being done.
        what: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The database of the floor failed.
    #[error("the floor's database failed")]
    Database(#[from] sqlx::Error),
    /// The broker of the floor failed.
    #[error("the floor's broker failed")]
    Broker(#[from] lapin::Error),
    /// A request could not be sent, or its answer could not be read.
    #[error("the request to the API failed")]
    Http(#[from] reqwest::Error),
    /// The product did not do what was measured.
    #[error("{what} did not come within {seconds} s")]
    Late {
        /// What was waited for.
        what: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The product's answer is not the expected one.
    #[error("{what} is not what was expected: {found}")]
    Unexpected {
        /// What was checked.
        what: String,
        /// What was found.
        found: String,
    },
    /// The cluster could not be reached, or has refused.
    #[error("the cluster's API server failed")]
    Cluster(#[source] Box<kube::Error>),
    /// The cluster's address could not be read.
    #[error("the cluster's kubeconfig cannot be read")]
    Kubeconfig(#[source] Box<kube::config::KubeconfigError>),
    /// An object for the cluster is not one of its kind.
    #[error("an object for the cluster cannot be made")]
    Object(#[from] serde_json::Error),
    /// A peer did not start.
    #[error(transparent)]
    Lab(#[from] ringfence_lab::LabError),
}

impl From<kube::Error> for BenchError {
    fn from(source: kube::Error) -> Self {
        Self::Cluster(Box::new(source))
    }
}

impl From<kube::config::KubeconfigError> for BenchError {
    fn from(source: kube::config::KubeconfigError) -> Self {
        Self::Kubeconfig(Box::new(source))
    }
}

impl BenchError {
    /// The error of a system call, with what was being done.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
