//! Errors in the form of Masakari: `{"badRequest":{"code":400,"message":M}}`.

use std::collections::HashMap;
use std::fmt;

use actix_web::http::StatusCode;
use actix_web::http::header::HeaderMap;
use actix_web::{HttpResponse, HttpResponseBuilder, ResponseError};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::ApiError;

/// The header in which the API names its version.
pub(super) const VERSION_HEADER: &str = "openstack-api-version";

/// An error in the form of Masakari: one key with its name (`badRequest`, `conflictingRequest`, ...).
#[derive(ToSchema)]
#[schema(value_type = HashMap<String, FaultDetail>)]
#[expect(dead_code, reason = "describes what `Fault` answers")]
pub(crate) struct FaultBody(HashMap<String, FaultDetail>);

/// What is wrong.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what `Fault` answers")]
pub(crate) struct FaultDetail {
    /// The HTTP status.
    code: u16,
    /// For people.
    message: String,
}

/// Why a notification is not taken.
#[derive(Debug)]
pub(crate) struct Fault {
    status: StatusCode,
    message: String,
    headers: HeaderMap,
}

impl Fault {
    pub fn bad(message: impl Into<String>) -> Self {
        Self::of(StatusCode::BAD_REQUEST, message)
    }

    pub fn conflict(message: impl Into<String>) -> Self {
        Self::of(StatusCode::CONFLICT, message)
    }

    pub fn of(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            headers: HeaderMap::new(),
        }
    }

    fn name(&self) -> &'static str {
        match self.status.as_u16() {
            400 => "badRequest",
            401 => "unauthorized",
            403 => "forbidden",
            404 => "itemNotFound",
            405 => "badMethod",
            409 => "conflictingRequest",
            413 | 429 => "overLimit",
            503 => "serviceUnavailable",
            _ => "masakariFault",
        }
    }
}

impl From<ApiError> for Fault {
    /// The error's status and headers, in Masakari's form. What is of no account to a monitor (an unreadable body has no type there) is bad.
    fn from(error: ApiError) -> Self {
        let message = error.message();
        let headers = error.error_response().headers().clone();
        Self {
            status: error.status_code(),
            message,
            headers,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl ResponseError for Fault {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        let mut answer = said(HttpResponse::build(self.status));
        for name in ["www-authenticate", "retry-after"] {
            if let Some(value) = self.headers.get(name) {
                answer.insert_header((name, value.clone()));
            }
        }
        let fault = json!({ "code": self.status.as_u16(), "message": self.message });
        let body: serde_json::Map<String, Value> = [(self.name().to_owned(), fault)].into_iter().collect();
        answer.json(body)
    }
}

/// Says which version answers.
pub(super) fn said(mut answer: HttpResponseBuilder) -> HttpResponseBuilder {
    answer.insert_header((VERSION_HEADER, "masakari 1.0"));
    answer
}
