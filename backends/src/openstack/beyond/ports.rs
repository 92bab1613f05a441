//! Ports. The crate's ports have no host, no tags and no revision, and its query filters neither by host nor by tag. Its change of a port
//! overwrites changes that others have made meanwhile.

use serde::Deserialize;
use serde_json::json;

use super::service::NEUTRON_API;
use crate::BackendError;
use crate::openstack::Cloud;
use crate::openstack::cloud::unless_gone;

/// Ports of one page, if Neutron allows so many.
const PAGE: &str = "500";
/// The most ports that are read of one listing.
const MOST: usize = 20_000;
/// The fields that are used; Neutron takes longer to give the rest of a port than to find it.
const FIELDS: [&str; 7] = [
    "id",
    "admin_state_up",
    "binding:host_id",
    "device_id",
    "device_owner",
    "revision_number",
    "tags",
];

/// A port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Port {
    /// Its id.
    pub id: String,
    /// The port's `admin_state_up`: whether the port may carry traffic.
    #[serde(rename = "admin_state_up")]
    pub is_up: bool,
    /// The host that the port is bound to; empty where it is bound to none, `None` where the user may not see it.
    #[serde(rename = "binding:host_id", default)]
    pub host: Option<String>,
    /// The id of the server or router that the port belongs to.
    #[serde(default)]
    pub device_id: String,
    /// The kind of the port's owner: `compute:nova`, `network:dhcp`.
    #[serde(default)]
    pub device_owner: String,
    /// Neutron counts the port's changes.
    pub revision_number: u64,
    /// The port's tags.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// How a change of a port went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortChange {
    /// The port was changed.
    Made,
    /// The port has changed since it was read, or is gone.
    Outdated,
}

impl Cloud {
    /// All ports that are bound to a host.
    pub async fn ports_on(&self, host: &str) -> Result<Vec<Port>, BackendError> {
        self.ports(&[("binding:host_id", host)]).await
    }

    /// All ports with a tag.
    pub async fn ports_tagged(&self, tag: &str) -> Result<Vec<Port>, BackendError> {
        let mut found = self.ports(&[("tags", tag)]).await?;
        found.retain(|port| port.tags.iter().any(|known| known == tag));
        Ok(found)
    }

    /// All ports of a server with a tag.
    pub async fn ports_of(&self, server: &str, tag: &str) -> Result<Vec<Port>, BackendError> {
        let mut found = self.ports(&[("device_id", server), ("tags", tag)]).await?;
        found.retain(|port| port.device_id == server && port.tags.iter().any(|known| known == tag));
        Ok(found)
    }

    async fn ports(&self, filters: &[(&str, &str)]) -> Result<Vec<Port>, BackendError> {
        let fields = FIELDS.map(|field| ("fields", field));
        let order = [("sort_key", "id"), ("sort_dir", "asc"), ("limit", PAGE)];
        let request = self.get(NEUTRON_API, &["ports"]).query(filters).query(&fields);
        request
            .query(&order)
            .all("ports", MOST, |port: &Port| &port.id)
            .await
    }

    /// Sets a port up or down, unless the port has changed since it was read.
    pub async fn set_port_up(&self, port: &Port, up: bool) -> Result<PortChange, BackendError> {
        let revision = format!("revision_number={}", port.revision_number);
        let request = self
            .put(NEUTRON_API, &["ports", &port.id])
            .header("If-Match", &revision);
        let body = json!({ "port": { "admin_state_up": up } });
        match request.json(body).send().await {
            Ok(()) => Ok(PortChange::Made),
            // 412 and 409.
            Err(BackendError::Refused { .. }) => Ok(PortChange::Outdated),
            Err(error) => Err(error),
        }
    }

    /// Puts a tag on a port. `Outdated`: the port is gone, or may not be changed.
    pub async fn tag_port(&self, port: &str, tag: &str) -> Result<PortChange, BackendError> {
        let request = self.put(NEUTRON_API, &["ports", port, "tags", tag]).repeatable();
        let done = unless_gone(request.send().await)?;
        Ok(done.map_or(PortChange::Outdated, |()| PortChange::Made))
    }

    /// Takes a tag off a port; a tag or a port that is gone counts as done.
    pub async fn untag_port(&self, port: &str, tag: &str) -> Result<(), BackendError> {
        let request = self
            .delete(NEUTRON_API, &["ports", port, "tags", tag])
            .repeatable();
        unless_gone(request.send().await).map(drop)
    }
}
