//! The binary, run as an operator or a script runs it. The service is a scripted one; the stories over the whole stack have the real one.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod config;
mod contexts;
mod event;
mod fence;
mod formats;
mod operation_ids;
mod rig;
mod service;
mod things;
mod token;
