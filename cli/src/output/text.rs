//! The style of texts on the screen.

use anstyle::{AnsiColor, Style};
use ringfence_core::Timestamp;

/// The meaning of a word for the reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Neutral.
    #[default]
    Plain,
    /// All is well.
    Good,
    /// Under way.
    Busy,
    /// An operator should look.
    Bad,
    /// Less important.
    Faint,
}

impl Tone {
    /// The tone of a word of the API.
    #[must_use]
    pub fn of(word: &str) -> Self {
        match word {
            "UP" | "succeeded" | "confirmed" | "open" | "on" | "ok" | "yes" | "started"
            | "already_fenced" => Self::Good,
            "FENCED" | "running" | "joined" | "claimed" | "dispatched" => Self::Busy,
            "UNREACHABLE" | "needs_operator" | "failed" | "refused" | "worker_missing" | "closed" | "no" => {
                Self::Bad
            }
            "pending" | "skipped" | "cancelled" | "-" => Self::Faint,
            _ => Self::Plain,
        }
    }

    /// The style on a terminal.
    #[must_use]
    pub fn style(self) -> Style {
        match self {
            Self::Plain => Style::new(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Busy => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default(),
            Self::Faint => Style::new().dimmed(),
        }
    }
}

/// Replaces control characters: a device's answer must not control the terminal.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// A time in UTC, to the second.
#[must_use]
pub fn time(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// The time of day in UTC, to the second.
#[must_use]
pub fn time_of_day(at: Timestamp) -> String {
    at.format("%H:%M:%S%.3fZ").to_string()
}
