//! Bodies: JSON, bounded, and an error that names the field.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, error::PayloadError, web};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use tokio::time::timeout;

use crate::ApiError;
use crate::state::Front;
use crate::whole_numbers::as_integers;

/// How long the whole of a body may take.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// A body that was read as `T`.
#[derive(Debug)]
pub(crate) struct Body<T>(pub T);

impl<T: DeserializeOwned + 'static> FromRequest for Body<T> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let allowed = request
            .app_data::<web::Data<Front>>()
            .map_or(0, |front| front.max_body_bytes);
        let bytes = read(request, payload, allowed);
        Box::pin(async move { parse_owned(&bytes.await?).map(Self) })
    }
}

/// A body of at most so many bytes that has yet to be parsed, for what borrows from it.
#[derive(Debug)]
pub(crate) struct LongBody<const MAX_BYTES: usize>(web::Bytes);

impl<const MAX_BYTES: usize> LongBody<MAX_BYTES> {
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ApiError> {
        parse(&self.0)
    }
}

impl<const MAX_BYTES: usize> FromRequest for LongBody<MAX_BYTES> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let bytes = read(request, payload, MAX_BYTES);
        Box::pin(async move { bytes.await.map(Self) })
    }
}

/// The bytes of a body. The service bounds them before they come here; `allowed` is what is said of it.
fn read(
    request: &HttpRequest,
    payload: &mut Payload,
    allowed: usize,
) -> impl Future<Output = Result<web::Bytes, ApiError>> + use<> {
    let content_type = request
        .headers()
        .get("content-type")
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    let is_json = content_type
        .split(';')
        .next()
        .is_some_and(|t| t.trim().eq_ignore_ascii_case("application/json"));
    let content_type = content_type.to_owned();
    let encoding = request.headers().get("content-encoding").cloned();
    let bytes = web::Bytes::from_request(request, payload);
    async move {
        if !is_json {
            return Err(ApiError::NotJson(content_type));
        }
        if let Some(encoding) = encoding.filter(|encoding| encoding != "identity") {
            return Err(ApiError::Encoded(
                String::from_utf8_lossy(encoding.as_bytes()).into_owned(),
            ));
        }
        whole(bytes, allowed).await
    }
}

/// A body of at most `allowed` bytes, once all of it has come. One that comes byte by byte would hold its connection for ever.
pub(crate) async fn whole(
    bytes: impl Future<Output = Result<web::Bytes, actix_web::Error>>,
    allowed: usize,
) -> Result<web::Bytes, ApiError> {
    match timeout(BODY_TIMEOUT, bytes).await {
        Ok(bytes) => bytes.map_err(|error| payload_error(&error, allowed)),
        Err(_) => Err(ApiError::BodyTooSlow {
            allowed_s: BODY_TIMEOUT.as_secs(),
        }),
    }
}

/// Why a body of at most `allowed` bytes could not be read.
fn payload_error(error: &actix_web::Error, allowed: usize) -> ApiError {
    match error.as_error::<PayloadError>() {
        Some(PayloadError::Overflow) => ApiError::TooLarge { allowed },
        _ if error.as_response_error().status_code() == 413 => ApiError::TooLarge { allowed },
        _ => ApiError::bad("body", format!("cannot be read: {error}")),
    }
}

/// As [`parse`]; a whole number may be written as `3.0`.
pub(crate) fn parse_owned<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    parse(bytes).or_else(|error| match as_integers(bytes) {
        Some(bytes) => parse(&bytes),
        None => Err(error),
    })
}

/// To know where something is wrong costs more than to read it: only who has erred waits for that.
fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ApiError> {
    serde_json::from_slice(bytes).or_else(|_| parse_with_paths(bytes))
}

fn parse_with_paths<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ApiError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        match error.inner().classify() {
            Category::Data if !matches!(path.as_str(), "." | "?") => {
                ApiError::bad(&path, without_place(error.inner()))
            }
            Category::Data => ApiError::bad("body", without_place(error.inner())),
            Category::Eof if bytes.trim_ascii().is_empty() => {
                ApiError::bad("body", "is empty; a JSON object is allowed")
            }
            Category::Eof | Category::Syntax | Category::Io => not_json(error.inner()),
        }
    })?;
    json.end().map_err(|error| not_json(&error))?;
    Ok(value)
}

fn not_json(error: &serde_json::Error) -> ApiError {
    ApiError::bad("body", format!("is not JSON: {error}"))
}

/// The field says where it is. Who has written TOML, or a client that writes JSON itself, would look for the line in vain.
fn without_place(error: &serde_json::Error) -> String {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let text = error.to_string();
    text.strip_suffix(&place).map_or(text.clone(), ToOwned::to_owned)
}
