//! Acts on devices and reads them back.
//!
//! A worker takes tasks from the bus, claims each attempt just before it acts, has a [`Driver`] make it true within the granted
//! time, and reports what was read back. It knows nothing of hosts and operations, reaches the bus and its devices, and holds no
//! database credentials. Secrets are looked up here ([`Secrets`]) and nowhere else.

mod act;
mod driver;
mod drivers;
mod error;
mod left_behind;
mod mask;
mod openstack;
mod platform;
mod process;
mod registry;
mod runtime;
mod secrets;
mod text;

pub use driver::{Clock, Driver, DriverSettings, HostInStorage, Report};
pub use drivers::{Ceph, FenceAgent, Ipmi, Redfish, Simulated, catalogue};
pub use error::WorkerError;
pub use registry::Drivers;
pub use runtime::{MetricsSnapshot, NewId, Worker, WorkerConfig, WorkerHandle};
pub use secrets::{SecretValue, Secrets};
