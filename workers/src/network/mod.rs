//! Drivers that cut hosts off from the data network.

mod neutron;

pub use neutron::Neutron;
pub(crate) use neutron::give_back_ports_of;
