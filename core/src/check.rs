//! What a device answered when it was asked for its state outside of any operation.

use crate::{Timestamp, words};

/// What came of a question to a device. From good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum CheckOutcome {
    /// It showed its state.
    Confirmed,
    /// It did not answer, or not in a form that can be trusted.
    Unknown,
    /// No worker serves its resource and zone.
    WorkerMissing,
    /// A definite no: credentials, parameters, a device that does not exist.
    Refused,
}

words!(CheckOutcome);

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckAnswer {
    /// What came of it.
    pub outcome: CheckOutcome,
    /// The observed state, if there is one.
    pub state: Option<String>,
    /// In the device's or the worker's words.
    pub detail: Option<String>,
    /// Who asked.
    pub worker: Option<String>,
    /// Milliseconds that it took.
    pub took_ms: Option<u64>,
}

/// The last answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastCheck {
    /// When it came.
    pub at: Timestamp,
    /// What it was.
    pub answer: CheckAnswer,
    /// Since when no answer was good.
    pub failing_since: Option<Timestamp>,
}
