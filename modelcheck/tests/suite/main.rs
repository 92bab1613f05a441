//! The search: it leaves out nothing that matters, and finds violations.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod packed;
mod searched;
