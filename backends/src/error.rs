//! What can go wrong with a backend.

use std::time::Duration;

/// Why a backend did not do what it was asked for. None of the texts holds a secret: a service's words are its own, and credentials are
/// only in the request for a token, whose answer is not repeated.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The settings of the platform cannot be used.
    #[error("{platform}: {why}")]
    Settings {
        /// The platform's sort and its name in the configuration, such as `cloud east`.
        platform: String,
        /// What is wrong.
        why: String,
    },
    /// The service has not answered, or has answered with an error of its own. Whether the call was carried out is not known.
    #[error("{service} of {platform} does not answer: {why}")]
    Away {
        /// The platform's sort and its name in the configuration, such as `cloud east`.
        platform: String,
        /// Which of its services.
        service: &'static str,
        /// Why the service counts as away.
        why: String,
    },
    /// The service has not answered in time. Whether the call was carried out is not known.
    #[error("{service} of {platform} has not answered within {} s", limit.as_secs())]
    Late {
        /// The platform's sort and its name in the configuration, such as `cloud east`.
        platform: String,
        /// Which of its services.
        service: &'static str,
        /// The time that the call had.
        limit: Duration,
    },
    /// The credentials are wrong, or their role does not suffice.
    #[error("{service} of {platform} refuses the credentials: {why}")]
    Denied {
        /// The platform's sort and its name in the configuration, such as `cloud east`.
        platform: String,
        /// Which of its services.
        service: &'static str,
        /// In the service's words.
        why: String,
    },
    /// The service knows no object with this id or name.
    #[error("{service} of {platform}: {why}")]
    NotFound {
        /// The platform's sort and its name in the configuration, such as `cloud east`.
        platform: String,
        /// Which of its services.
        service: &'static str,
        /// In the service's words.
        why: String,
    },
    /// The cloud's catalogue does not have the service where the settings look for it.
    #[error("{platform} has no {service} where its entry says: {why}")]
    NoEndpoint {
        /// The platform's sort and its name in the configuration, such as `cloud east`.
        platform: String,
        /// Which service.
        service: &'static str,
        /// What the catalogue lacks.
        why: String,
    },
    /// The service refuses the call in the present state of the object: 400 or 409.
    #[error("{service} of {platform} refuses it: {why}")]
    Refused {
        /// The platform's sort and its name in the configuration, such as `cloud east`.
        platform: String,
        /// Which of its services.
        service: &'static str,
        /// In the service's words.
        why: String,
    },
    /// The service does not speak a version of its API that can be used.
    #[error("{service} of {platform} cannot be spoken to: {why}")]
    Version {
        /// The platform's sort and its name in the configuration, such as `cloud east`.
        platform: String,
        /// Which of its services.
        service: &'static str,
        /// In the service's words.
        why: String,
    },
    /// The answer cannot be read.
    #[error("{service} of {platform} has answered something that cannot be read: {why}")]
    Unreadable {
        /// The platform's sort and its name in the configuration, such as `cloud east`.
        platform: String,
        /// Which of its services.
        service: &'static str,
        /// What is wrong with the answer.
        why: String,
    },
}

/// The longest part of an answer that an error repeats, in characters.
const MOST_CHARS: usize = 300;

impl BackendError {
    /// Whether asking again may help although nothing else changes.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Away { .. } | Self::Late { .. } | Self::Unreadable { .. } => true,
            Self::Settings { .. }
            | Self::Denied { .. }
            | Self::NotFound { .. }
            | Self::NoEndpoint { .. }
            | Self::Refused { .. }
            | Self::Version { .. } => false,
        }
    }
}

/// A service may answer with a page of HTML.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST_CHARS) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line,
    }
}
