//! Errors as HTTP answers, in the form of the API-SIG.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::ContentType;
use actix_web::{HttpResponse, ResponseError};
use ringfence_core::{Problems, Refusal};
use ringfence_db::DbError;
use ringfence_engine::EngineError;
use serde::Serialize;
use utoipa::ToSchema;

use crate::keystone::KeystoneError;
use crate::request;
use crate::request_log::note_code;
use crate::tokens::Role;

/// Why the API cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is taken or not ours.
    #[error("cannot listen on {address}")]
    Listen {
        /// What was asked for.
        address: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The tokens cannot be read.
    #[error("the token file {} cannot be read: {why}", path.display())]
    TokenFile {
        /// Where it is.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// What speaks to Keystone cannot be set up.
    #[error("what speaks to Keystone cannot be set up; see keystone.ca_file")]
    Keystone {
        /// Why.
        #[source]
        source: reqwest::Error,
    },
    /// Keystone cannot be asked about tokens.
    #[error("Keystone cannot be asked about tokens")]
    KeystoneUnusable {
        /// Why.
        #[source]
        source: KeystoneError,
    },
    /// The certificate or its key cannot be used.
    #[error("{key}: {} {why}", path.display())]
    Tls {
        /// The key of the configuration.
        key: &'static str,
        /// The file that it names.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Why a request was not served.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// No token, or one that does not work.
    #[error("{why}")]
    Unauthorized {
        /// What is wrong with it.
        why: &'static str,
        /// Where tokens come from, if from Keystone.
        keystone: Option<String>,
    },
    /// The token works and allows nothing here.
    #[error("{0}")]
    NotEntitled(Arc<str>),
    /// Keystone cannot say whether the token works.
    #[error("it cannot be found out whether the token is valid: {0}")]
    Keystone(#[from] Arc<KeystoneError>),
    /// The caller asks too often.
    #[error("there were too many requests of this caller; try again in {} s", seconds(*wait))]
    TooManyRequests {
        /// Until the next one is served.
        wait: Duration,
    },
    /// Too many tokens from the caller's address did not work.
    #[error("too many tokens from this address did not work; try again in {} s", seconds(*wait))]
    TooManyFailures {
        /// Until the next one is looked at.
        wait: Duration,
    },
    /// The role does not allow it.
    #[error("role {} does not allow this; {} or more is needed", has.as_str(), needs.as_str())]
    Forbidden {
        /// What the caller has.
        has: Role,
        /// What it takes.
        needs: Role,
    },
    /// There is no such path.
    #[error("there is nothing at {0}")]
    NoSuchPath(String),
    /// The path does not take this method.
    #[error("{method} is not allowed here; what is allowed: {allowed}")]
    MethodNotAllowed {
        /// The method.
        method: String,
        /// Those that the path takes, with commas between them.
        allowed: String,
    },
    /// The request is not well-formed.
    #[error("{0}")]
    Malformed(Problems),
    /// The body is too large.
    #[error("the body is larger than {allowed} bytes")]
    TooLarge {
        /// The bound.
        allowed: usize,
    },
    /// The body is not JSON.
    #[error("the body has content type {0:?}; application/json is allowed")]
    NotJson(String),
    /// The version of the API that was asked for is not there.
    #[error("{0}")]
    Version(String),
    /// The key came with another request before.
    #[error(
        "Idempotency-Key: {0:?} came with another method, path or body before; a repeat of that very request, or a key that \
        was not used for a day, is allowed"
    )]
    KeyReused(String),
    /// The request that the key came with is being carried out.
    #[error("Idempotency-Key: the request with {0:?} is still being carried out; ask again")]
    KeyRunning(String),
    /// The engine said no.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<DbError> for ApiError {
    fn from(error: DbError) -> Self {
        Self::Engine(EngineError::Db(error))
    }
}

impl ApiError {
    /// One thing wrong with the request.
    pub(crate) fn bad(field: &str, detail: impl Into<String>) -> Self {
        let mut problems = Problems::default();
        problems.add(field, detail);
        Self::Malformed(problems)
    }

    /// There is no such thing.
    pub(crate) fn not_found(kind: &'static str, id: &str) -> Self {
        Self::Engine(EngineError::NotFound {
            kind,
            id: id.to_owned(),
        })
    }

    /// Status, code and title.
    fn head(&self) -> (StatusCode, String, &'static str) {
        let (status, code, title) = match self {
            Self::Unauthorized { .. } => (StatusCode::UNAUTHORIZED, "unauthorized", "Unauthorized"),
            Self::Forbidden { .. } | Self::NotEntitled(_) => {
                (StatusCode::FORBIDDEN, "forbidden", "Forbidden")
            }
            Self::Keystone(_) => (
                StatusCode::SERVICE_UNAVAILABLE,
                "keystone.unavailable",
                "Keystone unavailable",
            ),
            Self::TooManyRequests { .. } => {
                (StatusCode::TOO_MANY_REQUESTS, "rate.limited", "Too many requests")
            }
            Self::TooManyFailures { .. } => (
                StatusCode::TOO_MANY_REQUESTS,
                "authentication.limited",
                "Too many failures",
            ),
            Self::NoSuchPath(_) => (StatusCode::NOT_FOUND, "path.not_found", "Not found"),
            Self::MethodNotAllowed { .. } => (
                StatusCode::METHOD_NOT_ALLOWED,
                "method.not_allowed",
                "Method not allowed",
            ),
            Self::Malformed(_) => (StatusCode::BAD_REQUEST, "request.invalid", "Bad request"),
            Self::TooLarge { .. } => (
                StatusCode::PAYLOAD_TOO_LARGE,
                "request.too_large",
                "Body too large",
            ),
            Self::NotJson(_) => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "request.not_json",
                "Unsupported media type",
            ),
            Self::Version(_) => (
                StatusCode::NOT_ACCEPTABLE,
                "version.not_acceptable",
                "Version not available",
            ),
            Self::KeyReused(_) => (StatusCode::CONFLICT, "idempotency.reused", "Key used before"),
            Self::KeyRunning(_) => (StatusCode::CONFLICT, "idempotency.running", "Still running"),
            Self::Engine(error) => return engine_head(error),
        };
        (status, format!("fencing.{code}"), title)
    }

    /// What the caller is told. Faults of the database or the bus are told by kind, not by their inner words.
    fn details(&self) -> Vec<String> {
        match self {
            Self::Malformed(problems) | Self::Engine(EngineError::Invalid(problems)) => {
                problems.0.iter().map(ToString::to_string).collect()
            }
            Self::Engine(EngineError::Db(error)) if !error.is_passing() => {
                vec!["the service failed to carry out the request; its log says why".to_owned()]
            }
            other => vec![other.to_string()],
        }
    }
}

fn engine_head(error: &EngineError) -> (StatusCode, String, &'static str) {
    let (status, code, title) = match error {
        EngineError::NotFound { kind, .. } => {
            return (
                StatusCode::NOT_FOUND,
                format!("fencing.{kind}.not_found"),
                "Not found",
            );
        }
        EngineError::Refused(refusal) => return refusal_head(refusal),
        EngineError::Invalid(_) => (StatusCode::BAD_REQUEST, "request.invalid", "Bad request"),
        EngineError::Duplicate(_) => (StatusCode::CONFLICT, "name.taken", "Name taken"),
        EngineError::Changed { .. } => (
            StatusCode::PRECONDITION_FAILED,
            "revision.changed",
            "Changed meanwhile",
        ),
        EngineError::Interrupted => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        EngineError::KeySpent => (StatusCode::CONFLICT, "idempotency.running", "Still running"),
        EngineError::TooMany(_) => (StatusCode::CONFLICT, "too_many", "Too many"),
        EngineError::WebhooksOff => (StatusCode::CONFLICT, "webhooks.off", "No webhooks"),
        EngineError::Webhooks(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        EngineError::InUse(_) => (StatusCode::CONFLICT, "in_use", "In use"),
        EngineError::PlanMissing { .. } => (StatusCode::CONFLICT, "plan.missing", "No plan"),
        EngineError::PlanBroken { .. } => (StatusCode::CONFLICT, "plan.broken", "Plan cannot be carried out"),
        EngineError::NoWorker { .. } | EngineError::NotAsked { .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, "worker.missing", "No worker")
        }
        EngineError::DeviceBusy { .. } => (StatusCode::CONFLICT, "device.busy", "Device busy"),
        EngineError::EventsGone { .. } => (StatusCode::GONE, "events.gone", "Events are gone"),
        EngineError::Archive { .. } => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        EngineError::DeviceNeeded { .. } => (StatusCode::CONFLICT, "device.busy", "Device busy"),
        EngineError::DeviceFailed { .. } => (StatusCode::BAD_GATEWAY, "device.failed", "Device failed"),
        EngineError::Db(error) if error.is_passing() => (
            StatusCode::SERVICE_UNAVAILABLE,
            "database.unavailable",
            "Database unavailable",
        ),
        EngineError::Db(_) => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
        EngineError::Bus(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "bus.unavailable",
            "Bus unavailable",
        ),
    };
    (status, format!("fencing.{code}"), title)
}

fn refusal_head(refusal: &Refusal) -> (StatusCode, String, &'static str) {
    let (status, title) = match refusal {
        Refusal::OverrideNeedsAdmin => (StatusCode::FORBIDDEN, "Override needs admin"),
        Refusal::NeedsAdmin => (StatusCode::FORBIDDEN, "Forbidden"),
        Refusal::NotStanding { .. } => (StatusCode::CONFLICT, "Nothing stands"),
        Refusal::FencingInFlight { .. } => (StatusCode::CONFLICT, "Fence may still act"),
        Refusal::PlanMissing => (StatusCode::CONFLICT, "No plan"),
        Refusal::HostUp { .. } => (StatusCode::CONFLICT, "Host is up"),
        Refusal::StaleGeneration { .. } => (StatusCode::CONFLICT, "Stale generation"),
        Refusal::StaleObservation { .. } => (StatusCode::CONFLICT, "Stale observation"),
        Refusal::OperationLive { .. } => (StatusCode::CONFLICT, "Operation is live"),
        Refusal::OperationOver { .. } => (StatusCode::CONFLICT, "Operation is over"),
        Refusal::NotWaiting { .. } => (StatusCode::CONFLICT, "Operation does not wait"),
        Refusal::UndoingInFlight { .. } => (StatusCode::CONFLICT, "Fence is being undone"),
        Refusal::ConfirmationNotSufficient => (StatusCode::CONFLICT, "Confirmation does not suffice"),
        Refusal::Attempt { .. } => (StatusCode::CONFLICT, "Attempt refused"),
        Refusal::HostState(_) | Refusal::NotUp(_) => (StatusCode::CONFLICT, "Host is in another state"),
    };
    (status, format!("fencing.{}", refusal.code()), title)
}

/// One error of an answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// The request, as in the header `x-openstack-request-id`.
    pub request_id: String,
    /// A stable word for programs.
    #[schema(example = "fencing.host.up")]
    pub code: String,
    /// The HTTP status.
    pub status: u16,
    /// For people, short.
    pub title: String,
    /// For people: the field, the value and what is allowed, where a field is wrong.
    pub detail: String,
    /// Where to read on.
    #[schema(value_type = Vec<Object>)]
    pub links: Vec<serde_json::Value>,
}

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorList {
    /// At least one.
    pub errors: Vec<ErrorBody>,
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.head().0
    }

    fn error_response(&self) -> HttpResponse {
        let (status, code, title) = self.head();
        note_code(&code);
        if status.is_server_error() {
            let chain = chain(self);
            tracing::error!(error = chain, "a request failed");
        }
        let request_id = request::current_id();
        let errors = self
            .details()
            .into_iter()
            .map(|detail| ErrorBody {
                request_id: request_id.clone(),
                code: code.clone(),
                status: status.as_u16(),
                title: title.to_owned(),
                detail,
                links: Vec::new(),
            })
            .collect();
        let mut answer = HttpResponse::build(status);
        answer.insert_header(ContentType::json());
        if let Self::Unauthorized { keystone, .. } = self {
            answer.insert_header(("WWW-Authenticate", challenge(keystone.as_deref())));
        }
        if let Self::TooManyRequests { wait } | Self::TooManyFailures { wait } = self {
            answer.insert_header(("Retry-After", seconds(*wait)));
        }
        if let Self::MethodNotAllowed { allowed, .. } = self {
            answer.insert_header(("Allow", allowed.as_str()));
        }
        if let Self::KeyRunning(_) = self {
            answer.insert_header(("Retry-After", "1"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            answer.insert_header(("Retry-After", "2"));
        }
        answer.json(ErrorList { errors })
    }
}

/// How a caller gets in.
fn challenge(keystone: Option<&str>) -> String {
    keystone.map_or_else(|| "Token".to_owned(), |url| format!("Keystone uri=\"{url}\""))
}

/// Whole seconds, at least one.
fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + 1
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
