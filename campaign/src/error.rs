//! Errors that end a campaign without a verdict.

use std::io;

/// Why a campaign ended without a verdict.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A file or a program could not be used.
    #[error("cannot {what}")]
    System {
        /// What was being done.
        what: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A library or program is not installed.
    #[error("{what} was not found; install the Debian package {package}")]
    Missing {
        /// The library or program.
        what: &'static str,
        /// Debian's package with it.
        package: &'static str,
    },
    /// The database under the service could not be prepared.
    #[error("the database could not be prepared")]
    Database(#[from] sqlx::Error),
    /// The messages on the broker could not be read.
    #[error("the messages on the broker could not be read")]
    Broker(#[from] lapin::Error),
    /// An address could not be read.
    #[error("an address could not be read")]
    Address(#[from] url::ParseError),
    /// The service could not be set up.
    #[error("expected {what}, found {found}")]
    Unexpected {
        /// What was expected.
        what: String,
        /// What was found instead.
        found: String,
    },
    /// A peer did not start.
    #[error(transparent)]
    Lab(#[from] ringfence_lab::LabError),
    /// The simulated hosts did not start.
    #[error(transparent)]
    Simulators(#[from] ringfence_simulators::SimulatorError),
}

impl CampaignError {
    /// Adds what was being done to an error of the operating system.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
