//! Hypervisors: when a host was booted, and whether Placement still keeps servers away from it.

use osauth::Session;
use osauth::services::{COMPUTE, ServiceType};
use serde::Deserialize;

use super::{NOVA, VERSION_HEADER, WITHOUT_UPTIME, versioned};
use crate::BackendError;
use crate::openstack::Cloud;

/// Its version document gives an empty address, which the library cannot read: it is asked without.
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

/// The first with traits; all releases that have a Nova to speak to have it.
const WITH_TRAITS: &str = "placement 1.6";
/// What a disabled `nova-compute` has on its provider.
const DISABLED: &str = "COMPUTE_STATUS_DISABLED";

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
            let traits = self.traits(&hypervisor.id).await?;
            if traits.iter().any(|name| name == DISABLED) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The traits of a provider in Placement.
    pub(super) async fn traits(&self, provider: &str) -> Result<Vec<String>, BackendError> {
        let call = |session: Session| async move {
            session
                .get(Placement, &["resource_providers", provider, "traits"])
                .header(VERSION_HEADER, WITH_TRAITS)
                .fetch::<Traits>()
                .await
        };
        Ok(self.again("placement", call).await?.traits)
    }

    async fn hypervisors(&self, host: &str) -> Result<Vec<Hypervisor>, BackendError> {
        let call = |session: Session| async move {
            let query = [("hypervisor_hostname_pattern", host)];
            let request = session.get(COMPUTE, &["os-hypervisors", "detail"]);
            versioned(&session, request, WITHOUT_UPTIME)
                .await?
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
