//! Attachments: that a server has a volume, or is to have it.

use osauth::Session;
use serde::Deserialize;
use serde_json::json;

use super::{CINDER, delete, get, post};
use crate::BackendError;
use crate::openstack::{Cloud, token};

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
struct Attachments {
    attachments: Vec<Attachment>,
}

#[derive(Deserialize)]
struct One {
    attachment: Made,
}

#[derive(Deserialize)]
struct Made {
    id: String,
}

impl Cloud {
    /// The attachments of a volume that are a server's.
    pub async fn attachments(&self, volume: &str, server: &str) -> Result<Vec<Attachment>, BackendError> {
        let call = |session: Session| async move {
            let query = [("all_tenants", "1"), ("volume_id", volume)];
            get(&session, &["attachments", "detail"])
                .query(&query)
                .fetch::<Attachments>()
                .await
        };
        let mut found = self.again(CINDER, call).await?.attachments;
        // A filter that Cinder does not know is left out by it without a word.
        found.retain(|a| a.volume_id == volume && a.server.as_deref() == Some(server));
        Ok(found)
    }

    /// Keeps a volume for a server, and connects nobody. Asked twice, Cinder keeps it twice: it is asked once. The answer is the id.
    pub async fn reserve(&self, volume: &str, server: &str) -> Result<String, BackendError> {
        let body = &json!({ "attachment": { "volume_uuid": volume, "instance_uuid": server } });
        let call = |session: Session| async move {
            post(&session, &["attachments"]).json(body).fetch::<One>().await
        };
        Ok(self.once(CINDER, call).await?.attachment.id)
    }

    /// Disconnects the host of an attachment at the storage, and deletes it; one that is gone is as good. Cinder does that for services
    /// only, who show their token a second time.
    pub async fn disconnect(&self, attachment: &str) -> Result<(), BackendError> {
        let call = |session: Session| async move {
            let token = token::of(&session).await?;
            delete(&session, &["attachments", attachment])
                .header("X-Service-Token", token)
                .send()
                .await
                .map(|_| ())
        };
        match unless_gone(self.once(CINDER, call).await) {
            // To anybody but a service Cinder says that Nova should be asked.
            Err(BackendError::Refused { cloud, service, why }) => Err(BackendError::Denied {
                cloud,
                service,
                why: format!("{why} (the role service is needed beside admin)"),
            }),
            done => done,
        }
    }

    /// Deletes an attachment by which nobody is connected; one that is gone is as good.
    pub async fn release(&self, reserve: &str) -> Result<(), BackendError> {
        let call = |session: Session| async move {
            delete(&session, &["attachments", reserve])
                .send()
                .await
                .map(|_| ())
        };
        unless_gone(self.again(CINDER, call).await)
    }
}

fn unless_gone(done: Result<(), BackendError>) -> Result<(), BackendError> {
    match done {
        Err(BackendError::NotFound { .. }) => Ok(()),
        done => done,
    }
}
