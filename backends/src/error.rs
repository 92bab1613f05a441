//! What can go wrong with a backend.

use std::time::Duration;

use openstack::ErrorKind;

/// Why a backend did not do what it was asked for. None of the texts holds a secret: what a service says is its own words, and
/// credentials are in no request but the one for a token, whose answer is not repeated.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The settings of the cloud cannot be used.
    #[error("cloud {cloud}: {why}")]
    Settings {
        /// Its name in the configuration.
        cloud: String,
        /// What is wrong.
        why: String,
    },
    /// Nobody has answered, or the one who did is not well. Whether it was done is not known.
    #[error("{service} of cloud {cloud} does not answer: {why}")]
    Away {
        /// The cloud's name in the configuration.
        cloud: String,
        /// Which of its services.
        service: &'static str,
        /// In words.
        why: String,
    },
    /// Not in time. Whether it was done is not known.
    #[error("{service} of cloud {cloud} has not answered within {} s", limit.as_secs())]
    Late {
        /// The cloud's name in the configuration.
        cloud: String,
        /// Which of its services.
        service: &'static str,
        /// What it had.
        limit: Duration,
    },
    /// The credentials are wrong, or do not suffice.
    #[error("{service} of cloud {cloud} refuses the credentials: {why}")]
    Denied {
        /// The cloud's name in the configuration.
        cloud: String,
        /// Which of its services.
        service: &'static str,
        /// In its words.
        why: String,
    },
    /// There is no such thing.
    #[error("{service} of cloud {cloud}: {why}")]
    NotFound {
        /// The cloud's name in the configuration.
        cloud: String,
        /// Which of its services.
        service: &'static str,
        /// In its words.
        why: String,
    },
    /// The cloud's catalogue does not have the service where the settings look for it.
    #[error("cloud {cloud} has no {service} where its entry says: {why}")]
    NoEndpoint {
        /// The cloud's name in the configuration.
        cloud: String,
        /// Which service.
        service: &'static str,
        /// In words.
        why: String,
    },
    /// Not as things are: 400 or 409.
    #[error("{service} of cloud {cloud} refuses it: {why}")]
    Refused {
        /// The cloud's name in the configuration.
        cloud: String,
        /// Which of its services.
        service: &'static str,
        /// In its words.
        why: String,
    },
    /// The service does not speak a version of its API that can be used.
    #[error("{service} of cloud {cloud} cannot be spoken to: {why}")]
    Version {
        /// The cloud's name in the configuration.
        cloud: String,
        /// Which of its services.
        service: &'static str,
        /// In its words.
        why: String,
    },
    /// An answer that cannot be read.
    #[error("{service} of cloud {cloud} has answered something that cannot be read: {why}")]
    Unreadable {
        /// The cloud's name in the configuration.
        cloud: String,
        /// Which of its services.
        service: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

/// The longest part of an answer that an error repeats, in characters.
const MOST_CHARS: usize = 300;

impl BackendError {
    /// Takes over what the library says.
    pub(crate) fn of(cloud: &str, service: &'static str, error: &openstack::Error) -> Self {
        let cloud = cloud.to_owned();
        let why = one_line(&error.to_string());
        match error.kind() {
            ErrorKind::AuthenticationFailed | ErrorKind::AccessDenied => Self::Denied { cloud, service, why },
            ErrorKind::ResourceNotFound => Self::NotFound { cloud, service, why },
            ErrorKind::EndpointNotFound => Self::NoEndpoint { cloud, service, why },
            ErrorKind::InvalidInput | ErrorKind::Conflict => Self::Refused { cloud, service, why },
            ErrorKind::IncompatibleApiVersion => Self::Version { cloud, service, why },
            ErrorKind::InvalidResponse | ErrorKind::TooManyItems => Self::Unreadable { cloud, service, why },
            ErrorKind::InvalidConfig => Self::Settings { cloud, why },
            _ => Self::Away { cloud, service, why },
        }
    }

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

/// What a service says may be a page of HTML.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MOST_CHARS) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line,
    }
}
