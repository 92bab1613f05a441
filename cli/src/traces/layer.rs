//! Collects the spans of this process, and passes on those that have ended.
//!
//! The operation of a request is known only after the decision, long after the request's span has begun. So the trace of a span is decided
//! when it ends: the trace that it was given, or that a span within it was given.

use std::time::SystemTime;

use opentelemetry::InstrumentationScope;
use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use tokio::sync::mpsc::Sender;
use tracing::Subscriber;
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use super::counts::COUNTS;
use super::span::{OpenSpan, kind};
use crate::clock;

/// The prefix of the targets of all crates of Ringfence. Spans of libraries are not sent.
const OWN: &str = "ringfence";

/// Never waits: spans that the queue has no room for are counted.
pub struct SpanLayer {
    queue: Sender<SpanData>,
    sample_percent: u8,
}

impl SpanLayer {
    pub(super) fn new(queue: Sender<SpanData>, sample_percent: u8) -> Self {
        Self {
            queue,
            sample_percent,
        }
    }
}

fn now() -> SystemTime {
    clock::now().into()
}

impl<S> Layer<S> for SpanLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if !span.metadata().target().starts_with(OWN) {
            return;
        }
        let mut open = OpenSpan::new(now());
        attributes.record(&mut open);
        let trace = open.trace;
        span.extensions_mut().insert(open);
        tell_those_around(&span, trace);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let trace = span.extensions_mut().get_mut::<OpenSpan>().and_then(|open| {
            values.record(open);
            open.trace
        });
        tell_those_around(&span, trace);
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<OpenSpan>() {
            open.left = now();
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(open) = span.extensions_mut().remove::<OpenSpan>() else {
            return;
        };
        let around = around(&span);
        let Some(trace) = open.trace.or(around.map(|(trace, _)| trace)) else {
            return;
        };
        if !is_sampled(trace, self.sample_percent) {
            return;
        }
        let parent = around.filter(|(of, _)| *of == trace).map(|(_, id)| id);
        if self.queue.try_send(ended(&span, open, trace, parent)).is_err() {
            COUNTS.queue_full.inc();
        }
    }
}

/// Gives a span without a trace the trace of the first span within it that has one.
fn tell_those_around<'a, S: LookupSpan<'a>>(span: &SpanRef<'a, S>, trace: Option<TraceId>) {
    if trace.is_none() {
        return;
    }
    for outer in span.scope().skip(1) {
        if let Some(open) = outer.extensions_mut().get_mut::<OpenSpan>() {
            if open.trace.is_some() {
                return;
            }
            open.trace = trace;
        }
    }
}

/// The trace of the spans around one, and the innermost of these.
fn around<'a, S: LookupSpan<'a>>(span: &SpanRef<'a, S>) -> Option<(TraceId, SpanId)> {
    let mut parent = None;
    for outer in span.scope().skip(1) {
        let extensions = outer.extensions();
        let Some(open) = extensions.get::<OpenSpan>() else {
            continue;
        };
        let parent = *parent.get_or_insert(open.id);
        if let Some(trace) = open.trace {
            return Some((trace, parent));
        }
    }
    None
}

fn ended<'a, S: LookupSpan<'a>>(
    span: &SpanRef<'a, S>,
    open: OpenSpan,
    trace: TraceId,
    parent: Option<SpanId>,
) -> SpanData {
    let is_remote = open.from.is_some();
    SpanData {
        span_context: SpanContext::new(trace, open.id, TraceFlags::SAMPLED, false, TraceState::NONE),
        parent_span_id: open.from.or(parent).unwrap_or(SpanId::INVALID),
        parent_span_is_remote: is_remote,
        span_kind: kind(span.name()),
        name: span.name().into(),
        start_time: open.begun,
        end_time: open.left.max(open.begun),
        attributes: open.attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: open.status,
        instrumentation_scope: InstrumentationScope::builder(OWN).build(),
    }
}

/// Whether the trace is sent; every service decides this from the id of the trace alone. The last seven bytes of a random UUID are random,
/// and the bits before them are not.
fn is_sampled(trace: TraceId, percent: u8) -> bool {
    const RANDOM_BITS: u32 = 56;
    let [.., a, b, c, d, e, f, g] = trace.to_bytes();
    let random = u64::from_be_bytes([0, a, b, c, d, e, f, g]);
    u128::from(random) * 100 < u128::from(percent) << RANDOM_BITS
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{self, Receiver};
    use tracing::field::Empty;
    use tracing_subscriber::prelude::*;
    use uuid::Uuid;

    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const OTHER: &str = "0af7651916cd43dd8448eb211c80319d";

    fn watch(places: usize, act: impl FnOnce()) -> Receiver<SpanData> {
        let (queue, ended) = mpsc::channel(places);
        let layer = SpanLayer::new(queue, 100);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), act);
        ended
    }

    fn spans(act: impl FnOnce()) -> Vec<SpanData> {
        let mut ended = watch(64, act);
        std::iter::from_fn(|| ended.try_recv().ok()).collect()
    }

    fn named<'a>(spans: &'a [SpanData], name: &str) -> &'a SpanData {
        spans.iter().find(|span| span.name == name).unwrap()
    }

    #[test]
    fn a_request_belongs_to_the_operation_that_is_known_only_later() {
        let spans = spans(|| {
            let request = tracing::error_span!("request", trace_id = Empty);
            request.in_scope(|| {
                let change = tracing::error_span!("change", trace_id = Empty, host = Empty);
                change.record("host", "h1");
                change.record("trace_id", TRACE);
                let decided = tracing::error_span!(parent: &change, "publish", trace_id = TRACE, span_id = "000000000000000b");
                decided.in_scope(|| {});
            });
        });
        let (request, change, publish) = (
            named(&spans, "request"),
            named(&spans, "change"),
            named(&spans, "publish"),
        );
        for span in [request, change, publish] {
            assert_eq!(span.span_context.trace_id().to_string(), TRACE);
        }
        assert_eq!(request.parent_span_id, SpanId::INVALID);
        assert_eq!(change.parent_span_id, request.span_context.span_id());
        assert_eq!(publish.parent_span_id, change.span_context.span_id());
        assert_eq!(publish.span_context.span_id().to_string(), "000000000000000b");
        assert_eq!(change.attributes, [opentelemetry::KeyValue::new("host", "h1")]);
    }

    #[test]
    fn a_span_from_another_process_names_where_it_comes_from() {
        let spans = spans(|| {
            let span = tracing::error_span!(
                "attempt",
                trace_id = TRACE,
                parent_id = "000000000000000b",
                attempt = 11
            );
            span.in_scope(|| tracing::error_span!("read", state = "off").in_scope(|| {}));
        });
        let attempt = named(&spans, "attempt");
        assert_eq!(attempt.parent_span_id.to_string(), "000000000000000b");
        assert!(attempt.parent_span_is_remote);
        let read = named(&spans, "read");
        assert_eq!(read.parent_span_id, attempt.span_context.span_id());
        assert_eq!(read.span_context.trace_id().to_string(), TRACE);
    }

    #[test]
    fn one_trace_is_no_part_of_another() {
        let spans = spans(|| {
            let _outer = tracing::error_span!("outer", trace_id = TRACE).entered();
            let _inner = tracing::error_span!("inner", trace_id = OTHER).entered();
        });
        assert_eq!(named(&spans, "inner").parent_span_id, SpanId::INVALID);
    }

    #[test]
    fn what_belongs_to_no_trace_is_not_sent() {
        let spans = spans(|| {
            let _request = tracing::error_span!("request", path = "/hosts").entered();
            let _foreign = tracing::error_span!(target: "h2", "connection", trace_id = TRACE).entered();
            tracing::error!(trace_id = TRACE, "an event is no span");
        });
        assert!(spans.is_empty(), "{spans:?}");
    }

    #[test]
    fn a_full_queue_keeps_nobody_waiting_and_is_counted() {
        let before = COUNTS.queue_full.get();
        let mut ended = watch(2, || {
            for _ in 0..5 {
                tracing::error_span!("change", trace_id = TRACE).in_scope(|| {});
            }
        });
        assert!(COUNTS.queue_full.get() >= before + 3);
        assert!(ended.try_recv().is_ok() && ended.try_recv().is_ok() && ended.try_recv().is_err());
    }

    #[test]
    fn the_share_of_random_traces_that_is_sent_is_the_one_that_was_asked_for() {
        let traces: Vec<_> = (0..20_000)
            .map(|_| TraceId::from(Uuid::new_v4().as_u128()))
            .collect();
        for percent in [1, 10, 50, 100] {
            let sent = traces.iter().filter(|trace| is_sampled(**trace, percent)).count();
            let wanted = traces.len() * usize::from(percent) / 100;
            assert!(
                sent.abs_diff(wanted) <= 500,
                "{percent} %: {sent} of {}",
                traces.len()
            );
        }
    }
}
