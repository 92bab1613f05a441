//! The one place where this program looks at the clock; services hand it on as an argument.

use ringfence_core::Timestamp;

/// The time now.
#[must_use]
#[expect(
    clippy::disallowed_methods,
    reason = "the one place: everything else takes the time as an argument"
)]
pub fn now() -> Timestamp {
    chrono::Utc::now()
}
