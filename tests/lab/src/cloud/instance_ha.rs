//! Masakari's segments and notifications.

use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::cloud::api::understand;
use crate::cloud::wait::{Seen, wait_for};
use crate::cloud::{Api, Call, Cloud};
use crate::error::{During, LabError};

/// A notification that a host is dead, as Masakari handles it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Notification {
    /// The notification's id.
    #[serde(rename = "notification_uuid")]
    pub id: String,
    /// `new`, `running`, `finished`, `error`, `failed`, `ignored`.
    pub status: String,
}

impl Cloud {
    /// Makes a segment in Masakari with these hosts; returns the segment's id.
    ///
    /// # Errors
    /// If Masakari cannot be reached or refuses.
    pub fn make_segment(&self, name: &str, hosts: &[&str]) -> Result<String, LabError> {
        let segment =
            json!({"segment": {"name": name, "recovery_method": "auto", "service_type": "COMPUTE"}});
        let call = Call::new("POST", Api::InstanceHa, "/segments").json(segment);
        let mut made = self.demand(&call)?;
        let segment: String = understand(&call, made["segment"]["uuid"].take())?;
        for host in hosts {
            let host = json!({"host": {"name": host, "type": "COMPUTE", "control_attributes": "none"}});
            self.post(Api::InstanceHa, &format!("/segments/{segment}/hosts"), host)?;
        }
        Ok(segment)
    }

    /// Notifies Masakari of a dead host.
    ///
    /// # Errors
    /// If Masakari cannot be reached or refuses.
    pub fn notify_of_dead_host(&self, host: &str) -> Result<Notification, LabError> {
        self.notify(host, "STOPPED", "OFFLINE")
    }

    /// Notifies Masakari of a living host, which Masakari only records.
    ///
    /// # Errors
    /// If Masakari cannot be reached or refuses.
    pub fn notify_of_living_host(&self, host: &str) -> Result<Notification, LabError> {
        self.notify(host, "STARTED", "ONLINE")
    }

    fn notify(&self, host: &str, event: &str, cluster_status: &str) -> Result<Notification, LabError> {
        let body = json!({"notification": {
            "type": "COMPUTE_HOST",
            "hostname": host,
            "generated_time": utc_now()?,
            "payload": {"event": event, "cluster_status": cluster_status, "host_status": "NORMAL"},
        }});
        let call = Call::new("POST", Api::InstanceHa, "/notifications").json(body);
        let mut made = self.demand(&call)?;
        understand(&call, made["notification"].take())
    }

    /// Waits until Masakari has finished or failed with the notification.
    ///
    /// # Errors
    /// If that takes longer than the limit.
    pub fn follow(&self, notification: &str, limit: Duration) -> Result<Notification, LabError> {
        wait_for(
            || format!("the end of notification {notification}"),
            limit,
            || {
                let path = format!("/notifications/{notification}");
                let now: Notification = self.find(Api::InstanceHa, &path, "notification")?;
                Ok(if ["new", "running", "error"].contains(&now.status.as_str()) {
                    Seen::NotYet(now.status)
                } else {
                    Seen::Enough(now)
                })
            },
        )
    }

    /// Deletes a segment and its hosts.
    ///
    /// # Errors
    /// If Masakari cannot be reached, or refuses because it handles a notification of a host.
    pub fn delete_segment(&self, segment: &str) -> Result<(), LabError> {
        self.delete(Api::InstanceHa, &format!("/segments/{segment}"))
    }
}

fn utc_now() -> Result<String, LabError> {
    let done = Command::new("date")
        .args(["-u", "+%Y-%m-%dT%H:%M:%S"])
        .output()
        .during(|| "running date".to_owned())?;
    Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned())
}
