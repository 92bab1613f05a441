//! The real state of all hosts and devices. Pure: no I/O, and time is an argument.

use std::collections::BTreeMap;

use ringfence_core::{FailureState, Resource, Timestamp, validate_name};
use serde::{Deserialize, Serialize};

use crate::SimulatorError;
use crate::fault::{Fault, FaultKind};
use crate::host::{Condition, DeviceView, Host, HostView, SeenHost};
use crate::port::{Behaviour, Port, PortState, Verb, later};

/// The most hosts of one world.
pub const MAX_HOSTS: usize = 1000;
/// The most devices of one world.
pub const MAX_DEVICES: usize = 4000;

/// The resources of a host's device, unless others are named.
const ALL_RESOURCES: [Resource; 3] = [Resource::Power, Resource::Storage, Resource::Network];

/// Hosts and their devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    hosts: BTreeMap<String, Host>,
    devices: BTreeMap<String, Device>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Device {
    host: String,
    ports: BTreeMap<Resource, Port>,
}

impl World {
    /// Six hosts, `sim-1` to `sim-6`, each with one device of its own name for power, storage and network. The power switch
    /// of `sim-3` lies, that of `sim-4` takes 6 s for everything, and that of `sim-5` never answers.
    #[must_use]
    pub fn demo() -> Self {
        let mut world = Self::default();
        let faults = [
            None,
            None,
            Some(FaultKind::Lie),
            Some(FaultKind::Slow),
            Some(FaultKind::Silent),
            None,
        ];
        for (number, fault) in (1..).zip(faults) {
            let name = format!("sim-{number}");
            world.insert_device(&name, &name, &ALL_RESOURCES);
            world.hosts.insert(name.clone(), Host::new());
            if let Some(port) = world.port_mut(&name, Resource::Power) {
                port.fault = fault.map(Fault::forever);
            }
        }
        world
    }

    /// Adds a running host with one device of its own name for power, storage and network.
    ///
    /// # Errors
    /// If the name is taken, or not valid for a host; or there are 1,000 hosts.
    pub fn add_host(&mut self, name: &str) -> Result<(), SimulatorError> {
        self.add_bare_host(name)?;
        self.add_device(name, name, &ALL_RESOURCES)
    }

    /// Adds a running host without a device.
    ///
    /// # Errors
    /// As for [`add_host`](Self::add_host).
    pub fn add_bare_host(&mut self, name: &str) -> Result<(), SimulatorError> {
        validate_name("name", name)?;
        if self.hosts.contains_key(name) || self.hosts.len() >= MAX_HOSTS {
            return Err(SimulatorError::Name(format!(
                "host {name:?} exists, or there are {MAX_HOSTS} already"
            )));
        }
        self.hosts.insert(name.to_owned(), Host::new());
        Ok(())
    }

    /// Adds a device. A host with several devices for one resource loses the resource only when all of them take it away, as with two power
    /// supplies or two paths to a volume.
    ///
    /// # Errors
    /// If the host is unknown; the name is taken, or not valid for a device; there are 4,000 devices; or a resource has no device.
    pub fn add_device(
        &mut self,
        name: &str,
        host: &str,
        resources: &[Resource],
    ) -> Result<(), SimulatorError> {
        validate_name("name", name)?;
        if !self.hosts.contains_key(host) {
            return Err(SimulatorError::UnknownHost(host.to_owned()));
        }
        if self.devices.contains_key(name) || self.devices.len() >= MAX_DEVICES {
            return Err(SimulatorError::Name(format!(
                "device {name:?} exists, or there are {MAX_DEVICES} already"
            )));
        }
        if let Some(resource) = resources.iter().find(|r| !ALL_RESOURCES.contains(r)) {
            return Err(SimulatorError::UnknownDevice {
                device: name.to_owned(),
                resource: resource.as_str().to_owned(),
            });
        }
        self.insert_device(name, host, resources);
        Ok(())
    }

    /// Does everything that is due by now: power that comes back by itself.
    pub fn settle(&mut self, now: Timestamp) {
        for port in self.devices.values_mut().flat_map(|d| d.ports.values_mut()) {
            port.settle(now);
        }
        self.notice_power();
    }

    /// The reaction of a device to one request. A fault that concerns the request fires.
    ///
    /// # Errors
    /// If the device is unknown, or the state does not fit its resource.
    pub fn meet(
        &mut self,
        device: &str,
        resource: Resource,
        verb: Verb,
    ) -> Result<Behaviour, SimulatorError> {
        if let Verb::Command(state) = verb
            && !state.fits(resource)
        {
            return Err(SimulatorError::StateDoesNotFit { resource, state });
        }
        Ok(self.known_port(device, resource)?.meet(verb))
    }

    /// The real state of a device.
    ///
    /// # Errors
    /// If the device is unknown.
    pub fn state(&self, device: &str, resource: Resource) -> Result<PortState, SimulatorError> {
        let port = self.devices.get(device).and_then(|d| d.ports.get(&resource));
        port.map(|port| port.state)
            .ok_or_else(|| unknown(device, resource))
    }

    /// The state that a device shows.
    ///
    /// # Errors
    /// If the device is unknown.
    pub fn shown(&self, device: &str, resource: Resource) -> Result<PortState, SimulatorError> {
        let port = self.devices.get(device).and_then(|d| d.ports.get(&resource));
        port.map(Port::shown).ok_or_else(|| unknown(device, resource))
    }

    /// Sets the state of a device. After `take_back_after_ms`, if given, the device returns to the opposite state.
    ///
    /// # Errors
    /// If the device is unknown, or the state does not fit its resource.
    pub fn set_state(
        &mut self,
        device: &str,
        resource: Resource,
        state: PortState,
        take_back_after_ms: Option<u64>,
        now: Timestamp,
    ) -> Result<(), SimulatorError> {
        if !state.fits(resource) {
            return Err(SimulatorError::StateDoesNotFit { resource, state });
        }
        let turns_at = take_back_after_ms.map(|delay_ms| later(now, delay_ms));
        self.known_port(device, resource)?.take_on(state, turns_at);
        self.notice_power();
        Ok(())
    }

    /// Gives a device a fault, or none.
    ///
    /// # Errors
    /// If the device is unknown.
    pub fn set_fault(
        &mut self,
        device: &str,
        resource: Resource,
        fault: Option<Fault>,
    ) -> Result<(), SimulatorError> {
        self.known_port(device, resource)?.set_fault(fault);
        Ok(())
    }

    /// Sets the condition of a host. A host that had crashed runs with a new boot.
    ///
    /// # Errors
    /// If the host is unknown.
    pub fn set_condition(&mut self, host: &str, condition: Condition) -> Result<(), SimulatorError> {
        let known = self.hosts.get_mut(host);
        known
            .ok_or_else(|| SimulatorError::UnknownHost(host.to_owned()))?
            .set_condition(condition);
        Ok(())
    }

    /// Whether the host can still write to its volumes: it has power, has not crashed, and its storage is not fenced. An unknown host counts
    /// as writing.
    #[must_use]
    pub fn may_write(&self, host: &str) -> bool {
        self.hosts.get(host).is_none_or(|known| {
            known.powered
                && known.condition != Condition::Crashed
                && !self.is_deprived(host, Resource::Storage)
        })
    }

    /// What a monitor sees of every host. The monitor uses the management network, which fencing does not cut; otherwise no monitor could
    /// see a host boot before its data network is given back.
    #[must_use]
    pub fn observe(&self) -> Vec<SeenHost> {
        self.hosts.iter().map(|(name, host)| see(name, host)).collect()
    }

    /// Everything about every host.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostView> {
        let view = |(name, host): (&String, &Host)| HostView {
            seen: see(name, host),
            boot: host.boot,
            powered: host.powered,
            condition: host.condition,
            may_write: self.may_write(name),
            devices: self.devices_of(name),
        };
        self.hosts.iter().map(view).collect()
    }

    fn devices_of(&self, host: &str) -> BTreeMap<String, DeviceView> {
        let of_host = self.devices.iter().filter(|(_, device)| device.host == host);
        let ports = of_host.flat_map(|(name, device)| device.ports.iter().map(move |port| (name, port)));
        let view = |port: &Port| DeviceView {
            state: port.state,
            fault: port.fault.clone(),
        };
        ports
            .map(|(name, (resource, port))| (format!("{name}/{}", resource.as_str()), view(port)))
            .collect()
    }

    fn insert_device(&mut self, name: &str, host: &str, resources: &[Resource]) {
        let ports = resources.iter().map(|&r| (r, Port::new(r))).collect();
        let host = host.to_owned();
        self.devices.insert(name.to_owned(), Device { host, ports });
    }

    fn port_mut(&mut self, device: &str, resource: Resource) -> Option<&mut Port> {
        self.devices.get_mut(device)?.ports.get_mut(&resource)
    }

    fn known_port(&mut self, device: &str, resource: Resource) -> Result<&mut Port, SimulatorError> {
        self.port_mut(device, resource)
            .ok_or_else(|| unknown(device, resource))
    }

    /// Whether all devices of the host for this resource take it away; a host without a device for it always has it.
    fn is_deprived(&self, host: &str, resource: Resource) -> bool {
        let mut ports = self
            .devices
            .values()
            .filter(|device| device.host == host)
            .filter_map(|device| device.ports.get(&resource))
            .peekable();
        ports.peek().is_some() && ports.all(|port| port.state.takes_away())
    }

    fn notice_power(&mut self) {
        let mut fed = BTreeMap::new();
        for device in self.devices.values() {
            if let Some(port) = device.ports.get(&Resource::Power) {
                *fed.entry(device.host.as_str()).or_insert(false) |= !port.state.takes_away();
            }
        }
        for (name, host) in &mut self.hosts {
            host.set_powered(fed.get(name.as_str()).copied().unwrap_or(true));
        }
    }
}

fn see(name: &str, host: &Host) -> SeenHost {
    let answers = host.powered && host.condition == Condition::Running;
    SeenHost {
        name: name.to_owned(),
        failure_state: if answers {
            FailureState::Up
        } else {
            FailureState::Unreachable
        },
        boot_id: answers.then(|| format!("{name}-boot-{}", host.boot)),
    }
}

fn unknown(device: &str, resource: Resource) -> SimulatorError {
    SimulatorError::UnknownDevice {
        device: device.to_owned(),
        resource: resource.as_str().to_owned(),
    }
}

#[cfg(test)]
#[path = "world_tests.rs"]
mod tests;
