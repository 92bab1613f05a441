//! The whole stack for tests: databases, buses, engines, workers, the API, simulated hosts.
//!
//! A test says on which [`Ground`] it plays; everything else is the same, which is the point.

mod client;
mod ground;
mod kill;
mod stack;

pub use client::{Answer, Client};
pub use ground::{Ground, Site};
pub use kill::DyingBus;
pub use stack::{Stack, StackOptions, keys, power_plan};
