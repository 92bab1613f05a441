//! The search itself: that it leaves nothing out that matters, and that it finds what is there.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod packed;
mod searched;
