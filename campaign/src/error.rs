//! What can keep a campaign from being held.

use std::io;

/// Why a campaign ended without a verdict.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// A file or a program could not be used.
    #[error("cannot {what}")]
    System {
        /// What was being done.
        what: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A library or program is not installed.
    #[error("{what} is not there; install the Debian package {package}")]
    Missing {
        /// What was looked for.
        what: &'static str,
        /// What brings it.
        package: &'static str,
    },
    /// The database under the service could not be prepared.
    #[error("the database could not be prepared")]
    Database(#[from] sqlx::Error),
    /// The broker could not be listened to.
    #[error("the broker could not be listened to")]
    Broker(#[from] lapin::Error),
    /// An address could not be read.
    #[error("an address could not be read")]
    Address(#[from] url::ParseError),
    /// The service could not be set up.
    #[error("{what} was answered with {found}")]
    Unexpected {
        /// What was asked.
        what: String,
        /// What came back.
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
    /// Says what was being done when the system refused.
    pub fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::System { what, source }
    }
}
