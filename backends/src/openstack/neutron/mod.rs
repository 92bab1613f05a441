//! Neutron: the ports by which a host's servers reach the network.

mod fencing;
mod rights;

pub(super) use fencing::release_ports_of;

/// The name in errors and methods.
pub const NEUTRON: &str = "neutron";
