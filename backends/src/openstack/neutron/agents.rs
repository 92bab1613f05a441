//! Agents: that Neutron knows a host.

use osauth::Session;
use osauth::services::NETWORK;
use serde::Deserialize;

use super::NEUTRON;
use crate::BackendError;
use crate::openstack::Cloud;

#[derive(Deserialize)]
struct Agents {
    agents: Vec<Agent>,
}

#[derive(Deserialize)]
struct Agent {
    host: String,
}

impl Cloud {
    /// How many agents of a host Neutron shows, dead ones too. It shows none to those who may not see them, without a word.
    pub async fn network_agents(&self, host: &str) -> Result<usize, BackendError> {
        let call = |session: Session| async move {
            let query = [("host", host), ("fields", "host")];
            session
                .get(NETWORK, &["agents"])
                .query(&query)
                .fetch::<Agents>()
                .await
        };
        let agents = self.again(NEUTRON, call).await?.agents;
        Ok(agents.iter().filter(|agent| agent.host == host).count())
    }

    /// Whether Neutron shows an agent of any host.
    pub(super) async fn has_network_agents(&self) -> Result<bool, BackendError> {
        let call = |session: Session| async move {
            let query = [("limit", "1"), ("fields", "host")];
            session
                .get(NETWORK, &["agents"])
                .query(&query)
                .fetch::<Agents>()
                .await
        };
        Ok(!self.again(NEUTRON, call).await?.agents.is_empty())
    }
}
