//! Drivers that speak to one sort of baseboard management controller themselves, or to a service that does.

mod ipmi;
mod ironic;
mod redfish;

pub use ipmi::Ipmi;
pub use ironic::Ironic;
pub use redfish::Redfish;
