//! The only read of the clock in this program; services get the time as an argument.

use ringfence_core::Timestamp;

/// The time now.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the only read of the clock: all other code takes the time as an argument"
)]
pub fn now() -> Timestamp {
    chrono::Utc::now()
}
