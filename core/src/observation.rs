//! Observations: what was read back after acting, the only thing that proves anything.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::words;

/// The state that a device showed. A state that could not be read exactly is [`ObservedState::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ObservedState {
    /// Power is off, exactly: not "powering off", not "paused".
    Off,
    /// Power is on.
    On,
    /// The host is cut off.
    Fenced,
    /// The host is connected.
    Unfenced,
    /// The platform shows that the workload step is done.
    Done,
    /// A query allows a fence.
    Allows,
    /// A query holds a fence.
    Holds,
    /// What hosts write to a shared storage can be read.
    Readable,
    /// The device did not answer, or not in a form that can be trusted.
    Unknown,
}

words!(ObservedState);

/// One reading of one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// What it showed.
    pub state: ObservedState,
    /// In the device's words, cut to 1,000 characters and without secrets.
    pub detail: String,
    /// When the worker read it, by the worker's clock; for people, never compared with the engine's clock.
    pub observed_at: Timestamp,
    /// Milliseconds between the claim's grant and the beginning of the reading, at least, by the worker's own count: what was read is not
    /// older than that.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub after_ms: u64,
    /// What the device had shown before it was commanded, where it was read then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<ObservedState>,
    /// Whether it may count as a proof. What a service has written down shows that it was done, and not always that it holds.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub proves: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_zero(after_ms: &u64) -> bool {
    *after_ms == 0
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_true(proves: &bool) -> bool {
    *proves
}
