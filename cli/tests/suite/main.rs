//! The binary, run as by an operator or a script. The service is scripted; the tests in `tests/` use the real one.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod config;
mod contexts;
mod event;
mod fence;
mod formats;
mod kubernetes;
mod operation_ids;
mod rig;
mod service;
mod things;
mod token;
