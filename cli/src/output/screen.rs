//! Standard output and standard error.

use std::error::Error;
use std::fmt::Display;
use std::io::{IsTerminal, Write};

use anstream::ColorChoice;
use anstyle::{AnsiColor, Reset};
use serde_json::{Value, json};

use super::{Details, Table, plain};
use crate::args::Format;
use crate::error::CliError;

/// A terminal that says that it is narrower does not know its width.
const NARROWEST: u16 = 40;

/// Where a command answers.
#[derive(Debug)]
pub struct Screen {
    format: Format,
    colour: bool,
    width: Option<u16>,
}

impl Screen {
    /// Standard output in this format.
    #[must_use]
    pub fn new(format: Format) -> Self {
        let stdout = std::io::stdout();
        let width = stdout
            .is_terminal()
            .then(terminal_width)
            .flatten()
            .filter(|width| *width >= NARROWEST);
        let colour = anstream::AutoStream::choice(&stdout) != ColorChoice::Never;
        Self {
            format,
            colour,
            width,
        }
    }

    /// Whether a program reads it.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// A whole answer, for programs.
    pub fn json(&mut self, value: &Value) -> Result<(), CliError> {
        let text = serde_json::to_string_pretty(value).unwrap_or_default();
        self.write(&format!("{text}\n"))
    }

    /// One of many, for programs: a line.
    pub fn json_line(&mut self, value: &Value) -> Result<(), CliError> {
        self.write(&format!("{value}\n"))
    }

    /// A table, for people.
    pub fn table(&mut self, table: Table) -> Result<(), CliError> {
        self.write(&table.render(self.width, self.colour))
    }

    /// A list of properties, for people.
    pub fn details(&mut self, details: Details) -> Result<(), CliError> {
        self.write(&details.render(self.colour))
    }

    /// A line.
    pub fn line(&mut self, text: impl Display) -> Result<(), CliError> {
        self.write(&format!("{}\n", plain(&text.to_string())))
    }

    /// The last word of a command that has nothing to show; programs go by the exit code.
    pub fn done(&mut self, text: impl Display) -> Result<(), CliError> {
        if self.is_json() { Ok(()) } else { self.line(text) }
    }

    /// Something beside the answer, on standard error.
    pub fn note(&self, text: impl Display) {
        anstream::eprintln!("{}", plain(&text.to_string()));
    }

    fn write(&mut self, text: &str) -> Result<(), CliError> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }
}

fn terminal_width() -> Option<u16> {
    let mut table = comfy_table::Table::new();
    table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
    table.width()
}

/// Shows a failure with its causes: as text, or for programs in the form of the API's errors.
pub fn complain(error: &CliError, format: Format) {
    let text = with_causes(error);
    match format {
        Format::Table => {
            let red = AnsiColor::Red.on_default().bold();
            let text = text.lines().map(plain).collect::<Vec<_>>().join("\n");
            anstream::eprintln!("{red}error:{Reset} {text}");
        }
        Format::Json => {
            let own = || {
                json!({
                    "errors": [{"title": "ringfence", "detail": text, "exit": error.exit_code() as u8}],
                    "message": text,
                })
            };
            let body = if let CliError::Api(fault) = error {
                fault.body().clone()
            } else {
                own()
            };
            anstream::eprintln!("{body}");
        }
    }
}

/// Causes that only repeat what was said already are left out.
fn with_causes(error: &CliError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let why = error.to_string();
        if !text.contains(&why) {
            text.push_str("\n  because: ");
            text.push_str(&why);
        }
        cause = error.source();
    }
    text
}
