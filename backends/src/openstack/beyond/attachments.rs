//! Attachments: a server has a volume, or is to have it. The crate shows attachments that connect a host to a volume. It neither shows
//! attachments that reserve a volume for a server, nor makes or deletes one.

use serde::Deserialize;
use serde_json::json;

use super::service::CINDER_API;
use crate::BackendError;
use crate::openstack::Cloud;
use crate::openstack::cloud::unless_gone;

/// The state of an attachment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentStatus {
    /// The volume is reserved for the server, and no host is connected to it.
    Reserved,
    /// A host is being connected.
    Attaching,
    /// A host is connected.
    Attached,
    /// Any other state; a host may be connected.
    #[serde(untagged)]
    Other(String),
}

/// One attachment of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Attachment {
    /// The attachment's id.
    pub id: String,
    /// The attachment's state.
    pub status: AttachmentStatus,
    /// The server.
    #[serde(rename = "instance")]
    pub server: Option<String>,
    /// The volume.
    pub volume_id: String,
}

impl Attachment {
    /// Whether the attachment connects no host.
    #[must_use]
    pub fn is_reserve(&self) -> bool {
        self.status == AttachmentStatus::Reserved
    }
}

#[derive(Deserialize)]
struct Made {
    id: String,
}

impl Cloud {
    /// The attachments of a volume for a server.
    pub async fn attachments(&self, volume: &str, server: &str) -> Result<Vec<Attachment>, BackendError> {
        let query = [("all_tenants", "1"), ("volume_id", volume)];
        let request = self.get(CINDER_API, &["attachments", "detail"]).query(&query);
        let mut found: Vec<Attachment> = request.read("attachments").await?;
        // Cinder ignores a filter that it does not know, without an error.
        found.retain(|a| a.volume_id == volume && a.server.as_deref() == Some(server));
        Ok(found)
    }

    /// Reserves a volume for a server, and connects no host. A second request would reserve it twice, so the request is not repeated. The
    /// answer is the attachment's id.
    pub async fn reserve(&self, volume: &str, server: &str) -> Result<String, BackendError> {
        let wanted = json!({ "volume_uuid": volume, "instance_uuid": server });
        let request = self.post(CINDER_API, &["attachments"]);
        let made: Made = request
            .json(json!({ "attachment": wanted }))
            .read("attachment")
            .await?;
        Ok(made.id)
    }

    /// Disconnects the host of an attachment at the storage, and deletes the attachment; an attachment that is gone counts as deleted.
    /// Cinder does this for services only, which show their token a second time.
    pub async fn disconnect(&self, attachment: &str) -> Result<(), BackendError> {
        let request = self.delete(CINDER_API, &["attachments", attachment]);
        match unless_gone(request.token_in("X-Service-Token").send().await) {
            // Cinder tells every user without the role service to ask Nova.
            Err(BackendError::Refused {
                platform,
                service,
                why,
            }) => Err(BackendError::Denied {
                platform,
                service,
                why: format!("{why} (the role service is needed beside admin)"),
            }),
            done => done.map(drop),
        }
    }

    /// Deletes an attachment that connects no host; an attachment that is gone counts as deleted.
    pub async fn release(&self, reserve: &str) -> Result<(), BackendError> {
        let request = self.delete(CINDER_API, &["attachments", reserve]).repeatable();
        unless_gone(request.send().await).map(drop)
    }
}
