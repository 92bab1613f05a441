//! Neutron: the ports by which a host's servers reach the network.

mod agents;
mod fencing;
mod ports;
mod rights;

pub(super) use fencing::give_back_ports_of;
pub use ports::{Port, PortChange};

/// How errors and methods call it.
pub const NEUTRON: &str = "neutron";
