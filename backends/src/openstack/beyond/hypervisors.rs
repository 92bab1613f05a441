//! Hypervisors, and whether Placement still keeps servers away from one. The crate knows neither hypervisors nor Placement.

use serde::Deserialize;

use super::service::{NOVA_WITHOUT_UPTIME, PLACEMENT};
use crate::BackendError;
use crate::openstack::Cloud;
use crate::openstack::cloud::unless_gone;

/// The trait that Nova sets on the provider of a disabled `nova-compute`.
const DISABLED: &str = "COMPUTE_STATUS_DISABLED";

#[derive(Deserialize)]
struct Hypervisor {
    id: String,
    hypervisor_hostname: String,
    #[serde(default)]
    service: Service,
}

#[derive(Default, Deserialize)]
struct Service {
    #[serde(default)]
    host: String,
}

impl Cloud {
    /// Whether Placement keeps servers away from a host because its service is, or was, disabled.
    pub async fn is_kept_away(&self, host: &str) -> Result<bool, BackendError> {
        for hypervisor in self.hypervisors(host).await? {
            let traits = self.traits(&hypervisor.id).await?;
            if traits.iter().any(|name| name == DISABLED) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The traits of a provider in Placement.
    pub(in crate::openstack) async fn traits(&self, provider: &str) -> Result<Vec<String>, BackendError> {
        let path = ["resource_providers", provider, "traits"];
        self.get(PLACEMENT, &path).read("traits").await
    }

    async fn hypervisors(&self, host: &str) -> Result<Vec<Hypervisor>, BackendError> {
        let request = self
            .get(NOVA_WITHOUT_UPTIME, &["os-hypervisors", "detail"])
            .query(&[("hypervisor_hostname_pattern", host)]);
        // Nova answers 404 where no name fits the pattern.
        let found: Option<Vec<Hypervisor>> = unless_gone(request.read("hypervisors").await)?;
        let mut found = found.unwrap_or_default();
        found.retain(|one| one.service.host == host || one.hypervisor_hostname == host);
        Ok(found)
    }
}
