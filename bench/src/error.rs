//! What can keep a figure from being taken.

use std::io;

/// Why a run of the benchmarks ended early.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The peers' addresses come from the command that starts them.
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
    /// The database under the floor failed.
    #[error("the floor's database failed")]
    Database(#[from] sqlx::Error),
    /// The broker under the floor failed.
    #[error("the floor's broker failed")]
    Broker(#[from] lapin::Error),
    /// A request could not be sent, or its answer not be read.
    #[error("the API could not be asked")]
    Http(#[from] reqwest::Error),
    /// The product did not do what was measured.
    #[error("{what} did not come within {seconds} s")]
    Late {
        /// What was waited for.
        what: String,
        /// For how long.
        seconds: u64,
    },
    /// The product answered something else than what was measured.
    #[error("{what} is not what was expected: {found}")]
    Unexpected {
        /// What was looked at.
        what: String,
        /// What it was.
        found: String,
    },
    /// A peer did not start.
    #[error(transparent)]
    Lab(#[from] ringfence_lab::LabError),
}

impl BenchError {
    /// Says what was being done when the system refused.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
