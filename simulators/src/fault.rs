//! Faults of devices.

use serde::{Deserialize, Serialize};

use crate::SimulatorError;

/// The most often that a fault fires, if it does not fire forever.
pub const MAX_TIMES: u32 = 1_000_000;
/// The longest delay, in milliseconds: ten minutes.
pub const MAX_DELAY_MS: u64 = 600_000;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Answers success to a command and does nothing. A reading shows the real state.
    Lie,
    /// Carries out and answers every request after the delay (6 s if none is given). A command is carried out even if its client has
    /// stopped waiting.
    Slow,
    /// Accepts requests, does nothing and never answers.
    Silent,
    /// Carries out an `off` or a `fenced`, and undoes it after the delay (1 s if none is given).
    Flap,
    /// Answers 409 to a command and 500 to a reading, and does nothing.
    Refuse,
    /// Answers success to a command, does nothing, and shows the wanted state from then on: no reading of it proves anything.
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

/// A fault of a device: its kind, and how often it fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// How many more times the fault fires; `None` for ever.
    pub times: Option<u32>,
    /// The delay in milliseconds, for kinds with a delay.
    pub delay_ms: u64,
}

impl Fault {
    /// A fault that fires `times` times, or forever, with the given or the usual delay.
    ///
    /// # Errors
    /// If `times` is not within 1 and 1,000,000, or `delay_ms` is more than 600,000.
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

    /// The fault after one firing; `None` after the last.
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
