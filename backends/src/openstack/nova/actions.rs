//! What was done to a server, as Nova has it on record.

use chrono::{DateTime, Utc};
use osauth::Session;
use serde::Deserialize;

use super::{NOVA, get};
use crate::BackendError;
use crate::openstack::{Cloud, time};

/// One thing that was done to a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerAction {
    /// What: `create`, `start`, `stop`, `reboot`, `evacuate`.
    pub action: String,
    /// Who asked for it; `None` if Nova did it by itself.
    pub user_id: Option<String>,
    /// When, by the clock of the service that wrote it down.
    #[serde(default, deserialize_with = "time::optional")]
    pub start_time: Option<DateTime<Utc>>,
}

#[derive(Deserialize)]
struct Actions {
    #[serde(rename = "instanceActions")]
    actions: Vec<ServerAction>,
}

impl Cloud {
    /// The last thing that was done to a server; `None` if nothing was, or the server is gone.
    pub async fn last_action(&self, server: &str) -> Result<Option<ServerAction>, BackendError> {
        Ok(self.last_actions(server, 1).await?.into_iter().next())
    }

    /// What was done to a server last, the newest first; nothing if it is gone.
    pub async fn last_actions(&self, server: &str, limit: u32) -> Result<Vec<ServerAction>, BackendError> {
        let limit = &limit.to_string();
        let call = |session: Session| async move {
            get(&session, &["servers", server, "os-instance-actions"])
                .await?
                .query(&[("limit", limit)])
                .fetch::<Actions>()
                .await
        };
        match self.again(NOVA, call).await {
            Ok(listed) => Ok(listed.actions),
            Err(BackendError::NotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}
