//! Agents of Neutron, by which Neutron knows a host. The crate has none of them.

use serde::Deserialize;

use super::service::NEUTRON_API;
use crate::BackendError;
use crate::openstack::Cloud;

#[derive(Deserialize)]
struct Agent {
    host: String,
}

impl Cloud {
    /// How many agents of a host Neutron shows, dead ones too. A user who may not see agents is shown none, without an error.
    pub async fn network_agents(&self, host: &str) -> Result<usize, BackendError> {
        let agents = self.agents(&[("host", host)]).await?;
        Ok(agents.iter().filter(|agent| agent.host == host).count())
    }

    /// Whether Neutron shows an agent of any host.
    pub(in crate::openstack) async fn has_network_agents(&self) -> Result<bool, BackendError> {
        Ok(!self.agents(&[("limit", "1")]).await?.is_empty())
    }

    async fn agents(&self, query: &[(&str, &str)]) -> Result<Vec<Agent>, BackendError> {
        let request = self.get(NEUTRON_API, &["agents"]).query(query);
        request.query(&[("fields", "host")]).read("agents").await
    }
}
