//! The gates that hold inside a cluster while every process of Ringfence is down.

mod installed;
mod object;
mod text;
mod trying;

pub(super) use installed::{installed, preflight};
pub(super) use object::{Entry, SeenGate, keep};
pub use text::GateNames;
