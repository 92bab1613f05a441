//! Errors of the crate `kube`.

use std::error::Error;

use kube::core::Status;

use crate::BackendError;
use crate::error::one_line;

/// What errors call the service that is asked.
pub(super) const API_SERVER: &str = "the API server";

/// How errors name a cluster.
pub(super) fn label(cluster: &str) -> String {
    format!("cluster {cluster}")
}

pub(super) fn of(cluster: &str, error: &kube::Error) -> BackendError {
    match error {
        kube::Error::Api(status) => of_status(cluster, status),
        kube::Error::SerdeError(_) | kube::Error::FromUtf8(_) => BackendError::Unreadable {
            platform: label(cluster),
            service: API_SERVER,
            why: chain(error),
        },
        kube::Error::Auth(_) => BackendError::Denied {
            platform: label(cluster),
            service: API_SERVER,
            why: chain(error),
        },
        _ => BackendError::Away {
            platform: label(cluster),
            service: API_SERVER,
            why: chain(error),
        },
    }
}

fn of_status(cluster: &str, status: &Status) -> BackendError {
    let (platform, service) = (label(cluster), API_SERVER);
    let why = match status.message.is_empty() {
        true => "its answer gives no reason".to_owned(),
        false => one_line(&status.message),
    };
    match status.code {
        401 | 403 => BackendError::Denied {
            platform,
            service,
            why,
        },
        404 => BackendError::NotFound {
            platform,
            service,
            why,
        },
        400 | 409 | 422 => BackendError::Refused {
            platform,
            service,
            why,
        },
        _ => BackendError::Away {
            platform,
            service,
            why,
        },
    }
}

/// Errors of the HTTP client tell the reason only in their sources.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut told = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        let source_told = source.to_string();
        if !told.contains(&source_told) {
            told.push_str(": ");
            told.push_str(&source_told);
        }
        next = source.source();
    }
    one_line(&told)
}
