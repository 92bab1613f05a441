//! The services that this program runs.

pub mod api;
mod certificate;
pub mod db;
mod demo;
pub mod engine;
mod greeting;
mod hangup;
pub mod home;
pub mod identity;
mod leading;
mod listen;
mod metrics;
pub mod parts;
pub mod scheduler_hook;
pub mod standalone;
mod stop;
pub mod worker;
