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

/// Clears a terminal and moves to its top.
const CLEAR: &str = "\x1b[H\x1b[2J";
/// A terminal that reports a smaller width does not know its width.
const NARROWEST: u16 = 40;

/// The output of a command.
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

    /// Whether a program reads the output.
    #[must_use]
    pub fn is_for_programs(&self) -> bool {
        self.format.is_for_programs()
    }

    /// Whether a person reads the output on a terminal, where a text can replace an older one.
    #[must_use]
    pub fn is_live(&self) -> bool {
        !self.is_for_programs() && std::io::stdout().is_terminal()
    }

    /// A whole answer, for programs.
    pub fn data(&mut self, value: &Value) -> Result<(), CliError> {
        let text = match self.format {
            Format::Yaml => yaml(value),
            Format::Table | Format::Wide | Format::Json => {
                serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
            }
        };
        self.write(&text)
    }

    /// One item of many, for programs: a line, or a document.
    pub fn data_line(&mut self, value: &Value) -> Result<(), CliError> {
        let text = match self.format {
            Format::Yaml => format!("---\n{}", yaml(value)),
            Format::Table | Format::Wide | Format::Json => format!("{value}\n"),
        };
        self.write(&text)
    }

    /// A table, for people.
    pub fn table(&mut self, table: Table) -> Result<(), CliError> {
        self.write(&self.rendered(&table))
    }

    /// A table that replaces the content of the screen.
    pub fn table_anew(&mut self, table: Table) -> Result<(), CliError> {
        self.write(&format!("{CLEAR}{}", self.rendered(&table)))
    }

    /// The text of a table in this screen's form.
    pub fn rendered(&self, table: &Table) -> String {
        table.render(self.width, self.colour, self.format == Format::Wide)
    }

    /// Text that is ready to be shown.
    pub fn text(&mut self, text: &str) -> Result<(), CliError> {
        self.write(text)
    }

    /// A list of properties, for people.
    pub fn details(&mut self, details: Details) -> Result<(), CliError> {
        self.write(&details.render(self.colour))
    }

    /// A line.
    pub fn line(&mut self, text: impl Display) -> Result<(), CliError> {
        self.write(&format!("{}\n", plain(&text.to_string())))
    }

    /// The last line of a command without an answer; programs read the exit code instead.
    pub fn done(&mut self, text: impl Display) -> Result<(), CliError> {
        if self.is_for_programs() {
            Ok(())
        } else {
            self.line(text)
        }
    }

    /// A note, on standard error.
    pub fn note(&self, text: impl Display) {
        anstream::eprintln!("{}", plain(&text.to_string()));
    }

    /// A warning, on standard error.
    pub fn warning(&self, text: &str) {
        let yellow = AnsiColor::Yellow.on_default().bold();
        anstream::eprintln!("{yellow}warning:{Reset} {}", plain(text));
    }

    fn write(&mut self, text: &str) -> Result<(), CliError> {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }
}

/// JSON values as YAML.
fn yaml(value: &Value) -> String {
    serde_saphyr::to_string(value).unwrap_or_default()
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
        Format::Table | Format::Wide => {
            let red = AnsiColor::Red.on_default().bold();
            let text = text.lines().map(plain).collect::<Vec<_>>().join("\n");
            anstream::eprintln!("{red}error:{Reset} {text}");
        }
        Format::Json | Format::Yaml => {
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
            let told = if format == Format::Yaml {
                yaml(&body)
            } else {
                format!("{body}\n")
            };
            anstream::eprint!("{told}");
        }
    }
}

/// The failure with its causes, without causes that repeat its text.
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
