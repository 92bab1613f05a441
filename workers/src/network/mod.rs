//! Drivers that cut hosts off from the data network.

mod neutron;

pub use neutron::Neutron;
