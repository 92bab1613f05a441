//! Hypervisors: when a host was booted, and whether Placement still keeps servers away from it.

use osauth::Session;
use osauth::services::{COMPUTE, ServiceType};
use serde::Deserialize;

use super::{NOVA, VERSION_HEADER};
use crate::BackendError;
use crate::openstack::Cloud;

/// From 2.88 on Nova asks every host in the list for its uptime, and waits a minute for one that is dead.
const WITHOUT_UPTIME: &str = "compute 2.87";
/// What a disabled `nova-compute` has on its provider.
const DISABLED: &str = "COMPUTE_STATUS_DISABLED";

/// Placement, whose version document names no address that one could follow.
#[derive(Clone, Copy, Debug)]
struct Placement;

impl ServiceType for Placement {
    fn catalog_type(&self) -> &'static str {
        "placement"
    }

    fn version_discovery_supported(&self) -> bool {
        false
    }
}

#[derive(Deserialize)]
struct Hypervisors {
    hypervisors: Vec<Hypervisor>,
}

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

#[derive(Deserialize)]
struct Traits {
    traits: Vec<String>,
}

impl Cloud {
    /// Whether Placement keeps servers away from a host because its service is, or was, disabled.
    pub async fn is_kept_away(&self, host: &str) -> Result<bool, BackendError> {
        for hypervisor in self.hypervisors(host).await? {
            let id = &hypervisor.id;
            let call = |session: Session| async move {
                session
                    .get(Placement, &["resource_providers", id, "traits"])
                    .header("OpenStack-API-Version", "placement 1.6")
                    .fetch::<Traits>()
                    .await
            };
            let traits = self.again("placement", call).await?.traits;
            if traits.iter().any(|name| name == DISABLED) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn hypervisors(&self, host: &str) -> Result<Vec<Hypervisor>, BackendError> {
        let call = |session: Session| async move {
            let query = [("hypervisor_hostname_pattern", host)];
            session
                .get(COMPUTE, &["os-hypervisors", "detail"])
                .header(VERSION_HEADER, WITHOUT_UPTIME)
                .query(&query)
                .fetch::<Hypervisors>()
                .await
        };
        let is_its = |found: &Hypervisor| found.service.host == host || found.hypervisor_hostname == host;
        match self.again(NOVA, call).await {
            Ok(found) => Ok(found.hypervisors.into_iter().filter(is_its).collect()),
            // Nova says so where no name fits the pattern.
            Err(BackendError::NotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}
