//! Servers. The crate's have no host, no state of the guest, no task, no project and no fault, and its query cannot ask for those of a host.
//! Its actions have neither `evacuate` nor `os-resetState`; those that it has are sent as it writes them.

use std::collections::BTreeMap;

use openstack::compute::{RebootType, ServerAction};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::service::NOVA;
use crate::BackendError;
use crate::openstack::Cloud;

/// Servers of one page, if Nova is allowed so many.
const PAGE: &str = "200";
/// The most servers of one host.
const MOST: usize = 10_000;

/// How Nova calls the state of a server's guest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VmState {
    /// It runs, or would if its host did.
    Active,
    /// Its owner has stopped it.
    Stopped,
    /// Nova has given it up.
    Error,
    /// It is being built.
    Building,
    /// It is gone.
    #[serde(alias = "soft-delete")]
    Deleted,
    /// Its guest lives nowhere.
    #[serde(rename = "shelved_offloaded")]
    ShelvedOffloaded,
    /// Paused, suspended, rescued, resized, shelved, or one that is new to us.
    #[serde(untagged)]
    Other(String),
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Server {
    /// Its id.
    pub id: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// As Nova shows it to its owner: `ACTIVE`, `SHUTOFF`, `ERROR`, `REBUILD`.
    pub status: String,
    /// The state of its guest.
    #[serde(rename = "OS-EXT-STS:vm_state")]
    pub vm_state: VmState,
    /// What is being done to it, if anything is.
    #[serde(rename = "OS-EXT-STS:task_state")]
    pub task_state: Option<String>,
    /// 1 is running and 4 is shut down.
    #[serde(rename = "OS-EXT-STS:power_state")]
    pub power_state: i64,
    /// The host that it belongs to; none before one was found.
    #[serde(rename = "OS-EXT-SRV-ATTR:host")]
    pub host: Option<String>,
    /// Where its guest finds its first disk.
    #[serde(rename = "OS-EXT-SRV-ATTR:root_device_name", default)]
    pub root_device: Option<String>,
    /// Whether it has a disk that is no volume: one that was made from an image, or one beside a volume.
    #[serde(flatten)]
    pub disks: OwnDisks,
    /// The project that it belongs to.
    #[serde(default, rename = "tenant_id")]
    pub project: Option<String>,
    /// What its owner says of it.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
    /// Why it failed, if it did.
    #[serde(default)]
    pub fault: Option<Fault>,
}

impl Server {
    /// Whether Nova says that it is being built anew: an evacuation is, too.
    #[must_use]
    pub fn is_rebuilding(&self) -> bool {
        let task = self.task_state.as_deref();
        task.is_some_and(|task| task.starts_with("rebuild"))
    }
}

/// What a server's disks were made from.
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
    /// Whether there is any beside its volumes.
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
        // A filter that Nova does not know is left out by it without a word.
        all.retain(|server| server.host.as_deref() == Some(host));
        Ok(all)
    }

    /// A server; `None` if there is none.
    pub async fn server(&self, id: &str) -> Result<Option<Server>, BackendError> {
        unless_server_gone(id, self.get(NOVA, &["servers", id]).read("server").await)
    }

    /// Asks Nova to start a server of a dead host elsewhere. Asked twice, Nova would refuse: it is asked once. The answer is the id of
    /// the request in Nova's log.
    pub async fn evacuate(&self, id: &str) -> Result<Option<String>, BackendError> {
        self.act(id, json!({ "evacuate": {} })).await
    }

    /// Declares what state a server is in, and that nothing is being done to it. Changes Nova's database and nothing else.
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

    /// Starts a server again whatever its guest does, with its volumes and ports connected anew.
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

/// `None` where Nova says that there is no such server.
pub(super) fn unless_server_gone<T>(
    id: &str,
    done: Result<T, BackendError>,
) -> Result<Option<T>, BackendError> {
    match done {
        Err(BackendError::NotFound { why, .. }) if says_gone(&why, id) => Ok(None),
        done => done.map(Some),
    }
}

/// Nova's own words. Whatever stands before a Nova that is away may answer 404 as well, and that says nothing of the server.
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
