//! Neutron's networks and ports.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::cloud::api::understand;
use crate::cloud::{Api, Call, Cloud};
use crate::error::LabError;

/// A port as Neutron sees it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Port {
    /// The port's id.
    pub id: String,
    /// Whether the port is enabled.
    pub admin_state_up: bool,
    /// `ACTIVE`, `DOWN` and others.
    pub status: String,
    /// The id of the port's server, or empty.
    pub device_id: String,
    /// The host that the port is bound to, or empty.
    #[serde(rename = "binding:host_id")]
    pub host: String,
    /// `ovs` if an agent could bind the port, `binding_failed` if no agent was alive.
    #[serde(rename = "binding:vif_type")]
    pub vif_type: String,
}

impl Cloud {
    /// Makes a network with a subnet; returns its id.
    ///
    /// # Errors
    /// If Neutron cannot be reached or refuses.
    pub fn make_network(&self, name: &str) -> Result<String, LabError> {
        let call = Call::new("POST", Api::Network, "/v2.0/networks").json(json!({"network": {"name": name}}));
        let mut made = self.demand(&call)?;
        let network: String = understand(&call, made["network"]["id"].take())?;
        let subnet = json!({"subnet": {"network_id": network, "ip_version": 4, "cidr": "10.77.0.0/24", "enable_dhcp": false}});
        self.post(Api::Network, "/v2.0/subnets", subnet)?;
        Ok(network)
    }

    /// Makes a port.
    ///
    /// # Errors
    /// If Neutron cannot be reached or refuses.
    pub fn make_port(&self, network: &str) -> Result<Port, LabError> {
        let body = json!({"port": {"network_id": network}});
        let call = Call::new("POST", Api::Network, "/v2.0/ports").json(body);
        let mut made = self.demand(&call)?;
        understand(&call, made["port"].take())
    }

    /// The port with this id.
    ///
    /// # Errors
    /// If Neutron cannot be reached, or does not know the port.
    pub fn port(&self, id: &str) -> Result<Port, LabError> {
        self.find(Api::Network, &format!("/v2.0/ports/{id}"), "port")
    }

    /// The ports that are bound to a host.
    ///
    /// # Errors
    /// If Neutron cannot be reached.
    pub fn ports_on(&self, host: &str) -> Result<Vec<Port>, LabError> {
        self.ports(&format!("binding:host_id={host}"))
    }

    /// The ports that match a query such as `tags=NAME` or `network_id=ID`. This Neutron gives two in each page at most.
    ///
    /// # Errors
    /// If Neutron cannot be reached.
    pub fn ports(&self, such: &str) -> Result<Vec<Port>, LabError> {
        let mut all: Vec<Port> = Vec::new();
        loop {
            let marker = all.last().map(|port| format!("&marker={}", port.id));
            let path = format!(
                "/v2.0/ports?{such}&sort_key=id&sort_dir=asc{}",
                marker.unwrap_or_default()
            );
            let page: Vec<Port> = self.find(Api::Network, &path, "ports")?;
            if page.is_empty() {
                return Ok(all);
            }
            all.extend(page);
        }
    }

    /// Enables or disables a port.
    ///
    /// # Errors
    /// If Neutron cannot be reached or refuses.
    pub fn set_port_up(&self, id: &str, up: bool) -> Result<(), LabError> {
        let body = json!({"port": {"admin_state_up": up}});
        self.put(Api::Network, &format!("/v2.0/ports/{id}"), body)
            .map(|_| ())
    }

    /// The agents of a host, as Neutron's API shows them.
    ///
    /// # Errors
    /// If Neutron cannot be reached.
    pub fn network_agents(&self, host: &str) -> Result<Vec<Value>, LabError> {
        self.find(Api::Network, &format!("/v2.0/agents?host={host}"), "agents")
    }

    /// Deletes a network and its ports.
    ///
    /// # Errors
    /// If Neutron cannot be reached or refuses.
    pub fn delete_network(&self, id: &str) -> Result<(), LabError> {
        for port in self.ports(&format!("network_id={id}"))? {
            self.delete(Api::Network, &format!("/v2.0/ports/{}", port.id))?;
        }
        self.delete(Api::Network, &format!("/v2.0/networks/{id}"))
    }
}
