//! The gates that hold inside a cluster while every process of Ringfence is down.

mod examined;
mod installed;
mod object;
mod text;
mod trying;
mod turns;
mod verdict;
mod webhooks;
mod words;

pub(super) use examined::preflight;
pub(super) use installed::installed;
pub(super) use object::{Entry, SeenGate, keep};
pub use text::GateNames;
pub(super) use turns::GateTurns;
pub(super) use words::has_word_webhook;
pub use words::{WordGate, last_written};
