//! Hosts, devices, sources and storage as they physically behave, on simulated time, with the rules of `ringfence-core` in the middle.
//!
//! [`Site`] is the truth: which boot of the host runs, what its devices have done, what its storage has yet to write. It knows nothing of
//! the rules, and [`Site::harm`] never asks them: it says whether anything of the host may run or write now. [`World`] puts the two
//! together: it carries messages, counts time, and writes down every question and its answer. A history is a world and what happened in
//! it; [`judge`] says which of them must never be.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a world is for tests: what cannot be in it is a fault of the test"
)]

pub mod cloud;
mod feed;
pub mod judge;
pub mod plans;
pub mod search;
mod site;
mod told;
mod world;

pub use cloud::Cloud;
pub use feed::{Feed, Manner};
pub use judge::Violation;
pub use site::{Cause, Heard, Machine, Path, Site};
pub use world::{Job, KdumpHeard, Leading, Moment, Process, World};
