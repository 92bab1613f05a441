//! The clouds that hosts belong to, as seen from outside: which hosts are silent, what runs on them, and how it is started elsewhere.
//!
//! Nothing is decided here. A call has a limit in time; what is safe to repeat is repeated, and nothing else is.

mod error;
pub mod openstack;

pub use error::BackendError;
