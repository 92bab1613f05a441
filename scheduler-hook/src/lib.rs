//! May workloads land on this host, and may they leave it? The answers for schedulers of any backend.
//!
//! Schedulers ask at every placement, for all hosts, whether workloads may land: the answer comes from memory, and is refused when the
//! memory is too old. They rarely ask whether workloads may leave, and a wrong yes allows two copies: that answer comes from the database
//! each time. `core` decides both; `api` has the routes.

mod config;
mod confirmation;
mod error;
mod hook;
mod keeping;
mod lookup;
mod metrics;
mod moment;
mod snapshot;

pub use config::{HookConfig, UnknownHosts};
pub use confirmation::Confirmation;
pub use error::HookError;
pub use hook::{Hook, Leaving, Now, Verdict};
pub use lookup::{ClusterLookup, Clusters, Told};
pub use snapshot::{Filtered, Snapshot};
