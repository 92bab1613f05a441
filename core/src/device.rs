//! Which device a method speaks to, so that no device gets two commands at once.

use crate::{Driver, Parameters};

/// The key of the device behind a method, or `None` where none can be told (an agent for a cloud's API, which takes many
/// commands at once).
#[must_use]
pub fn device_key(driver: Driver, parameters: &Parameters) -> Option<String> {
    let value = |name: &str| parameters.get(name).map(String::as_str).filter(|v| !v.is_empty());
    match driver {
        Driver::FenceAgent => {
            let agent = value("agent")?;
            let address = ["ip", "ipaddr", "status_file"].into_iter().find_map(value)?;
            let port = ["ipport"].into_iter().find_map(value).unwrap_or_default();
            Some(format!("{agent}/{address}:{port}"))
        }
        Driver::Redfish => Some(format!("redfish/{}", value("address")?.trim_end_matches('/'))),
        Driver::Ipmi => Some(format!(
            "ipmi/{}:{}",
            value("address")?,
            value("port").unwrap_or("623")
        )),
        Driver::Ironic => Some(format!("ironic/{}/{}", value("cloud")?, value("node")?)),
        // Their services take many commands at once.
        Driver::Cinder | Driver::Neutron => None,
        Driver::Simulated => Some(format!("simulated/{}", value("device")?)),
    }
}
