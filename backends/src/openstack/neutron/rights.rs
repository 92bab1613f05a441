//! What the driver `neutron` needs of a cloud.

use serde_json::json;

use crate::BackendError;
use crate::openstack::beyond::NEUTRON_API;
use crate::openstack::cloud::unless_gone;
use crate::openstack::rights::{FailedCall, NOBODY, failed};
use crate::openstack::{Cloud, NEUTRON};

impl Cloud {
    pub(in crate::openstack) async fn failing_calls_of_neutron(&self) -> Vec<FailedCall> {
        failed([
            (
                "list the ports of all projects (GET ports)",
                self.ports_on(NOBODY).await.map(drop),
            ),
            ("see the agents (GET agents)", self.sees_agents().await),
            (
                "change a port (PUT ports)",
                unless_gone(self.try_changing_a_port().await).map(drop),
            ),
        ])
    }

    /// Neutron shows none to those who may not see them, without a word, and none of a host's ports is found then either.
    async fn sees_agents(&self) -> Result<(), BackendError> {
        if self.has_network_agents().await? {
            return Ok(());
        }
        Err(BackendError::Denied {
            cloud: self.name().to_owned(),
            service: NEUTRON,
            why: "it shows no agent of any host: there is none, or they are not for this user; they are for admin".to_owned(),
        })
    }

    async fn try_changing_a_port(&self) -> Result<(), BackendError> {
        let request = self.put(NEUTRON_API, &["ports", NOBODY]);
        request
            .json(json!({ "port": { "admin_state_up": false } }))
            .repeatable()
            .send()
            .await
    }
}
