//! Forcing the `nova-compute` of a host down, and opening it to servers.

use crate::BackendError;
use crate::openstack::ComputeService;
use tokio::time::sleep;

use super::{Done, REASON};
use crate::openstack::host::{HostOf, PAUSE};

impl HostOf<'_> {
    pub(super) async fn service(&self) -> Result<Option<ComputeService>, BackendError> {
        self.cloud.compute_service(self.host).await
    }

    pub(super) fn unknown_host(&self) -> Done {
        Done::No(
            format!("nova of cloud {} knows no host {}", self.cloud.name(), self.host),
            None,
        )
    }

    /// A service that an administrator has disabled stays disabled, with its reason.
    pub(super) async fn force_down(&self) -> Result<Done, BackendError> {
        let Some(service) = self.service().await? else {
            return Ok(self.unknown_host());
        };
        if is_out_of_use(&service) {
            return Ok(self.out_of_use());
        }
        if service.is_enabled() {
            self.cloud.force_down(&service.id, REASON).await?;
        } else {
            self.cloud.force_down_only(&service.id).await?;
        }
        Ok(match self.service().await? {
            Some(service) if is_out_of_use(&service) => self.out_of_use(),
            Some(service) => Done::NotYet(
                format!("{} reads as {}, {}", self.host, service.state, service.status),
                None,
            ),
            None => self.unknown_host(),
        })
    }

    fn out_of_use(&self) -> Done {
        Done::So(format!("{} is forced down and disabled", self.host))
    }

    /// Opens a spare host, only while it is alive.
    pub(super) async fn add_spare(&self) -> Result<Done, BackendError> {
        let Some(service) = self.service().await? else {
            return Ok(self.unknown_host());
        };
        if !service.is_up() || service.forced_down {
            return Ok(Done::No(format!("the spare host {} is down", self.host), None));
        }
        if service.disabled_reason.as_deref() == Some(REASON) {
            let why = format!(
                "the spare host {} is fenced itself, or is being taken back",
                self.host
            );
            return Ok(Done::No(why, None));
        }
        if !service.is_enabled() {
            self.cloud.enable(&service.id).await?;
        }
        self.until_open().await
    }

    /// Nova knows at once that the service is enabled; Placement learns it from the host itself.
    pub(super) async fn until_open(&self) -> Result<Done, BackendError> {
        loop {
            let service = self.service().await?;
            let is_enabled = service.is_some_and(|service| service.is_up() && service.is_enabled());
            let is_kept_away = self.cloud.is_kept_away(self.host).await?;
            if is_enabled && !is_kept_away {
                return Ok(Done::So(format!(
                    "{} is up, enabled and open in Placement",
                    self.host
                )));
            }
            if !self.has_time() {
                let why = if is_enabled {
                    "Placement still keeps servers away from it"
                } else {
                    "it is not up and enabled"
                };
                return Ok(Done::NotYet(format!("{}: {why}", self.host), None));
            }
            sleep(PAUSE).await;
        }
    }
}

fn is_out_of_use(service: &ComputeService) -> bool {
    service.forced_down && !service.is_enabled()
}
