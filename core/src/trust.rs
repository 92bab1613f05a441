//! Which methods can prove anything. A service that writes down that a host is cut off does not cut it off by that: somebody has to know
//! that what stands behind it does, and to say so.

use crate::{Driver, FrozenMethod, Method, Parameters};

fn can_prove(driver: Driver, parameters: &Parameters) -> bool {
    let value = |name: &str| parameters.get(name).map(String::as_str);
    match driver {
        Driver::Neutron => value("trusted") == Some("true"),
        // Which volumes those are is seen by whoever reads them.
        Driver::Cinder => value("trusted_backends").is_some_and(|list| !list.trim().is_empty()),
        Driver::FenceAgent | Driver::Redfish | Driver::Ipmi | Driver::Ironic | Driver::Simulated => true,
    }
}

impl FrozenMethod {
    /// Whether what is observed with it may count as a proof.
    #[must_use]
    pub fn can_prove(&self) -> bool {
        can_prove(self.driver, &self.parameters)
    }
}

impl Method {
    /// The same, before a host's own values are put over its own.
    #[must_use]
    pub fn can_prove(&self) -> bool {
        can_prove(self.driver, &self.parameters)
    }
}
