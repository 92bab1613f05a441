//! The rights that the driver `neutron` needs in a cloud.

use serde_json::json;

use crate::BackendError;
use crate::openstack::beyond::NEUTRON_API;
use crate::openstack::cloud::unless_gone;
use crate::openstack::rights::{FailedCall, NO_SUCH_ID, failed};
use crate::openstack::{Cloud, NEUTRON, faults};

impl Cloud {
    pub(in crate::openstack) async fn failing_calls_of_neutron(&self) -> Vec<FailedCall> {
        failed([
            (
                "list the ports of all projects (GET ports)",
                self.ports_on(NO_SUCH_ID).await.map(drop),
            ),
            ("see the agents (GET agents)", self.sees_agents().await),
            (
                "change a port (PUT ports)",
                unless_gone(self.try_changing_a_port().await).map(drop),
            ),
        ])
    }

    /// Neutron shows no agents to a user who may not see them, without an error, and then lists no ports of a host either.
    async fn sees_agents(&self) -> Result<(), BackendError> {
        if self.has_network_agents().await? {
            return Ok(());
        }
        Err(BackendError::Denied {
            platform: faults::label(self.name()),
            service: NEUTRON,
            why: "it shows no agent of any host: there is none, or this user may not see agents; the role admin may".to_owned(),
        })
    }

    async fn try_changing_a_port(&self) -> Result<(), BackendError> {
        let request = self.put(NEUTRON_API, &["ports", NO_SUCH_ID]);
        request
            .json(json!({ "port": { "admin_state_up": false } }))
            .repeatable()
            .send()
            .await
    }
}
