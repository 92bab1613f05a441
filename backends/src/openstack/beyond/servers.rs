//! Servers. The crate's servers have no host, no state of the guest, no task, no project and no fault, and its query does not filter by
//! host. Its actions have neither `evacuate` nor `os-resetState`; the actions that it has are sent in its form.

use std::collections::BTreeMap;

use openstack::compute::{RebootType, ServerAction};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::service::NOVA;
use crate::BackendError;
use crate::openstack::Cloud;

/// Servers of one page, if Nova allows so many.
const PAGE: &str = "200";
/// The most servers that are read of one host.
const MOST: usize = 10_000;

/// Nova's state of a server's guest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmState {
    /// The guest runs, or would run if its host did.
    Active,
    /// The server's owner has stopped it.
    Stopped,
    /// Nova has given the server up.
    Error,
    /// The server is being built.
    Building,
    /// The server is deleted.
    #[serde(alias = "soft-delete")]
    Deleted,
    /// The guest is on no host.
    #[serde(rename = "shelved_offloaded")]
    ShelvedOffloaded,
    /// Paused, suspended, rescued, resized, shelved, or a state that is new to us.
    #[serde(untagged)]
    Other(String),
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Server {
    /// The server's id.
    pub id: String,
    /// The server's name.
    #[serde(default)]
    pub name: String,
    /// The status that Nova shows to the server's owner: `ACTIVE`, `SHUTOFF`, `ERROR`, `REBUILD`.
    pub status: String,
    /// The state of the guest.
    #[serde(rename = "OS-EXT-STS:vm_state")]
    pub vm_state: VmState,
    /// The task that Nova carries out on the server, if any.
    #[serde(rename = "OS-EXT-STS:task_state")]
    pub task_state: Option<String>,
    /// Nova's power state: 1 is running and 4 is shut down.
    #[serde(rename = "OS-EXT-STS:power_state")]
    pub power_state: i64,
    /// The host that the server belongs to; none before the scheduler has found one.
    #[serde(rename = "OS-EXT-SRV-ATTR:host")]
    pub host: Option<String>,
    /// The device name of the first disk.
    #[serde(rename = "OS-EXT-SRV-ATTR:root_device_name", default)]
    pub root_device: Option<String>,
    /// The disks that are no volumes: made from an image, or beside a volume.
    #[serde(flatten)]
    pub disks: OwnDisks,
    /// The project that the server belongs to.
    #[serde(default, rename = "tenant_id")]
    pub project: Option<String>,
    /// Notes of the server's owner.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// Why the server failed, if it did.
    #[serde(default)]
    pub fault: Option<Fault>,
}

impl Server {
    /// Whether Nova reports a rebuild: Nova reports an evacuation as one.
    #[must_use]
    pub fn is_rebuilding(&self) -> bool {
        let task = self.task_state.as_deref();
        task.is_some_and(|task| task.starts_with("rebuild"))
    }
}

/// The disks of a server that are no volumes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct OwnDisks {
    /// An object with an image's id, or an empty text where the first disk is a volume.
    #[serde(default)]
    image: Value,
    #[serde(default)]
    flavor: Flavor,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
struct Flavor {
    #[serde(default, rename = "OS-FLV-EXT-DATA:ephemeral", alias = "ephemeral")]
    ephemeral: u64,
    #[serde(default)]
    swap: Value,
}

impl OwnDisks {
    /// Whether the server has such a disk.
    #[must_use]
    pub fn any(&self) -> bool {
        self.image.is_object() || self.flavor.ephemeral > 0 || self.flavor.swap.as_u64().unwrap_or(0) > 0
    }
}

/// Why a server failed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Fault {
    /// In Nova's words.
    #[serde(default)]
    pub message: String,
}

impl Cloud {
    /// All servers that belong to a host, of all projects.
    pub async fn servers_on(&self, host: &str) -> Result<Vec<Server>, BackendError> {
        let query = [("all_tenants", "1"), ("host", host), ("limit", PAGE)];
        let request = self.get(NOVA, &["servers", "detail"]).query(&query);
        let mut all = request.all("servers", MOST, |server: &Server| &server.id).await?;
        // Nova ignores a filter that it does not know, without an error.
        all.retain(|server| server.host.as_deref() == Some(host));
        Ok(all)
    }

    /// A server; `None` if Nova knows none.
    pub async fn server(&self, id: &str) -> Result<Option<Server>, BackendError> {
        unless_server_gone(id, self.get(NOVA, &["servers", id]).read("server").await)
    }

    /// Asks Nova to start a server of a dead host on another host. Nova would refuse a second request, so the request is not repeated. The
    /// answer is the id of the request in Nova's log.
    pub async fn evacuate(&self, id: &str) -> Result<Option<String>, BackendError> {
        self.act(id, json!({ "evacuate": {} })).await
    }

    /// Declares a server's state, and that no task is under way. Only Nova's database changes.
    pub async fn reset_state(&self, id: &str, state: &str) -> Result<Option<String>, BackendError> {
        self.act(id, json!({ "os-resetState": { "state": state } })).await
    }

    /// Starts a server that is stopped.
    pub async fn start(&self, id: &str) -> Result<Option<String>, BackendError> {
        self.act(id, ServerAction::Start).await
    }

    /// Stops a server that runs.
    pub async fn stop(&self, id: &str) -> Result<Option<String>, BackendError> {
        self.act(id, ServerAction::Stop).await
    }

    /// Restarts a server whatever its guest does, and connects its volumes and ports anew.
    pub async fn reboot_hard(&self, id: &str) -> Result<Option<String>, BackendError> {
        let reboot_type = RebootType::Hard;
        self.act(id, ServerAction::Reboot { reboot_type }).await
    }

    async fn act(&self, id: &str, action: impl Serialize) -> Result<Option<String>, BackendError> {
        self.post(NOVA, &["servers", id, "action"])
            .json(json!(action))
            .header_of_answer("x-openstack-request-id")
            .await
    }
}

/// `None` where Nova says that it knows no such server.
pub(super) fn unless_server_gone<T>(
    id: &str,
    done: Result<T, BackendError>,
) -> Result<Option<T>, BackendError> {
    match done {
        Err(BackendError::NotFound { why, .. }) if says_gone(&why, id) => Ok(None),
        done => done.map(Some),
    }
}

/// Nova's own words. A proxy before a Nova that is away may answer 404 as well, and such an answer says nothing about the server.
fn says_gone(why: &str, id: &str) -> bool {
    why.contains(&format!("{id} could not be found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_proxy_does_not_say_that_a_server_is_gone() {
        let id = "0b0f6a4c-52f1-4a0c-8a51-1f0f4f1c2c11";
        assert!(says_gone(&format!("Instance {id} could not be found. (404)"), id));
        let page = format!("Not Found The requested URL /v2.1/servers/{id} was not found on this server.");
        assert!(!says_gone(&page, id));
    }
}
