//! The one place where the bus looks at the clock: to say when a message died. Nothing is decided by it.

use ringfence_core::Timestamp;

#[expect(
    clippy::disallowed_methods,
    reason = "the one place; dead letters are dated for people only"
)]
pub(crate) fn now() -> Timestamp {
    chrono::Utc::now()
}
