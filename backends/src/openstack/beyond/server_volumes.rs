//! The volumes that Nova has on record for a server. The crate has none of these attachments.

use serde::Deserialize;
use serde_json::json;

use super::servers::unless_server_gone;
use super::service::{NOVA, NOVA_WITH_ATTACHMENTS};
use crate::BackendError;
use crate::openstack::Cloud;
use crate::openstack::cloud::unless_gone;

/// A volume of a server, as Nova has it on record.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerVolume {
    /// The volume's id.
    #[serde(rename = "volumeId")]
    pub volume: String,
    /// Cinder's attachment that connects the server's host, unless the attachment is gone.
    pub attachment_id: Option<String>,
    /// The device name in the guest: `/dev/vdb`.
    #[serde(default)]
    pub device: Option<String>,
    /// The tag by which the guest finds the volume.
    #[serde(default)]
    pub tag: Option<String>,
    /// Whether Nova deletes the volume with the server.
    #[serde(default)]
    pub delete_on_termination: bool,
}

impl Cloud {
    /// The volumes of a server; none if Nova knows no such server.
    pub async fn volumes_of(&self, server: &str) -> Result<Vec<ServerVolume>, BackendError> {
        let path = ["servers", server, "os-volume_attachments"];
        let listed = self
            .get(NOVA_WITH_ATTACHMENTS, &path)
            .read("volumeAttachments")
            .await;
        Ok(unless_server_gone(server, listed)?.unwrap_or_default())
    }

    /// Asks Nova to detach a volume from a server; a volume that the server does not have counts as detached.
    pub async fn detach_volume(&self, server: &str, volume: &str) -> Result<(), BackendError> {
        let path = ["servers", server, "os-volume_attachments", volume];
        unless_gone(self.delete(NOVA, &path).send().await).map(drop)
    }

    /// Asks Nova to attach a volume to a server with the settings that it had.
    pub async fn attach_volume(&self, server: &str, as_before: &ServerVolume) -> Result<(), BackendError> {
        let mut wanted = json!({
            "volumeId": as_before.volume,
            "delete_on_termination": as_before.delete_on_termination,
        });
        if let Some(device) = &as_before.device {
            wanted["device"] = json!(device);
        }
        if let Some(tag) = &as_before.tag {
            wanted["tag"] = json!(tag);
        }
        self.post(NOVA, &["servers", server, "os-volume_attachments"])
            .json(json!({ "volumeAttachment": wanted }))
            .send()
            .await
    }
}
