//! One open span: its trace, as its fields tell it, and its attributes.

use std::fmt::Debug;
use std::time::SystemTime;

use opentelemetry::trace::{SpanId, SpanKind, Status, TraceId};
use opentelemetry::{KeyValue, Value};
use tracing::field::{Field, Visit};
use uuid::Uuid;

/// The longest text of an attribute, in characters.
const MAX_CHARS: usize = 256;

pub(super) struct OpenSpan {
    pub begun: SystemTime,
    /// When the span was last left: a span stays open while spans within it are open.
    pub left: SystemTime,
    /// Unknown until a field names the operation.
    pub trace: Option<TraceId>,
    pub id: SpanId,
    /// The span in another process, or of an earlier try, that caused this one.
    pub from: Option<SpanId>,
    pub attributes: Vec<KeyValue>,
    pub status: Status,
}

impl OpenSpan {
    pub fn new(now: SystemTime) -> Self {
        Self {
            begun: now,
            left: now,
            trace: None,
            id: SpanId::from(Uuid::new_v4().as_u64_pair().1),
            from: None,
            attributes: Vec::new(),
            status: Status::Unset,
        }
    }

    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        let name = field.name();
        self.attributes.retain(|attribute| attribute.key.as_str() != name);
        self.attributes.push(KeyValue::new(name, value));
    }

    fn put_text(&mut self, field: &Field, text: &str) {
        match field.name() {
            "trace_id" => self.trace = TraceId::from_hex(text).ok().or(self.trace),
            "span_id" => self.id = SpanId::from_hex(text).unwrap_or(self.id),
            "parent_id" => self.from = SpanId::from_hex(text).ok(),
            name => {
                let is_failure = match name {
                    "code" => true,
                    "outcome" => matches!(text, "refused" | "unknown"),
                    _ => false,
                };
                if is_failure {
                    self.status = Status::error(text.to_owned());
                }
                self.put(field, text.chars().take(MAX_CHARS).collect::<String>());
            }
        }
    }
}

impl Visit for OpenSpan {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put_text(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put_text(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}

/// The kind of a span: which side of a request or message it is.
pub(super) fn kind(name: &str) -> SpanKind {
    match name {
        "request" | "answer" => SpanKind::Server,
        "publish" => SpanKind::Producer,
        "attempt" | "claim" | "result" => SpanKind::Consumer,
        "question" | "read" | "command" => SpanKind::Client,
        _ => SpanKind::Internal,
    }
}
