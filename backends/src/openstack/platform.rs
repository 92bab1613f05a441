//! OpenStack as a platform: Nova places the workloads, and Nova's services show the state of the hosts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ringfence_core::{Backend, Poll, Sign, Timestamp};

use super::host::HostOf;
use super::steps::Looks;
use super::{Cloud, ComputeService, preflight};
use crate::{BackendError, Platform, Preflight, StepOrder, StepReport, TimeGiven};

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

/// Nova's view of its hosts. Their signs of life go through a conductor: while no conductor lives, none arrives.
fn poll(services: &[ComputeService]) -> Poll {
    let hosts = services.iter().filter(|service| service.binary == "nova-compute");
    let own = services
        .iter()
        .filter(|service| service.binary == "nova-conductor");
    Poll {
        hosts: hosts
            .map(|service| Sign {
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
                conditions: [].into(),
            })
            .collect(),
        own: own.filter_map(|service| service.updated_at).max(),
    }
}
