//! Drivers of workloads: they speak to the backends of hosts.

mod nova;

pub use nova::Nova;
