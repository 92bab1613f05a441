//! One flat JSON object per line: the event's fields, and those of the spans around it.
//!
//! If a field occurs more than once, the event's own value wins, then that of the innermost span, so that each line has each name once,
//! with the most precise value.

use std::fmt;

use serde_json::{Map, Value};
use tracing::{Event, Subscriber};
use tracing_log::NormalizeEvent;
use tracing_serde::fields::AsMap;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Needs [`JsonFields`](tracing_subscriber::fmt::format::JsonFields) as the format of the fields.
pub struct FlatJson;

impl<S, N> FormatEvent<S, N> for FlatJson
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // Events of libraries that use the crate `log` have their target among the fields.
        let normalized = event.normalized_metadata();
        let metadata = normalized.as_ref().unwrap_or_else(|| event.metadata());
        let mut fields = span_fields(context);
        if let Ok(Value::Object(own)) = serde_json::to_value(event.field_map()) {
            fields.extend(own.into_iter().filter(|(name, _)| !name.starts_with("log.")));
        }
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        let first = [
            ("timestamp", Value::from(timestamp)),
            ("level", Value::from(metadata.level().as_str())),
            ("target", Value::from(metadata.target())),
            ("message", fields.remove("message").unwrap_or_default()),
        ];
        for (name, value) in &first {
            fields.remove(*name);
            let begin = if *name == "timestamp" { '{' } else { ',' };
            write!(writer, "{begin}\"{name}\":{value}")?;
        }
        for (name, value) in fields {
            write!(writer, ",{}:{value}", Value::from(name))?;
        }
        writeln!(writer, "}}")
    }
}

/// The fields of all spans around an event, the inner ones over the outer ones, and the name of the innermost.
fn span_fields<S, N>(context: &FmtContext<'_, S, N>) -> Map<String, Value>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    let mut fields = Map::new();
    let Some(innermost) = context.parent_span() else {
        return fields;
    };
    for span in innermost.scope().from_root() {
        let extensions = span.extensions();
        let formatted = extensions.get::<FormattedFields<N>>();
        if let Some(Ok(Value::Object(own))) = formatted.map(|own| serde_json::from_str(own)) {
            fields.extend(own);
        }
    }
    fields.insert("span".to_owned(), Value::from(innermost.name()));
    fields
}

#[cfg(test)]
mod tests {
    use tracing::field::Empty;
    use tracing_subscriber::fmt::format::JsonFields;

    use super::*;
    use crate::logging::captured::Lines;

    fn lines(speak: impl FnOnce()) -> Vec<Value> {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .fmt_fields(JsonFields::new())
            .event_format(FlatJson)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, speak);
        let text = lines.text();
        // A name that is there twice would be lost by reading: count them before that.
        for line in text.lines() {
            assert!(line.matches("\"attempt\":").count() <= 1, "{line}");
        }
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn each_line_holds_the_fields_of_all_spans_around_it() {
        let lines = lines(|| {
            let request = tracing::info_span!("request", request_id = "req-1", operation_id = Empty);
            let _within = request.enter();
            tracing::info!("before it is known");
            request.record("operation_id", "op-1");
            let _deeper = tracing::info_span!("publish", attempt = 1).entered();
            tracing::info!(outcome = "published", "done \"well\"");
        });
        assert_eq!(lines[0]["request_id"], "req-1");
        assert_eq!(lines[0]["operation_id"], Value::Null);
        let done = &lines[1];
        assert_eq!(done["message"], "done \"well\"");
        assert_eq!(done["level"], "INFO");
        assert_eq!(done["target"], module_path!());
        assert!(done["timestamp"].is_string());
        assert_eq!(done["span"], "publish");
        assert_eq!(done["request_id"], "req-1");
        assert_eq!(done["operation_id"], "op-1");
        assert_eq!(done["attempt"], 1);
        assert_eq!(done["outcome"], "published");
    }

    #[test]
    fn the_events_own_field_wins_then_that_of_the_innermost_span() {
        let lines = lines(|| {
            let _outer = tracing::info_span!("outer", attempt = 1, level = "loud").entered();
            let _inner = tracing::info_span!("inner", attempt = 2).entered();
            tracing::info!("the inner one");
            tracing::info!(attempt = 3, "its own");
            tracing::info!(parent: None, "alone");
        });
        assert_eq!(lines[0]["attempt"], 2);
        assert_eq!(lines[0]["level"], "INFO");
        assert_eq!(lines[1]["attempt"], 3);
        assert_eq!(lines[2]["attempt"], Value::Null);
        assert_eq!(lines[2]["span"], Value::Null);
    }
}
