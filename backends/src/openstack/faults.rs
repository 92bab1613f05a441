//! Errors of the crate `openstack`.

use openstack::ErrorKind;

use crate::BackendError;
use crate::error::one_line;

/// How errors name a cloud.
pub(super) fn label(cloud: &str) -> String {
    format!("cloud {cloud}")
}

pub(super) fn of(cloud: &str, service: &'static str, error: &openstack::Error) -> BackendError {
    let platform = label(cloud);
    let why = one_line(&error.to_string());
    match error.kind() {
        ErrorKind::AuthenticationFailed | ErrorKind::AccessDenied => BackendError::Denied {
            platform,
            service,
            why,
        },
        ErrorKind::ResourceNotFound => BackendError::NotFound {
            platform,
            service,
            why,
        },
        ErrorKind::EndpointNotFound => BackendError::NoEndpoint {
            platform,
            service,
            why,
        },
        ErrorKind::InvalidInput | ErrorKind::Conflict => BackendError::Refused {
            platform,
            service,
            why,
        },
        ErrorKind::IncompatibleApiVersion => BackendError::Version {
            platform,
            service,
            why,
        },
        ErrorKind::InvalidResponse | ErrorKind::TooManyItems => BackendError::Unreadable {
            platform,
            service,
            why,
        },
        ErrorKind::InvalidConfig => BackendError::Settings { platform, why },
        _ => BackendError::Away {
            platform,
            service,
            why,
        },
    }
}
