//! Neutron: the ports by which a host's servers reach the network.

mod agents;
mod ports;
mod rights;

pub use ports::{Port, PortChange};

/// How errors call it.
const NEUTRON: &str = "neutron";
