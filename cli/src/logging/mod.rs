//! Log lines of the services, on standard error, and their spans.

#[cfg(test)]
mod captured;
mod json;
mod levels;

use std::io::IsTerminal;

use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::JsonFields;
use tracing_subscriber::prelude::*;
use tracing_subscriber::{EnvFilter, Layer};

use self::json::FlatJson;
use crate::config::{LogFormat, LogSettings};
use crate::error::CliError;
use crate::traces::SpanLayer;

/// Starts logging; call once. Spans are of the highest level: they are there unless `log.level` is `off`.
pub fn start(settings: &LogSettings, spans: Option<SpanLayer>) -> Result<(), CliError> {
    let filter = EnvFilter::try_new(levels::directives(&settings.level))
        .map_err(|error| CliError::config(format!("log.level is {:?}: {error}", settings.level)))?;
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match settings.format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines
            .with_ansi(false)
            .fmt_fields(JsonFields::new())
            .event_format(FlatJson)
            .boxed(),
    };
    tracing_subscriber::registry()
        // One filter for both. Filters of their own would lose spans: a library that asks whether it may speak and then does not
        // (as sqlx does) leaves its answer behind, and the next span of the thread takes it for its own.
        .with(filter)
        .with(lines)
        .with(spans)
        .try_init()
        .map_err(|source| CliError::service("logging", "cannot start", source))
}
