//! What can go wrong in a worker.

use std::io;

use ringfence_bus::BusError;

/// A fault of a worker, a driver or a secret. No text holds the value of a secret.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// A secret's reference leads nowhere.
    #[error("secret {name:?} from {reference} {why}")]
    Secret {
        /// The secret's name in the method.
        name: String,
        /// Where it was looked for.
        reference: String,
        /// What is wrong there.
        why: String,
        /// What the system said.
        #[source]
        source: Option<io::Error>,
    },
    /// A definite no: another try would be refused too.
    #[error("{detail}")]
    Refused {
        /// Why, in words.
        detail: String,
    },
    /// No answer, or one that cannot be trusted.
    #[error("{detail}")]
    Unclear {
        /// What was seen, in words.
        detail: String,
    },
    /// The worker's settings are unusable.
    #[error("the worker's settings are unusable: {0}")]
    Configuration(String),
    /// The bus failed.
    #[error("the bus failed")]
    Bus(#[from] BusError),
}

impl WorkerError {
    pub(crate) fn refused(detail: impl Into<String>) -> Self {
        Self::Refused {
            detail: detail.into(),
        }
    }

    pub(crate) fn unclear(detail: impl Into<String>) -> Self {
        Self::Unclear {
            detail: detail.into(),
        }
    }
}
