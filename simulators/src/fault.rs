//! How a device misbehaves.

use serde::{Deserialize, Serialize};

use crate::SimulatorError;

/// The most often that a fault fires, if it does not fire forever.
pub const MAX_TIMES: u32 = 1_000_000;
/// The longest delay, in milliseconds: ten minutes.
pub const MAX_DELAY_MS: u64 = 600_000;

/// A way to misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Answers ok to a command and does nothing. Reading shows the truth.
    Lie,
    /// Does and answers everything, each time after the delay (6 s if none is given). A command is carried out even if
    /// whoever gave it has stopped waiting.
    Slow,
    /// Accepts, does nothing and never answers.
    Silent,
    /// Carries out an `off` or a `fenced` and takes it back by itself after the delay (1 s if none is given).
    Flap,
    /// Answers 409 to a command and 500 to a reading, and does nothing.
    Refuse,
    /// Answers ok to a command, does nothing, and from then on shows what was wanted: no reading of it proves anything.
    Ghost,
}

impl FaultKind {
    fn default_delay_ms(self) -> u64 {
        match self {
            Self::Slow => 6000,
            Self::Flap => 1000,
            Self::Lie | Self::Silent | Self::Refuse | Self::Ghost => 0,
        }
    }
}

/// A rule: a way to misbehave, and how often.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The way.
    pub kind: FaultKind,
    /// How many more times it fires; `None` is forever.
    pub times: Option<u32>,
    /// Milliseconds, for the ways that have a delay.
    pub delay_ms: u64,
}

impl Fault {
    /// A fault that fires `times` times, or forever, with the given or the usual delay.
    ///
    /// # Errors
    /// `times` is not within 1 and 1,000,000, or `delay_ms` is more than 600,000.
    pub fn new(kind: FaultKind, times: Option<u32>, delay_ms: Option<u64>) -> Result<Self, SimulatorError> {
        let delay_ms = delay_ms.unwrap_or_else(|| kind.default_delay_ms());
        if times.is_some_and(|times| times == 0 || times > MAX_TIMES) {
            return Err(SimulatorError::Fault(format!(
                "times is out of range; 1 to {MAX_TIMES}, or null for ever, is allowed"
            )));
        }
        if delay_ms > MAX_DELAY_MS {
            return Err(SimulatorError::Fault(format!(
                "delay_ms is {delay_ms}; 0 to {MAX_DELAY_MS} is allowed"
            )));
        }
        Ok(Self {
            kind,
            times,
            delay_ms,
        })
    }

    /// A fault that fires forever with the usual delay.
    #[must_use]
    pub fn forever(kind: FaultKind) -> Self {
        Self {
            kind,
            times: None,
            delay_ms: kind.default_delay_ms(),
        }
    }

    /// Takes one firing away; `None` when that was the last.
    pub(crate) fn fired(self) -> Option<Self> {
        match self.times {
            None => Some(self),
            Some(0 | 1) => None,
            Some(times) => Some(Self {
                times: Some(times - 1),
                ..self
            }),
        }
    }
}
