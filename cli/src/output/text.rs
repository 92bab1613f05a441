//! Words on the screen.

use anstyle::{AnsiColor, Style};
use ringfence_core::Timestamp;

/// What a word means for the one who reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// Going on.
    Busy,
    /// Somebody should look.
    Bad,
    /// Of little weight.
    Faint,
}

impl Tone {
    /// What the words of the API mean.
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

    /// How it looks on a terminal.
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

/// Without control characters: what a device answered must not command the terminal.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// To the second, in UTC.
#[must_use]
pub fn time(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// The same of today.
#[must_use]
pub fn time_of_day(at: Timestamp) -> String {
    at.format("%H:%M:%S%.3fZ").to_string()
}
