//! The volumes of a host's servers, and the attachments of each.

use futures_util::future::try_join_all;

use crate::BackendError;
use crate::openstack::host::{AT_ONCE, HostOf};
use crate::openstack::{Attachment, Evacuation, Server, ServerVolume};

/// How many volumes the servers of a host have.
#[derive(Clone, Copy, Debug)]
pub struct HeldVolumes {
    /// All volumes.
    pub all: usize,
    /// The volumes that the host is connected to.
    pub connected: usize,
}

/// The volumes of a host's servers, and the servers that are leaving.
pub(super) struct Held {
    pub servers: Vec<Server>,
    pub volumes: Vec<HeldVolume>,
    /// Names of servers that Nova is moving away from the host: their attachments will soon be another host's.
    pub leaving: Vec<String>,
}

/// One volume of one server.
pub(super) struct HeldVolume {
    pub server: Server,
    pub volume: ServerVolume,
    /// Cinder's attachments of the volume for the server.
    pub attachments: Vec<Attachment>,
}

impl HeldVolume {
    /// The attachments that connect a host, or may connect one.
    pub fn connected(&self) -> impl Iterator<Item = &Attachment> {
        self.attachments.iter().filter(|a| !a.is_reserve())
    }

    pub fn is_connected(&self) -> bool {
        self.connected().next().is_some()
    }

    /// Whether the attachment that Nova has on record exists: with it no other server can take the volume.
    pub fn is_kept_by_nova(&self) -> bool {
        let known = self.volume.attachment_id.as_deref();
        self.attachments.iter().any(|a| Some(a.id.as_str()) == known)
    }

    /// Attachments that reserve the volume for its server and that Nova does not know.
    pub fn our_reserves(&self) -> impl Iterator<Item = &Attachment> {
        let known = self.volume.attachment_id.as_deref();
        self.attachments
            .iter()
            .filter(move |a| a.is_reserve() && Some(a.id.as_str()) != known)
    }

    pub fn has_our_reserve(&self) -> bool {
        self.our_reserves().next().is_some()
    }

    pub fn name(&self) -> String {
        format!("{} of {}", self.volume.volume, self.server.name)
    }
}

impl HostOf<'_> {
    /// Why the answers about the host cannot be believed; `None` if they can. For a host that Nova does not know, it lists no servers,
    /// without an error.
    pub(super) async fn is_unknown(&self) -> Result<Option<String>, BackendError> {
        let service = self.cloud.compute_service(self.host).await?;
        let why = || format!("nova of cloud {} knows no host {}", self.cloud.name(), self.host);
        Ok(service.is_none().then(why))
    }

    /// How many volumes the host's servers have, and how many of those the host is connected to; or why the answer cannot be believed.
    ///
    /// # Errors
    /// Nova or Cinder is away, or refuses.
    pub async fn volumes(&self) -> Result<Result<HeldVolumes, String>, BackendError> {
        if let Some(why) = self.is_unknown().await? {
            return Ok(Err(why));
        }
        let held = self.held().await?;
        let connected = held.volumes.iter().filter(|volume| volume.is_connected());
        Ok(Ok(HeldVolumes {
            all: held.volumes.len(),
            connected: connected.count(),
        }))
    }

    /// All volumes of the host's servers. Evacuations are read last: an evacuation that begins later gives its server attachments that are
    /// not in this answer, so that the answer holds no attachment that connects another host.
    pub(super) async fn held(&self) -> Result<Held, BackendError> {
        let servers = self.cloud.servers_on(self.host).await?;
        let mut volumes = Vec::new();
        for some in servers.chunks(AT_ONCE) {
            let of = some.iter().map(|server| self.volumes_of(server));
            volumes.extend(try_join_all(of).await?.into_iter().flatten());
        }
        let leaving = leaving(&self.cloud.evacuations_from(self.host).await?);
        let is_leaving = |server: &Server| leaving.contains(&server.id);
        volumes.retain(|volume: &HeldVolume| !is_leaving(&volume.server));
        let (gone, servers): (Vec<Server>, Vec<Server>) = servers.into_iter().partition(is_leaving);
        Ok(Held {
            servers,
            volumes,
            leaving: gone.into_iter().map(|server| server.name).collect(),
        })
    }

    pub(super) async fn volumes_of(&self, server: &Server) -> Result<Vec<HeldVolume>, BackendError> {
        let mut held = Vec::new();
        for volume in self.cloud.volumes_of(&server.id).await? {
            held.push(HeldVolume {
                server: server.clone(),
                attachments: self.cloud.attachments(&volume.volume, &server.id).await?,
                volume,
            });
        }
        Ok(held)
    }
}

/// Servers whose last evacuation is under way, or has just ended.
fn leaving(oldest_first: &[Evacuation]) -> Vec<String> {
    let mut leaving: Vec<String> = Vec::new();
    for evacuation in oldest_first {
        leaving.retain(|server| *server != evacuation.server);
        if evacuation.status.leaves_remains() {
            leaving.push(evacuation.server.clone());
        }
    }
    leaving
}

#[cfg(test)]
mod tests {
    use crate::openstack::EvacuationStatus;

    use super::*;

    fn evacuation(server: &str, status: EvacuationStatus) -> Evacuation {
        Evacuation {
            id: 1,
            server: server.to_owned(),
            status,
            from: None,
            to: None,
            created_at: None,
        }
    }

    #[test]
    fn the_last_evacuation_of_a_server_says_whether_it_is_leaving() {
        let all = [
            evacuation("failed-then-again", EvacuationStatus::Failed),
            evacuation("once", EvacuationStatus::PreMigrating),
            evacuation("came-back", EvacuationStatus::Completed),
            evacuation("failed-then-again", EvacuationStatus::Accepted),
            evacuation("gave-up", EvacuationStatus::PreMigrating),
            evacuation("gave-up", EvacuationStatus::Failed),
        ];
        assert_eq!(leaving(&all), ["once", "failed-then-again"]);
    }
}
