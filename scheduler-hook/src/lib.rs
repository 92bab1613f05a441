//! May workloads land on this host, may they leave it? For those who place them, whichever backend they are of.
//!
//! Whether they may land is asked at every placement, for all hosts: the answer comes from memory, and is refused when that has grown
//! old. Whether they may leave is asked rarely, and opens the way to two copies: the answer comes from the database each time. `core`
//! decides both; how the questions come is the business of `api`.

mod config;
mod error;
mod hook;
mod keeping;
mod metrics;
mod moment;
mod snapshot;

pub use config::{HookConfig, UnknownHosts};
pub use error::HookError;
pub use hook::{Hook, Now, Verdict};
pub use snapshot::{Filtered, Snapshot};
