//! The wall clock of this machine, for comparison with the times that the product reports.

/// The present time.
#[expect(
    clippy::disallowed_methods,
    reason = "a measurement from outside needs its own clock"
)]
pub fn now() -> chrono::DateTime<chrono::Utc> {
    chrono::Utc::now()
}
