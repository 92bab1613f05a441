//! Ironic's nodes.

use std::time::Duration;

use serde_json::{Value, json};

use crate::cloud::wait::{Seen, wait_for};
use crate::cloud::{Api, Cloud};
use crate::error::LabError;

const LIMIT: Duration = Duration::from_secs(60);

/// A machine that Ironic simulates. Dropping the value removes the machine, as far as possible.
#[derive(Debug)]
pub struct BaremetalNode {
    cloud: Cloud,
    id: String,
}

impl Cloud {
    /// Enrols a machine with this name and switches it on.
    ///
    /// # Errors
    /// If Ironic cannot be reached, refuses, or takes more than a minute.
    pub fn enrol(&self, name: &str) -> Result<BaremetalNode, LabError> {
        let body = json!({"name": name, "driver": "fake-hardware"});
        let made = self.post(Api::Baremetal, "/v1/nodes", body)?;
        let node = BaremetalNode {
            cloud: self.clone(),
            id: made["uuid"].as_str().unwrap_or_default().to_owned(),
        };
        // Ironic has no power state for a machine until it has read one.
        node.change("provision", "manage")?;
        node.wait("manageable", |node| node["provision_state"] == "manageable")?;
        node.change("power", "power on")?;
        node.wait_power("power on")?;
        Ok(node)
    }
}

impl BaremetalNode {
    /// The node's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Everything that Ironic shows of the node: `power_state`, `target_power_state`, `last_error`, `maintenance` and more.
    ///
    /// # Errors
    /// If Ironic cannot be reached.
    pub fn read(&self) -> Result<Value, LabError> {
        self.cloud.get(Api::Baremetal, &format!("/v1/nodes/{}", self.id))
    }

    /// `power on`, `power off` or empty.
    ///
    /// # Errors
    /// If Ironic cannot be reached.
    pub fn power_state(&self) -> Result<String, LabError> {
        let node = self.read()?;
        Ok(node["power_state"].as_str().unwrap_or_default().to_owned())
    }

    /// Whether the node is in maintenance, so that Ironic leaves its power alone.
    ///
    /// # Errors
    /// If Ironic cannot be reached.
    pub fn is_in_maintenance(&self) -> Result<bool, LabError> {
        Ok(self.read()?["maintenance"] == true)
    }

    /// Switches the node and waits for the new state.
    ///
    /// # Errors
    /// If Ironic cannot be reached, refuses, or takes more than a minute.
    pub fn set_powered(&self, powered: bool) -> Result<(), LabError> {
        let target = if powered { "power on" } else { "power off" };
        self.change("power", target)?;
        self.wait_power(target)
    }

    /// Waits until the power is `state` (`power on` or `power off`) and no change is under way.
    ///
    /// # Errors
    /// If that takes more than a minute.
    pub fn wait_power(&self, state: &str) -> Result<(), LabError> {
        self.wait(state, |node| {
            node["power_state"] == state && node["target_power_state"].is_null()
        })
    }

    fn change(&self, what: &str, target: &str) -> Result<(), LabError> {
        let path = format!("/v1/nodes/{}/states/{what}", self.id);
        self.cloud
            .put(Api::Baremetal, &path, json!({"target": target}))
            .map(|_| ())
    }

    fn wait(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<(), LabError> {
        wait_for(
            || format!("node {} {what}", self.id),
            LIMIT,
            || {
                let node = self.read()?;
                Ok(if is_so(&node) {
                    Seen::Enough(())
                } else {
                    Seen::NotYet(node.to_string())
                })
            },
        )
    }
}

impl Drop for BaremetalNode {
    fn drop(&mut self) {
        let _ = self
            .cloud
            .delete(Api::Baremetal, &format!("/v1/nodes/{}", self.id));
    }
}
