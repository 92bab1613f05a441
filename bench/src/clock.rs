//! The wall clock of this machine, to put what happened here beside the times that the product tells.

/// The time.
#[expect(
    clippy::disallowed_methods,
    reason = "whoever measures from outside tells its own time"
)]
pub fn now() -> chrono::DateTime<chrono::Utc> {
    chrono::Utc::now()
}
