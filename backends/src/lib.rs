//! The clouds that hosts belong to, as seen from outside: which hosts are silent, what runs on them, and how it is started elsewhere.
//!
//! Nothing is decided here. A call has a limit in time; what is safe to repeat is repeated, and nothing else is.

mod error;
pub mod openstack;
mod platform;
mod time_given;

pub use error::BackendError;
pub use platform::{Platform, Preflight, StepOrder, StepReport, Unanswered};
pub use time_given::TimeGiven;
