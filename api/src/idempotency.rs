//! `Idempotency-Key`: a POST that is sent again is answered again and not carried out again.

use std::time::Duration;

use actix_web::body::{BodySize, BoxBody, MessageBody, to_bytes};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::error::PayloadError;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::{HttpMessage, HttpRequest, HttpResponse, ResponseError, web};
use ringfence_engine::{EngineError, HeldKey, KeptAnswer, KeyState, KeyedRequest};
use sha2::{Digest, Sha256};

use crate::ApiError;
use crate::auth::identify;
use crate::body::whole;
use crate::request::is_masakaris;
use crate::routes::{again, bulk, fence, segments, sessions};
use crate::state::State;

/// Where the key is.
const HEADER: &str = "idempotency-key";
/// Says that an answer was given before.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// The longest key, in characters.
const MAX_KEY_CHARS: usize = 255;
/// The largest answer that is kept, in bytes; where one is larger, a repeat shows what was changed as it is then.
const MAX_ANSWER_BYTES: u64 = 1 << 20;
/// Headers of an answer that are kept.
const KEPT_HEADERS: [&str; 4] = ["content-type", "etag", "location", "retry-after"];
/// Looks whether a request that is being carried out has been answered, and what is waited between two.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// A request with a key.
struct Keyed {
    state: web::Data<State>,
    request: KeyedRequest,
    held: HeldKey,
}

/// What is to be done with a request.
enum Step {
    /// It has no key.
    Plain,
    /// It is carried out with its key.
    Run(Keyed),
    /// It was carried out before.
    Answer(HttpResponse),
}

/// Carries a request with a key out, unless it was carried out before.
pub(crate) async fn once(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
    let keyed = match prepare(&mut request).await {
        Ok(Step::Plain) => return Ok(next.call(request).await?.map_into_boxed_body()),
        Ok(Step::Answer(answer)) => return Ok(request.into_response(answer)),
        Ok(Step::Run(keyed)) => keyed,
        Err(error) => return Ok(request.into_response(error.error_response())),
    };
    match next.call(request).await {
        Ok(answer) => keyed.keep(answer.map_into_boxed_body()).await,
        Err(error) => {
            keyed.release().await;
            Err(error)
        }
    }
}

/// What changes nothing is asked and not done: yesterday's answer must not be given again. What stands in for Masakari knows its own
/// duplicates. And a browser that signs in has no name yet.
pub(crate) fn takes_no_key(path: &str) -> bool {
    path.starts_with("/nova/") || is_masakaris(path) || [segments::CHECK, sessions::PATH].contains(&path)
}

async fn prepare(request: &mut ServiceRequest) -> Result<Step, ApiError> {
    let path = request.match_pattern().unwrap_or_default();
    if request.method() != Method::POST || path.is_empty() || takes_no_key(&path) {
        return Ok(Step::Plain);
    }
    let Some(key) = key_of(request.request())? else {
        return Ok(Step::Plain);
    };
    let Some(state) = request.app_data::<web::Data<State>>().cloned() else {
        return Ok(Step::Plain);
    };
    let caller = identify(request.request()).await?;
    let Some(owner) = caller.owner() else {
        request.extensions_mut().insert(caller);
        return Ok(Step::Plain);
    };
    let allowed = if path.starts_with(bulk::PATHS) {
        bulk::MAX_BODY_BYTES
    } else {
        state.front.max_body_bytes
    };
    let body = body_of(request, allowed).await?;
    if path == fence::PATH && fence::is_dry_run(&body) {
        request.extensions_mut().insert(caller);
        return Ok(Step::Plain);
    }
    let keyed = KeyedRequest {
        caller: owner,
        key,
        digest: digest(request.request(), &body),
    };
    match wait_for_key(&state, &keyed).await? {
        KeyState::Held(held) => {
            request.extensions_mut().insert(caller.with_key(held.clone()));
            Ok(Step::Run(Keyed {
                state,
                request: keyed,
                held,
            }))
        }
        other => answer_of(&state, request.request(), &keyed, other)
            .await
            .map(Step::Answer),
    }
}

/// The key, if one is given.
fn key_of(request: &HttpRequest) -> Result<Option<String>, ApiError> {
    let bad = |what: String| {
        let allowed = format!("1 to {MAX_KEY_CHARS} visible ASCII characters, once, are allowed");
        ApiError::bad("Idempotency-Key", format!("{what}; {allowed}"))
    };
    let mut given = request.headers().get_all(HEADER);
    let Some(value) = given.next() else {
        return Ok(None);
    };
    if given.next().is_some() {
        return Err(bad("is given more than once".to_owned()));
    }
    let bytes = value.as_bytes();
    if bytes.is_empty() || bytes.len() > MAX_KEY_CHARS {
        return Err(bad(format!("has {} characters", bytes.len())));
    }
    let text = value.to_str().unwrap_or_default();
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(bad(format!("is {value:?}")));
    }
    Ok(Some(text.to_owned()))
}

/// Reads the body and puts it back.
async fn body_of(request: &mut ServiceRequest, allowed: usize) -> Result<web::Bytes, ApiError> {
    let payload = request.extract::<web::Payload>();
    let bytes = async {
        let bytes = payload.await?.to_bytes_limited(allowed).await;
        bytes.map_err(|_| actix_web::Error::from(PayloadError::Overflow))?
    };
    let body = whole(bytes, allowed).await?;
    request.set_payload(Payload::from(body.clone()));
    Ok(body)
}

/// Of all that makes a request what it is. Each part is followed by its length, so that no two requests run into one.
fn digest(request: &HttpRequest, body: &[u8]) -> String {
    let header = |name: &str| {
        request
            .headers()
            .get(name)
            .map_or(&b""[..], |value| value.as_bytes())
    };
    let path = request.uri().path_and_query().map_or("", |path| path.as_str());
    let parts = [
        request.method().as_str().as_bytes(),
        path.as_bytes(),
        header("if-match"),
        header("content-type"),
        body,
    ];
    let mut digest = Sha256::new();
    for part in parts {
        digest.update(part);
        digest.update(part.len().to_be_bytes());
    }
    hex::encode(digest.finalize())
}

/// The key, or how it stands once no other try carries the request out, or soon.
async fn wait_for_key(state: &State, request: &KeyedRequest) -> Result<KeyState, ApiError> {
    for _ in 0..LOOKS {
        match state.engine.hold_key(request).await? {
            KeyState::Running => tokio::time::sleep(BETWEEN_LOOKS).await,
            other => return Ok(other),
        }
    }
    Ok(KeyState::Running)
}

/// What a request that is not carried out is answered.
async fn answer_of(
    state: &State,
    http: &HttpRequest,
    request: &KeyedRequest,
    key: KeyState,
) -> Result<HttpResponse, ApiError> {
    let mut answer = match key {
        KeyState::Answered(kept) => response(kept)?,
        KeyState::Done(receipt) => again::answer(state, http.match_pattern().as_deref(), receipt).await?,
        KeyState::Reused => return Err(ApiError::KeyReused(request.key.clone())),
        KeyState::Running | KeyState::Held(_) => return Err(ApiError::KeyRunning(request.key.clone())),
    };
    answer
        .headers_mut()
        .insert(REPLAYED, HeaderValue::from_static("true"));
    Ok(answer)
}

fn response(kept: KeptAnswer) -> Result<HttpResponse, ApiError> {
    let status = StatusCode::from_u16(kept.status)
        .map_err(|error| ApiError::bad("Idempotency-Key", error.to_string()))?;
    let mut answer = HttpResponse::build(status);
    for header in kept.headers {
        answer.insert_header(header);
    }
    Ok(answer.body(kept.body))
}

impl Keyed {
    /// Keeps the answer and gives it.
    async fn keep(
        self,
        answer: ServiceResponse<BoxBody>,
    ) -> Result<ServiceResponse<BoxBody>, actix_web::Error> {
        let (http, answer) = answer.into_parts();
        match self.is_overtaken(&answer).await {
            Ok(false) => {}
            Ok(true) => {
                let answer = self.overtaken(&http).await;
                let answer = answer.unwrap_or_else(|error| error.error_response());
                return Ok(ServiceResponse::new(http, answer));
            }
            Err(error) => return Ok(ServiceResponse::new(http, error.error_response())),
        }
        if !is_kept(answer.status()) {
            self.release().await;
            return Ok(ServiceResponse::new(http, answer));
        }
        if answer.headers().contains_key("cache-control") {
            // It holds what is kept nowhere: a repeat makes it anew from the receipt.
            return Ok(ServiceResponse::new(http, answer));
        }
        if !matches!(answer.body().size(), BodySize::Sized(bytes) if bytes <= MAX_ANSWER_BYTES) {
            self.release().await;
            return Ok(ServiceResponse::new(http, answer));
        }
        let (head, body) = answer.into_parts();
        let body = to_bytes(body).await?;
        let headers = KEPT_HEADERS.iter().filter_map(|name| {
            let value = head.headers().get(*name)?.to_str().ok()?;
            Some(((*name).to_owned(), value.to_owned()))
        });
        let kept = KeptAnswer {
            status: head.status().as_u16(),
            headers: headers.collect(),
            body: String::from_utf8_lossy(&body).into_owned(),
        };
        if let Err(error) = self.state.engine.keep_answer(&self.held, &kept).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "an answer could not be kept; a repeat goes by what was changed"
            );
        }
        Ok(ServiceResponse::new(
            http,
            head.set_body(body).map_into_boxed_body(),
        ))
    }

    /// Whether another try has made the change, or is making it. A refusal may only be a refusal to make the change twice: if a commit had
    /// no answer and is tried again, its own change is in the way.
    async fn is_overtaken(&self, answer: &HttpResponse) -> Result<bool, ApiError> {
        if is_spent(answer) {
            return Ok(true);
        }
        let is_refused = answer.status().is_client_error();
        Ok(is_refused && self.state.engine.has_receipt(&self.held).await?)
    }

    /// The answer of the other try. If that try is gone without a change, this one gets the key, and releases it.
    async fn overtaken(&self, http: &HttpRequest) -> Result<HttpResponse, ApiError> {
        self.state.engine.release_key(&self.held).await?;
        let key = self.state.engine.hold_key(&self.request).await?;
        if let KeyState::Held(held) = &key {
            // That one has changed nothing and is gone: another try is served.
            self.state.engine.release_key(held).await?;
        }
        answer_of(&self.state, http, &self.request, key).await
    }

    /// Lets a repeat be carried out, unless something was changed.
    async fn release(self) {
        if let Err(error) = self.state.engine.release_key(&self.held).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "an idempotency key could not be released; it expires in a minute"
            );
        }
    }
}

/// Whether the change was refused because it was made before, or another try makes it.
fn is_spent(answer: &HttpResponse) -> bool {
    let error = answer.error().and_then(|error| error.as_error::<ApiError>());
    matches!(error, Some(ApiError::Engine(EngineError::KeySpent)))
}

/// Faults pass, and who may do something can change; everything else is an answer to the request itself.
fn is_kept(status: StatusCode) -> bool {
    !status.is_server_error()
        && ![
            StatusCode::UNAUTHORIZED,
            StatusCode::FORBIDDEN,
            StatusCode::TOO_MANY_REQUESTS,
        ]
        .contains(&status)
}
