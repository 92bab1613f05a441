//! Attachments: that a server has a volume, or is to have it. The crate shows those of a volume that a host is connected to, and neither
//! those that keep a volume for a server nor how to make or delete one.

use serde::Deserialize;
use serde_json::json;

use super::service::CINDER_API;
use crate::BackendError;
use crate::openstack::Cloud;
use crate::openstack::cloud::unless_gone;

/// How far an attachment is.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentStatus {
    /// The volume is kept for the server, and no host is connected to it.
    Reserved,
    /// A host is being connected.
    Attaching,
    /// A host is connected.
    Attached,
    /// Any other; a host may be connected.
    #[serde(untagged)]
    Other(String),
}

/// One attachment of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Attachment {
    /// Its id.
    pub id: String,
    /// How far it is.
    pub status: AttachmentStatus,
    /// The server.
    #[serde(rename = "instance")]
    pub server: Option<String>,
    /// The volume.
    pub volume_id: String,
}

impl Attachment {
    /// Whether no host is connected by it.
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
    /// The attachments of a volume that are a server's.
    pub async fn attachments(&self, volume: &str, server: &str) -> Result<Vec<Attachment>, BackendError> {
        let query = [("all_tenants", "1"), ("volume_id", volume)];
        let request = self.get(CINDER_API, &["attachments", "detail"]).query(&query);
        let mut found: Vec<Attachment> = request.read("attachments").await?;
        // A filter that Cinder does not know is left out by it without a word.
        found.retain(|a| a.volume_id == volume && a.server.as_deref() == Some(server));
        Ok(found)
    }

    /// Keeps a volume for a server, and connects no host. Asked twice, Cinder keeps it twice: it is asked once. The answer is the id.
    pub async fn reserve(&self, volume: &str, server: &str) -> Result<String, BackendError> {
        let wanted = json!({ "volume_uuid": volume, "instance_uuid": server });
        let request = self.post(CINDER_API, &["attachments"]);
        let made: Made = request
            .json(json!({ "attachment": wanted }))
            .read("attachment")
            .await?;
        Ok(made.id)
    }

    /// Disconnects the host of an attachment at the storage, and deletes it; one that is gone is as good. Cinder does that for services
    /// only, who show their token a second time.
    pub async fn disconnect(&self, attachment: &str) -> Result<(), BackendError> {
        let request = self.delete(CINDER_API, &["attachments", attachment]);
        match unless_gone(request.token_in("X-Service-Token").send().await) {
            // To anybody but a service Cinder says that Nova should be asked.
            Err(BackendError::Refused { cloud, service, why }) => Err(BackendError::Denied {
                cloud,
                service,
                why: format!("{why} (the role service is needed beside admin)"),
            }),
            done => done.map(drop),
        }
    }

    /// Deletes an attachment by which no host is connected; one that is gone is as good.
    pub async fn release(&self, reserve: &str) -> Result<(), BackendError> {
        let request = self.delete(CINDER_API, &["attachments", reserve]).repeatable();
        unless_gone(request.send().await).map(drop)
    }
}
