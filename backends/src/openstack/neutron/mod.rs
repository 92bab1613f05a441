//! Neutron: the ports by which a host's servers reach the network.

mod fencing;
mod rights;

pub(super) use fencing::give_back_ports_of;

/// How errors and methods call it.
pub const NEUTRON: &str = "neutron";
