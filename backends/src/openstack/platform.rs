//! OpenStack as a platform: Nova places the workloads, and Nova's services show the state of the hosts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_core::{
    Backend, ConditionStatus, MAX_CONDITION_REASON_CHARS, Poll, ReportedCondition, Sign, Timestamp,
};

use super::host::HostOf;
use super::steps::{Looks, REASON};
use super::{Cloud, ComputeService, preflight};
use crate::{BackendError, Platform, Preflight, StepOrder, StepReport, TimeGiven};

/// The condition of a host whose `nova-compute` an administrator has disabled.
const DISABLED: &str = "NovaComputeDisabled";

/// The Nova of one cloud.
pub struct Nova {
    cloud: Arc<Cloud>,
    looks: Looks,
}

impl Nova {
    /// Makes no call yet.
    #[must_use]
    pub fn new(cloud: Arc<Cloud>) -> Self {
        Self {
            cloud,
            looks: Looks::default(),
        }
    }

    /// The Novas of these clouds.
    #[must_use]
    pub fn on(clouds: &[Arc<Cloud>]) -> Vec<Arc<dyn Platform>> {
        let novas = clouds.iter().map(|cloud| Self::new(Arc::clone(cloud)));
        novas.map(|nova| Arc::new(nova) as Arc<dyn Platform>).collect()
    }
}

impl fmt::Debug for Nova {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nova")
            .field("cloud", &self.cloud)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Platform for Nova {
    fn name(&self) -> &str {
        self.cloud.name()
    }

    fn kind(&self) -> Backend {
        Backend::Nova
    }

    fn timeout(&self) -> Duration {
        self.cloud.timeout()
    }

    async fn look(&self) -> Result<Poll, BackendError> {
        Ok(poll(&self.cloud.services().await?))
    }

    async fn preflight(&self, now: Timestamp) -> Vec<Preflight> {
        preflight::of(&self.cloud, now).await
    }

    async fn preflight_fencing(&self, driver: &str) -> Vec<Preflight> {
        preflight::fencing(&self.cloud, driver).await
    }

    async fn carry_out(&self, order: StepOrder<'_>, budget: Duration) -> StepReport {
        let at = HostOf {
            cloud: &self.cloud,
            host: &order.at.host,
            time: TimeGiven::of(budget),
        };
        at.carry_out(order, &self.looks).await
    }
}

/// What Nova says of a host that an administrator has disabled. Those that a fence has disabled are none.
fn conditions(service: &ComputeService) -> Vec<ReportedCondition> {
    let reason = service.disabled_reason.as_deref().unwrap_or_default();
    if service.is_enabled() || reason == REASON {
        return Vec::new();
    }
    let plain = reason.chars().filter(|c| !c.is_control());
    vec![ReportedCondition {
        name: DISABLED.to_owned(),
        status: ConditionStatus::True,
        reason: plain.take(MAX_CONDITION_REASON_CHARS).collect(),
    }]
}

/// Nova's view of its hosts. Their signs of life go through a conductor: while no conductor lives, none arrives.
fn poll(services: &[ComputeService]) -> Poll {
    let hosts = services.iter().filter(|service| service.binary == "nova-compute");
    let own = services
        .iter()
        .filter(|service| service.binary == "nova-conductor");
    Poll {
        hosts: hosts
            .map(|service| Sign {
                labels: None,
                host: service.host.clone(),
                last: service.updated_at,
                is_up: service.is_up(),
                is_marked_down: service.forced_down,
                // Nova stores the time of a change in the field of the last sign of life.
                settings: format!(
                    "{} {} {:?}",
                    service.forced_down, service.status, service.disabled_reason
                ),
                boot: None,
                host_type: None,
                is_on_record: false,
                is_kept_off: false,
                conditions: conditions(service).into(),
            })
            .collect(),
        own: own.filter_map(|service| service.updated_at).max(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said_of(status: &str, reason: Option<&str>) -> Vec<(String, String)> {
        let service = json!({
            "id": "1", "binary": "nova-compute", "host": "c1", "state": "up", "status": status, "disabled_reason": reason,
        });
        let said = conditions(&serde_json::from_value(service).unwrap());
        said.into_iter().map(|one| (one.name, one.reason)).collect()
    }

    #[test]
    fn a_host_that_an_administrator_has_disabled_says_so_and_one_that_a_fence_has_disabled_does_not() {
        let disabled = |reason: &str| vec![("NovaComputeDisabled".to_owned(), reason.to_owned())];
        assert_eq!(said_of("disabled", Some("new\nmemory")), disabled("newmemory"));
        assert_eq!(said_of("disabled", None), disabled(""));
        assert_eq!(said_of("disabled", Some(REASON)), []);
        assert_eq!(said_of("enabled", None), []);
        let long = "x".repeat(300);
        assert_eq!(said_of("disabled", Some(&long)), disabled(&long[..255]));
    }
}
