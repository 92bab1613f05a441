//! Taking a host back by Nova's rules.

use crate::BackendError;
use crate::openstack::{ComputeService, EvacuationStatus, Server, with_remains};
use tokio::time::sleep;

use super::Done;
use crate::openstack::host::{HostOf, PAUSE};

impl HostOf<'_> {
    /// Waits until `nova-compute` has destroyed the remains of evacuated servers, which it does when it starts and notes in Nova's records.
    pub(super) async fn clean_up(&self) -> Result<Done, BackendError> {
        loop {
            let left = self.not_over().await?;
            if left == 0 {
                return Ok(Done::So(format!(
                    "no remains of evacuated servers are on {}",
                    self.host
                )));
            }
            if !self.has_time() {
                return Ok(Done::NotYet(
                    format!(
                        "{left} evacuated servers are not cleaned up; nova-compute on {} does that when it starts",
                        self.host
                    ),
                    None,
                ));
            }
            sleep(PAUSE).await;
        }
    }

    /// Right after the service is no more forced down, "up" could rest on the sign of life from before the host died: a newer one has to
    /// come.
    pub(super) async fn force_up(&self) -> Result<Done, BackendError> {
        let Some(before) = self.service().await? else {
            return Ok(self.unknown_host());
        };
        let mut known = before.updated_at;
        loop {
            let Some(service) = self.service().await? else {
                return Ok(self.unknown_host());
            };
            let is_fresh = service.updated_at > known;
            if is_fresh && service.forced_down {
                if let Some(done) = self.unless_remains().await? {
                    return Ok(done);
                }
                self.cloud.force_up(&service.id).await?;
                // Nova stores this change in the field of the last sign of life: the next one counts.
                known = self
                    .service()
                    .await?
                    .and_then(|service| service.updated_at)
                    .max(service.updated_at);
                continue;
            }
            if is_fresh && !service.forced_down && service.is_up() {
                return Ok(Done::So(format!(
                    "{} is up, with a sign of life of {}",
                    self.host,
                    at(&service)
                )));
            }
            if !self.has_time() {
                let why = if is_fresh {
                    "nova does not take it for up"
                } else {
                    "it has given no sign of life"
                };
                return Ok(Done::NotYet(format!("{}: {why}", self.host), None));
            }
            sleep(PAUSE).await;
        }
    }

    /// Evacuations whose remains are still on the host, or that Nova is still carrying out. A `nova-compute` that starts in the middle of
    /// an evacuation marks it completed, although the server is not elsewhere yet.
    async fn not_over(&self) -> Result<usize, BackendError> {
        let evacuations = self.cloud.evacuations_from(self.host).await?;
        let left = with_remains(&evacuations);
        if left > 0 || evacuations.is_empty() {
            return Ok(left);
        }
        let servers = self.cloud.servers_on(self.host).await?;
        let is_on_its_way = |server: &&Server| {
            let mut of_server = evacuations.iter().filter(|one| one.server == server.id);
            let last = of_server.next_back();
            server.is_rebuilding() && last.is_some_and(|last| last.status != EvacuationStatus::Failed)
        };
        Ok(servers.iter().filter(is_on_its_way).count())
    }

    /// Nova's own check covers only evacuations that are done.
    async fn unless_remains(&self) -> Result<Option<Done>, BackendError> {
        let left = self.not_over().await?;
        let why = format!("{left} evacuations from {} are not over", self.host);
        Ok((left > 0).then_some(Done::NotYet(why, None)))
    }
}

fn at(service: &ComputeService) -> String {
    service
        .updated_at
        .map_or_else(|| "unknown time".to_owned(), |at| at.format("%FT%TZ").to_string())
}
