//! Drivers that speak to one sort of baseboard management controller themselves.

mod ipmi;
mod redfish;

pub use ipmi::Ipmi;
pub use redfish::Redfish;
