//! One line per request, and a span around everything that is done for it.

use actix_web::dev::ServiceRequest;
use actix_web::http::{Method, StatusCode};
use ringfence_core::OperationId;
use tokio::time::Instant;
use tracing::Span;
use tracing::field::{Empty, display};
use uuid::Uuid;

/// What monitors send all the time, and what it changes is told by the engine; and what schedulers ask all the time.
const ROUTINE: [&str; 5] = [
    "/hosts/{id}/failure-state",
    "/bulk/failure-states",
    "/nova/filter",
    "/kubernetes/filter",
    "/kubernetes/admission/{cluster}",
];
/// The longest id of a request's path that is repeated, in characters: longer ones name nothing.
const MAX_ID_CHARS: usize = 255;

/// A request under way.
pub(crate) struct RequestLog {
    pub span: Span,
    begun: Instant,
    is_routine: bool,
}

impl RequestLog {
    pub fn begin(request: &ServiceRequest, id: &str, global_id: Option<&str>) -> Self {
        let path = request.match_pattern();
        let named = path.as_deref().and_then(|path| host(path, request.path()));
        let (host_id, host) = (
            named.filter(|named| is_id(named)),
            named.filter(|named| !is_id(named)),
        );
        let is_change = ![Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
        // Of the highest level, so that a warning shows its fields whatever the log's level is. Never the query, which may hold anything.
        let span = tracing::error_span!(
            "request",
            request_id = id,
            global_request_id = global_id,
            http_method = request.method().as_str(),
            path,
            actor = Empty,
            host,
            host_id,
            trace_id = Empty,
            operation_id = Empty,
            code = Empty,
            status = Empty,
        );
        Self {
            span,
            begun: Instant::now(),
            is_routine: !is_change || path.as_deref().is_some_and(|path| ROUTINE.contains(&path)),
        }
    }

    /// Says how it was answered: changes at info, reads and reports at debug, since those come whether or not anything happens.
    pub fn end(&self, status: StatusCode) {
        let took_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let status = status.as_u16();
        self.span.record("status", status);
        let _within = self.span.enter();
        if self.is_routine {
            tracing::debug!(status, took_ms, "answered");
        } else {
            tracing::info!(status, took_ms, "answered");
        }
    }
}

/// Notes who asks, on the request that is being served.
pub(crate) fn note_actor(name: &str) {
    Span::current().record("actor", name);
}

/// Notes which operation the request that is being served is about.
pub(crate) fn note_operation(id: OperationId) {
    note_read_operation(id);
    Span::current().record("trace_id", display(id.0.simple()));
}

/// Notes which operation the request reads. It is no part of the operation's trace: a client that waits for an operation reads it all the time.
pub(crate) fn note_read_operation(id: OperationId) {
    Span::current().record("operation_id", display(id));
}

fn is_id(named: &str) -> bool {
    Uuid::parse_str(named).is_ok()
}

/// Notes the code of the error that the request is answered with.
pub(crate) fn note_code(code: &str) {
    Span::current().record("code", code);
}

/// The host that the path names, by its name or its id.
fn host<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    pattern.strip_prefix("/hosts/{id}")?;
    let id = path.strip_prefix("/hosts/")?.split('/').next()?;
    (id.chars().count() <= MAX_ID_CHARS).then_some(id)
}
