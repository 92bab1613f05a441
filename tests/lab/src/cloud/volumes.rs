//! Cinder's volumes.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::cloud::wait::{Seen, wait_for};
use crate::cloud::{Answer, Api, Call, Cloud};
use crate::error::LabError;

const LIMIT: Duration = Duration::from_secs(60);

/// A volume as Cinder sees it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Volume {
    /// The volume's id.
    pub id: String,
    /// `available`, `in-use`, `error` and others.
    pub status: String,
    /// The volume's attachments.
    pub attachments: Vec<VolumeAttachment>,
}

/// A volume's attachment to a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct VolumeAttachment {
    /// The attachment's id.
    pub attachment_id: String,
    /// The server.
    pub server_id: String,
    /// The server's host when the attachment was made.
    pub host_name: Option<String>,
}

impl Cloud {
    /// Makes a volume of 1 GiB and waits until it can be used.
    ///
    /// # Errors
    /// If Cinder refuses, or the volume is not available within a minute.
    pub fn make_volume(&self, name: &str) -> Result<Volume, LabError> {
        let body = json!({"volume": {"name": name, "size": 1}});
        let made = self.post(Api::Volume, "/volumes", body)?;
        let id = made["volume"]["id"].as_str().unwrap_or_default();
        self.wait_volume(id, "available")
    }

    /// Attaches a volume to a server and waits until it is in use.
    ///
    /// # Errors
    /// If Nova refuses, or the volume is not in use within a minute.
    pub fn attach(&self, server: &str, volume: &str) -> Result<Volume, LabError> {
        let body = json!({"volumeAttachment": {"volumeId": volume}});
        self.post(
            Api::Compute,
            &format!("/servers/{server}/os-volume_attachments"),
            body,
        )?;
        self.wait_volume(volume, "in-use")
    }

    /// Waits until a volume has this status.
    ///
    /// # Errors
    /// If that takes more than a minute.
    pub fn wait_volume(&self, id: &str, status: &str) -> Result<Volume, LabError> {
        wait_for(
            || format!("volume {id} {status}"),
            LIMIT,
            || {
                let volume = self.volume(id)?;
                Ok(if volume.status == status {
                    Seen::Enough(volume)
                } else {
                    Seen::NotYet(format!("{volume:?}"))
                })
            },
        )
    }

    /// The volume with this id.
    ///
    /// # Errors
    /// If Cinder cannot be reached, or does not know the volume.
    pub fn volume(&self, id: &str) -> Result<Volume, LabError> {
        self.find(Api::Volume, &format!("/volumes/{id}"), "volume")
    }

    /// Deletes an attachment without Nova. Without a service token Cinder refuses that with 409.
    ///
    /// # Errors
    /// If Cinder cannot be reached.
    pub fn delete_attachment(&self, attachment: &str, with_service_token: bool) -> Result<Answer, LabError> {
        self.ask(&Call {
            with_service_token,
            ..Call::new("DELETE", Api::Volume, &format!("/attachments/{attachment}"))
        })
    }

    /// Deletes a volume without attachments, and waits until it is gone.
    ///
    /// # Errors
    /// If Cinder cannot be reached, refuses, or takes more than a minute.
    pub fn delete_volume(&self, id: &str) -> Result<(), LabError> {
        let path = format!("/volumes/{id}");
        self.delete(Api::Volume, &path)?;
        wait_for(
            || format!("removing volume {id}"),
            LIMIT,
            || {
                let answer = self.ask(&Call::new("GET", Api::Volume, &path))?;
                Ok(if answer.status == 404 {
                    Seen::Enough(())
                } else {
                    Seen::NotYet(answer.body.to_string())
                })
            },
        )
    }
}
