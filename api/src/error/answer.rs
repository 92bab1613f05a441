//! Errors as HTTP answers, in the form of the API-SIG.

use actix_web::http::StatusCode;
use actix_web::http::header::ContentType;
use actix_web::{HttpResponse, ResponseError};
use ringfence_core::error_chain;
use ringfence_engine::EngineError;
use serde::Serialize;
use utoipa::ToSchema;

use super::{ApiError, seconds};
use crate::request;
use crate::request_log::note_code;

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
    /// What all of them say, in one line: openstacksdk shows this, and reads no list of errors.
    pub message: String,
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.head().0
    }

    fn error_response(&self) -> HttpResponse {
        let (status, code, _) = self.head();
        note_code(&code);
        // Probes ask a process that waits all the time.
        if status.is_server_error() && !matches!(self, Self::Waiting) {
            let chain = error_chain(self);
            tracing::error!(error = chain, "a request failed");
        }
        let errors = self.bodies();
        let mut answer = HttpResponse::build(status);
        answer.insert_header(ContentType::json());
        if let Self::Unauthorized { keystone, .. } = self {
            answer.insert_header(("WWW-Authenticate", challenge(keystone.as_deref())));
        }
        if let Self::TooManyRequests { wait } | Self::TooManyFailures { wait } = self {
            answer.insert_header(("Retry-After", seconds(*wait)));
        }
        if let Self::TooManyStreams { .. } = self {
            answer.insert_header(("Retry-After", "30"));
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
        answer.json(ErrorList {
            errors,
            message: self.message(),
        })
    }
}

/// How a caller gets in.
fn challenge(keystone: Option<&str>) -> String {
    keystone.map_or_else(|| "Token".to_owned(), |url| format!("Keystone uri=\"{url}\""))
}

impl ApiError {
    /// The errors of the answer.
    pub(crate) fn bodies(&self) -> Vec<ErrorBody> {
        let (status, code, title) = self.head();
        let request_id = request::current_id();
        let body = |detail| ErrorBody {
            request_id: request_id.clone(),
            code: code.clone(),
            status: status.as_u16(),
            title: title.to_owned(),
            detail,
            links: Vec::new(),
        };
        self.details().into_iter().map(body).collect()
    }

    /// What the caller is told, in one line.
    pub(crate) fn message(&self) -> String {
        self.details().join("; ")
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
