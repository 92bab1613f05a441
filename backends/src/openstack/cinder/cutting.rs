//! Cutting a host off from the volumes of its servers.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::Trust;
use super::held::{Held, HeldVolume};
use crate::BackendError;
use crate::openstack::host::{AT_ONCE, Fenced, HostOf, PAUSE, ReadBack, is_hopeless};

impl HostOf<'_> {
    /// Disconnects the host from every volume of its servers, and repeats until no connection is left. A volume that an earlier attempt has
    /// cut has no connection to end, and the attempt is granted only after whatever might connect it again.
    ///
    /// # Errors
    /// Nova or Cinder is away, or refuses.
    pub async fn cut_off(&self, trust: &Trust<'_>) -> Result<Fenced, BackendError> {
        if let Some(why) = self.is_unknown().await? {
            return Ok(Fenced::No(why));
        }
        let mut trouble: Option<BackendError> = None;
        loop {
            let from = Instant::now();
            let held = self.held().await?;
            let connected: Vec<&HeldVolume> = held.volumes.iter().filter(|v| v.is_connected()).collect();
            if connected.is_empty() && held.leaving.is_empty() {
                return self.is_cut_off(&held, from, trust).await;
            }
            if !self.has_time() || trouble.as_ref().is_some_and(is_hopeless) {
                return Ok(Fenced::NotYet(still_connected(&held, connected.len(), trouble)));
            }
            trouble = self.cut_all(&connected).await;
            if trouble.is_some() || connected.is_empty() {
                sleep(PAUSE).await;
            }
        }
    }

    async fn cut_all(&self, connected: &[&HeldVolume]) -> Option<BackendError> {
        let mut trouble = None;
        for some in connected.chunks(AT_ONCE) {
            let cut = join_all(some.iter().map(|volume| self.cut(volume))).await;
            trouble = trouble.or_else(|| cut.into_iter().find_map(Result::err));
        }
        trouble
    }

    /// Reserves the volume before it is disconnected, so that it is free at no time.
    pub(super) async fn cut(&self, held: &HeldVolume) -> Result<(), BackendError> {
        if !held.has_our_reserve() {
            self.cloud.reserve(&held.volume.volume, &held.server.id).await?;
        }
        for attachment in held.connected() {
            self.cloud.disconnect(&attachment.id).await?;
        }
        Ok(())
    }

    async fn is_cut_off(
        &self,
        held: &Held,
        from: Instant,
        trust: &Trust<'_>,
    ) -> Result<Fenced, BackendError> {
        let detail = format!(
            "{} is connected to none of the {} volumes of its {} servers",
            self.host,
            held.volumes.len(),
            held.servers.len()
        );
        Ok(match self.doubt(held, trust).await? {
            None => Fenced::So(ReadBack::new(detail, from)),
            Some(doubt) => Fenced::OnPaper(ReadBack::new(format!("{detail}; no proof: {doubt}"), from)),
        })
    }

    /// The first reason why the cut is no proof.
    async fn doubt(&self, held: &Held, trust: &Trust<'_>) -> Result<Option<String>, BackendError> {
        if trust.backends.is_empty() {
            return Ok(Some("the method trusts no backend".to_owned()));
        }
        let own = held.servers.iter().find(|server| server.disks.any());
        if let Some(server) = own.filter(|_| !trust.local_disks) {
            return Ok(Some(format!(
                "server {} has a disk that is no volume, and the method does not say local_disks",
                server.name
            )));
        }
        // Only a disconnection by Ringfence is certain: records can be deleted without telling the storage, and Nova's own reserved
        // attachment can be connected at any later time.
        if let Some(volume) = held.volumes.iter().find(|volume| !volume.has_our_reserve()) {
            return Ok(Some(format!("Ringfence has not disconnected {}", volume.name())));
        }
        let volumes: BTreeSet<&str> = held.volumes.iter().map(|v| v.volume.volume.as_str()).collect();
        for id in volumes {
            let volume = self.cloud.volume(id).await?;
            let backend = volume.as_ref().and_then(|volume| volume.backend());
            if !backend.is_some_and(|backend| trust.backends.contains(&backend)) {
                let backend = backend.unwrap_or("(not shown by cinder)");
                return Ok(Some(format!(
                    "volume {id} is on backend {backend}, which the method does not trust"
                )));
            }
        }
        Ok(None)
    }
}

fn still_connected(held: &Held, connected: usize, trouble: Option<BackendError>) -> String {
    let mut detail = format!("connected to {connected} of {} volumes", held.volumes.len());
    if !held.leaving.is_empty() {
        detail += &format!("; nova is evacuating {}", held.leaving.join(", "));
    }
    if let Some(trouble) = trouble {
        detail += &format!("; {trouble}");
    }
    detail
}
