//! The clouds that hosts belong to, as seen from outside: which hosts are silent, which workloads they run, and how those are started on
//! another host.
//!
//! Nothing is decided here. Each call has a time limit, and only calls that are safe to repeat are repeated.

mod addresses;
mod error;
pub mod http;
pub mod kubernetes;
pub mod openstack;
mod platform;
mod records;
mod time_given;

pub use addresses::{ALLOWED_ADDRESSES, Address, Addresses};
pub use error::BackendError;
pub use platform::{
    Departure, GateState, KeptHost, Platform, Preflight, SeenGate, StepOrder, StepReport, Unanswered,
};
pub use records::{Records, Writer, WrittenRecord};
pub use time_given::TimeGiven;
