//! Log lines of the services, on standard error.

#[cfg(test)]
mod captured;
mod json;
mod levels;

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::JsonFields;

use self::json::FlatJson;
use crate::config::{LogFormat, LogSettings};
use crate::error::{CliError, Complaints};

/// Starts logging; call once.
pub fn start(settings: &LogSettings) -> Result<(), CliError> {
    let filter = EnvFilter::try_new(levels::directives(&settings.level)).map_err(|error| {
        CliError::Config(Complaints::one(format!(
            "log.level is {:?}: {error}",
            settings.level
        )))
    })?;
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match settings.format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => lines
            .with_ansi(false)
            .fmt_fields(JsonFields::new())
            .event_format(FlatJson)
            .try_init(),
    };
    started.map_err(|source| CliError::service("logging", "cannot start", source))
}
