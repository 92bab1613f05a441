//! The drivers, one file or folder each: what a driver is, how it is checked and how it acts.
//!
//! A new driver is a file here, its module and its line in the list.

mod ceph;
mod cinder;
mod clusters;
mod csi_network_fence;
mod fence_agent;
mod heartbeat;
mod ipmi;
mod ironic;
mod metal3;
mod neutron;
mod query;
mod redfish;
mod simulated;
mod tls;

use std::sync::Arc;

use ringfence_core::{Catalogue, Declaration, FrozenMethod, value_of};

pub use ceph::Ceph;
pub use fence_agent::FenceAgent;
pub use ipmi::Ipmi;
pub use redfish::Redfish;
pub use simulated::Simulated;

use crate::driver::{Driver, DriverSettings};
use crate::{Secrets, WorkerError};

/// One driver.
pub(crate) struct Entry {
    /// What the rules, the API and the documentation know of it.
    pub declaration: Declaration,
    /// Makes it on a worker's machine.
    pub make: fn(&DriverSettings) -> Arc<dyn Driver>,
}

/// All of them.
pub(crate) static DRIVERS: [&Entry; 18] = [
    &ceph::DRIVER,
    &cinder::DRIVER,
    &csi_network_fence::DRIVER,
    &fence_agent::DRIVER,
    &heartbeat::FILE,
    &ipmi::DRIVER,
    &ironic::DRIVER,
    &heartbeat::LINSTOR,
    &metal3::DRIVER,
    &neutron::DRIVER,
    &heartbeat::NFS,
    &query::PROMETHEUS,
    &heartbeat::RBD,
    &query::REACH,
    &redfish::DRIVER,
    &heartbeat::SANLOCK,
    &simulated::DRIVER,
    &query::WEBHOOK,
];

/// The declarations of all drivers.
#[must_use]
pub fn catalogue() -> Catalogue {
    DRIVERS.iter().map(|entry| &entry.declaration).collect()
}

/// A parameter that a method cannot be without.
fn required<'a>(method: &'a FrozenMethod, name: &str) -> Result<&'a str, WorkerError> {
    value_of(&method.parameters, name)
        .ok_or_else(|| WorkerError::refused(format!("method {} has no {name}", method.name)))
}

/// The password of the device's user.
fn password<'a>(method: &FrozenMethod, secrets: &'a Secrets) -> Result<&'a str, WorkerError> {
    let password = secrets
        .get("password")
        .ok_or_else(|| WorkerError::refused(format!("method {} has no secret password", method.name)))?;
    Ok(password.expose())
}
