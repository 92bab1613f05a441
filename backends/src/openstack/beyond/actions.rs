//! Nova's records of what was done to a server. The crate has none.

use chrono::{DateTime, Utc};
use serde::Deserialize;

use super::service::NOVA;
use crate::BackendError;
use crate::openstack::cloud::unless_gone;
use crate::openstack::{Cloud, time};

/// One entry in Nova's record of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerAction {
    /// What: `create`, `start`, `stop`, `reboot`, `evacuate`.
    pub action: String,
    /// Who asked for it; `None` if Nova did it by itself.
    pub user_id: Option<String>,
    /// When, by the clock of the service that wrote the record.
    #[serde(default, deserialize_with = "time::optional")]
    pub start_time: Option<DateTime<Utc>>,
}

impl Cloud {
    /// The newest action on a server; `None` if there is none, or the server is gone.
    pub async fn last_action(&self, server: &str) -> Result<Option<ServerAction>, BackendError> {
        Ok(self.last_actions(server, 1).await?.into_iter().next())
    }

    /// The newest actions on a server, the newest first; none if the server is gone.
    pub async fn last_actions(&self, server: &str, limit: u32) -> Result<Vec<ServerAction>, BackendError> {
        let limit = limit.to_string();
        let request = self
            .get(NOVA, &["servers", server, "os-instance-actions"])
            .query(&[("limit", &limit)]);
        let actions = request.read("instanceActions").await;
        Ok(unless_gone(actions)?.unwrap_or_default())
    }
}
