//! Which volumes Nova takes for a server's.

use osauth::Session;
use osauth::services::COMPUTE;
use serde::Deserialize;
use serde_json::json;

use super::servers::says_gone;
use super::{NOVA, WITH_ATTACHMENTS, delete, post, versioned};
use crate::BackendError;
use crate::openstack::Cloud;

/// A volume of a server, as Nova has it on record.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerVolume {
    /// The volume.
    #[serde(rename = "volumeId")]
    pub volume: String,
    /// Cinder's attachment by which the server's host is connected to it, unless that is gone.
    pub attachment_id: Option<String>,
    /// Where the guest finds it: `/dev/vdb`.
    #[serde(default)]
    pub device: Option<String>,
    /// What the guest is told of it.
    #[serde(default)]
    pub tag: Option<String>,
    /// Whether it goes with the server.
    #[serde(default)]
    pub delete_on_termination: bool,
}

#[derive(Deserialize)]
struct Listed {
    #[serde(rename = "volumeAttachments")]
    volumes: Vec<ServerVolume>,
}

impl Cloud {
    /// The volumes of a server; none if there is no such server.
    pub async fn volumes_of(&self, server: &str) -> Result<Vec<ServerVolume>, BackendError> {
        let call = |session: Session| async move {
            let request = session.get(COMPUTE, &["servers", server, "os-volume_attachments"]);
            versioned(&session, request, WITH_ATTACHMENTS)
                .await?
                .fetch::<Listed>()
                .await
        };
        match self.again(NOVA, call).await {
            Ok(listed) => Ok(listed.volumes),
            Err(BackendError::NotFound { why, .. }) if says_gone(&why, server) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Asks Nova to take a volume from a server; one that it does not have is as good.
    pub async fn detach_volume(&self, server: &str, volume: &str) -> Result<(), BackendError> {
        let call = |session: Session| async move {
            let request = delete(&session, &["servers", server, "os-volume_attachments", volume]).await?;
            request.send().await.map(|_| ())
        };
        match self.once(NOVA, call).await {
            Err(BackendError::NotFound { .. }) => Ok(()),
            done => done,
        }
    }

    /// Asks Nova to give a server a volume, as it had it.
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
        let body = &json!({ "volumeAttachment": wanted });
        let call = |session: Session| async move {
            let request = post(&session, &["servers", server, "os-volume_attachments"]).await?;
            request.json(body).send().await.map(|_| ())
        };
        self.once(NOVA, call).await
    }
}
