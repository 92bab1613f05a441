//! What every request gets: an id, a version of the API, a span.

use std::future::Future;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::middleware::Next;
use actix_web::{HttpMessage, ResponseError, web};
use tracing::Instrument;
use uuid::Uuid;

use crate::ApiError;
use crate::request_log::RequestLog;
use crate::state::Front;

/// The lowest and the highest version of the API, and the header that names one.
pub(crate) const MIN_VERSION: (u32, u32) = (1, 0);
pub(crate) const MAX_VERSION: (u32, u32) = (1, 0);
const VERSION_HEADER: &str = "openstack-api-version";
const SERVICE_TYPE: &str = "fencing";
const REQUEST_ID_HEADER: &str = "x-openstack-request-id";

tokio::task_local! {
    static REQUEST_ID: String;
}

/// The id of the request that is being served.
pub(crate) fn current_id() -> String {
    REQUEST_ID.try_with(Clone::clone).unwrap_or_default()
}

/// The ids of a request, for handlers.
#[derive(Clone, Debug)]
pub(crate) struct RequestId {
    /// Ours.
    pub own: String,
    /// The caller's, where it sent one.
    pub global: Option<String>,
}

/// Gives the request its id and span, checks the version, and puts both into the answer.
pub(crate) async fn frame(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, actix_web::Error> {
    let id = format!("req-{}", Uuid::new_v4());
    let global_id = inbound_id(&request);
    let log = RequestLog::begin(&request, &id, global_id.as_deref());
    let counted = request
        .app_data::<web::Data<Front>>()
        .map(|front| front.requests.begin(&request));
    let span = log.span.clone();
    request.extensions_mut().insert(RequestId {
        own: id.clone(),
        global: global_id,
    });
    let served = scoped(id.clone(), async move {
        match negotiate(&request) {
            Ok(version) => {
                let mut answer = next.call(request).await?;
                say_version(&mut answer, version);
                Ok::<_, actix_web::Error>(answer.map_into_left_body())
            }
            Err(error) => {
                let answer = error.error_response().map_into_right_body();
                Ok(request.into_response(answer))
            }
        }
    });
    let served: Result<ServiceResponse<EitherBody<_>>, _> = served.instrument(span).await;
    let status = served.as_ref().map_or_else(
        |error| error.as_response_error().status_code(),
        ServiceResponse::status,
    );
    log.end(status);
    if let Some(counted) = counted {
        counted.end(status);
    }
    let mut answer = served?;
    let vary = HeaderValue::from_static("OpenStack-API-Version");
    answer.headers_mut().append(HeaderName::from_static("vary"), vary);
    if let Ok(value) = HeaderValue::from_str(&id) {
        answer
            .headers_mut()
            .insert(HeaderName::from_static(REQUEST_ID_HEADER), value);
    }
    Ok(answer)
}

async fn scoped<T>(id: String, work: impl Future<Output = T>) -> T {
    REQUEST_ID.scope(id, work).await
}

/// An id from outside counts only in OpenStack's form.
fn inbound_id(request: &ServiceRequest) -> Option<String> {
    let text = request.headers().get(REQUEST_ID_HEADER)?.to_str().ok()?;
    let uuid = text.strip_prefix("req-")?;
    Uuid::parse_str(uuid).ok()?;
    Some(text.to_owned())
}

/// Absent: the lowest. `latest`: the highest. Any other version has to be in the range. Versions of other services in the header are
/// ignored, and the document of the versions needs no version.
fn negotiate(request: &ServiceRequest) -> Result<(u32, u32), ApiError> {
    if is_masakaris(request.path()) {
        return Ok(MIN_VERSION);
    }
    let mut given = None;
    for header in request.headers().get_all(VERSION_HEADER) {
        for part in header.to_str().unwrap_or("?").split(',') {
            match part.trim().split_once(char::is_whitespace) {
                Some((SERVICE_TYPE, version)) => given = Some(version.trim()),
                Some(_) => {}
                None => return Err(malformed(part.trim())),
            }
        }
    }
    let Some(wanted) = given.filter(|_| request.path() != "/") else {
        return Ok(MIN_VERSION);
    };
    if wanted == "latest" {
        return Ok(MAX_VERSION);
    }
    let malformed = || malformed(wanted);
    let (major, minor) = wanted.split_once('.').ok_or_else(malformed)?;
    let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    if !digits(major) || !digits(minor) {
        return Err(malformed());
    }
    let version = (
        major.parse().map_err(|_| malformed())?,
        minor.parse().map_err(|_| malformed())?,
    );
    if (MIN_VERSION..=MAX_VERSION).contains(&version) {
        return Ok(version);
    }
    Err(ApiError::Version(format!(
        "version {}.{} is not available; {}.{} to {}.{} are",
        version.0, version.1, MIN_VERSION.0, MIN_VERSION.1, MAX_VERSION.0, MAX_VERSION.1
    )))
}

/// The paths that stand in for Masakari have its versions.
pub(crate) fn is_masakaris(path: &str) -> bool {
    path.starts_with("/v1/") || path.starts_with("/clouds/")
}

fn malformed(text: &str) -> ApiError {
    ApiError::bad(
        "OpenStack-API-Version",
        format!("is {text:?}; \"{SERVICE_TYPE} 1.N\" or \"{SERVICE_TYPE} latest\" is allowed"),
    )
}

fn say_version<B>(answer: &mut ServiceResponse<B>, version: (u32, u32)) {
    if answer.headers().contains_key(VERSION_HEADER) {
        return;
    }
    let text = format!("{SERVICE_TYPE} {}.{}", version.0, version.1);
    if let Ok(value) = HeaderValue::from_str(&text) {
        answer
            .headers_mut()
            .insert(HeaderName::from_static(VERSION_HEADER), value);
    }
}
