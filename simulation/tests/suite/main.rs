//! Stories whose end is known from the rules.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "in a test, what cannot go on has failed"
)]

mod site;
mod stories;
