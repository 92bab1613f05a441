//! The services of Nova, one `nova-compute` for each host among them. The crate has none of them.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Value, json};

use super::service::NOVA;
use crate::BackendError;
use crate::openstack::{Cloud, time};

/// The longest reason that Nova takes, in characters.
const MAX_REASON_CHARS: usize = 255;

/// A service of Nova.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ComputeService {
    /// The service's id.
    pub id: String,
    /// `nova-compute`, `nova-conductor`, `nova-scheduler`.
    pub binary: String,
    /// The host that the service is for.
    pub host: String,
    /// `up` or `down`. Up: the last sign of life is newer than Nova's limit, and the service is not forced down.
    pub state: String,
    /// `enabled` or `disabled`: whether servers may be placed on the host.
    pub status: String,
    /// Why the service is disabled.
    pub disabled_reason: Option<String>,
    /// Whether a call has told Nova to take the service for down in spite of its signs of life.
    #[serde(default)]
    pub forced_down: bool,
    /// The service's last sign of life, by Nova's clock.
    #[serde(default, deserialize_with = "time::optional")]
    pub updated_at: Option<DateTime<Utc>>,
}

impl ComputeService {
    /// Whether Nova takes the service for alive.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.state == "up"
    }

    /// Whether servers may be placed on the host.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.status == "enabled"
    }
}

impl Cloud {
    /// All services of Nova, in one call: the services of all hosts, and Nova's own.
    pub async fn services(&self) -> Result<Vec<ComputeService>, BackendError> {
        self.get(NOVA, &["os-services"]).read("services").await
    }

    /// The `nova-compute` of a host; `None` if Nova does not know the host.
    pub async fn compute_service(&self, host: &str) -> Result<Option<ComputeService>, BackendError> {
        let query = [("binary", "nova-compute"), ("host", host)];
        let request = self.get(NOVA, &["os-services"]).query(&query);
        let found: Vec<ComputeService> = request.read("services").await?;
        Ok(found.into_iter().find(|service| service.host == host))
    }

    /// Forces a service down and disables it, in one call: a call that only disables a dead service would wait for the service.
    pub async fn force_down(&self, service: &str, reason: &str) -> Result<ComputeService, BackendError> {
        let reason: String = reason.chars().take(MAX_REASON_CHARS).collect();
        self.change_service(
            service,
            json!({ "forced_down": true, "status": "disabled", "disabled_reason": reason }),
        )
        .await
    }

    /// Forces a service down that an administrator has disabled; the administrator's reason stays.
    pub async fn force_down_only(&self, service: &str) -> Result<ComputeService, BackendError> {
        self.change_service(service, json!({ "forced_down": true })).await
    }

    /// Ends the forcing down of a service. Nova refuses while an evacuation from its host is done and not cleaned up.
    pub async fn force_up(&self, service: &str) -> Result<ComputeService, BackendError> {
        self.change_service(service, json!({ "forced_down": false }))
            .await
    }

    /// Lets servers be placed on the host again.
    pub async fn enable(&self, service: &str) -> Result<ComputeService, BackendError> {
        self.change_service(service, json!({ "status": "enabled" })).await
    }

    async fn change_service(&self, service: &str, change: Value) -> Result<ComputeService, BackendError> {
        let request = self.put(NOVA, &["os-services", service]).json(change);
        request.repeatable().read("service").await
    }
}
