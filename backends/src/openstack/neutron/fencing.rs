//! Setting a host's ports down, and giving them back.

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::BackendError;
use crate::openstack::host::{AT_ONCE, Fenced, HostOf, PAUSE, ReadBack, is_hopeless};
use crate::openstack::{Cloud, Port};

/// The longest tag that Neutron takes, in characters.
const MAX_TAG_CHARS: usize = 60;
/// What all marks of ours begin with.
const OURS: &str = "ringfence:";
/// Ports of Neutron's own services: of no server.
const OF_THE_NETWORK: &str = "network:";

/// What a port is marked with before it is set down. It names the host that the port was on, so that it is found wherever it goes.
fn tag(host: &str) -> String {
    let tag = format!("{OURS}{host}");
    if tag.chars().count() <= MAX_TAG_CHARS {
        return tag;
    }
    // Two long names that begin alike are two hosts.
    let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, host.as_bytes());
    format!("{OURS}{id}")
}

/// Whether another host's fence keeps the port down as well: its server went from one fenced host to another.
fn is_held_elsewhere(port: &Port, tag: &str) -> bool {
    port.tags
        .iter()
        .any(|other| other.starts_with(OURS) && other != tag)
}

impl HostOf<'_> {
    /// The ports of the host's servers. Neutron leaves out what its caller may not see without saying so: the answer says why none of it
    /// can be believed.
    ///
    /// # Errors
    /// Neutron is away, or refuses.
    pub async fn ports(&self) -> Result<Result<Vec<Port>, String>, BackendError> {
        let why = |what: &str| {
            format!(
                "neutron of cloud {} shows {what} of host {}: the name is another one there, or the user's role does not suffice; admin does",
                self.cloud.name(),
                self.host
            )
        };
        let mut ports = self.cloud.ports_on(self.host).await?;
        if ports.iter().any(|port| port.host.as_deref() != Some(self.host)) {
            return Ok(Err(why("ports without telling which are those")));
        }
        if self.cloud.network_agents(self.host).await? == 0 {
            return Ok(Err(why("no agent")));
        }
        ports.retain(|port| !port.device_owner.starts_with(OF_THE_NETWORK));
        Ok(Ok(ports))
    }

    /// Every port is told once, also one that is down: a request of another that is under way may be about to set it up.
    ///
    /// # Errors
    /// Neutron is away, or refuses.
    pub async fn set_ports_down(&self, is_trusted: bool) -> Result<Fenced, BackendError> {
        let mut trouble = None;
        let (mut has_begun, mut are_told) = (false, false);
        loop {
            let from = Instant::now();
            let ports = match self.ports().await? {
                Ok(ports) => ports,
                Err(why) if has_begun => return Ok(Fenced::NotYet(why)),
                Err(why) => return Ok(Fenced::No(why)),
            };
            let open: Vec<&Port> = ports.iter().filter(|port| self.is_open(port)).collect();
            if open.is_empty() && are_told {
                return Ok(self.are_down(&ports, from, is_trusted));
            }
            if !self.has_time() || trouble.as_ref().is_some_and(is_hopeless) {
                let why = trouble.map_or_else(String::new, |why| format!(": {why}"));
                return Ok(Fenced::NotYet(format!(
                    "{} ports of {} are up{why}",
                    open.len(),
                    self.host
                )));
            }
            let to_tell = if are_told { open } else { ports.iter().collect() };
            has_begun = true;
            trouble = self.all(&to_tell, |port| self.set_down(port)).await;
            are_told |= trouble.is_none();
            if trouble.is_some() {
                sleep(PAUSE).await;
            }
        }
    }

    /// Whether a port is up, or down by another host's fence alone: that one is held by this fence too.
    fn is_open(&self, port: &Port) -> bool {
        let tag = tag(self.host);
        port.is_up || (is_held_elsewhere(port, &tag) && !port.tags.contains(&tag))
    }

    fn are_down(&self, ports: &[Port], from: Instant, is_trusted: bool) -> Fenced {
        let detail = format!("all {} ports of {} are down", ports.len(), self.host);
        if is_trusted {
            return Fenced::So(ReadBack::new(detail, from));
        }
        Fenced::OnPaper(ReadBack::new(
            format!("{detail}; no proof, since the method is not trusted"),
            from,
        ))
    }

    /// The tag first: a port that is down without it is its owner's, and stays so. The tag counts as a change of the port, so that it is
    /// read again.
    async fn set_down(&self, port: &Port) -> Result<(), BackendError> {
        let tag = tag(self.host);
        if port.tags.contains(&tag) || !self.is_open(port) {
            self.cloud.set_port_up(port, false).await?;
        } else {
            self.cloud.tag_port(&port.id, &tag).await?;
        }
        Ok(())
    }

    /// All that were set down, wherever they are now. Those that are still down are set up; then the tag goes.
    ///
    /// # Errors
    /// Neutron is away, or refuses.
    pub async fn give_ports_back(&self) -> Result<Fenced, BackendError> {
        // A listing in which nothing may be seen is no sign that nothing is left.
        if let Err(why) = self.ports().await? {
            return Ok(Fenced::No(why));
        }
        let mut count = 0;
        let mut trouble = None;
        loop {
            let from = Instant::now();
            let ports = self.cloud.ports_tagged(&tag(self.host)).await?;
            if ports.is_empty() {
                let detail = format!("{count} ports of {} were given back", self.host);
                return Ok(Fenced::So(ReadBack::new(detail, from)));
            }
            if !self.has_time() || trouble.as_ref().is_some_and(is_hopeless) {
                let why = trouble.map_or_else(String::new, |why| format!(": {why}"));
                let left = ports.len();
                return Ok(Fenced::NotYet(format!(
                    "{left} ports of {} are not given back{why}",
                    self.host
                )));
            }
            count = count.max(ports.len());
            let ports: Vec<&Port> = ports.iter().collect();
            trouble = self
                .all(&ports, |port| release(self.cloud, port, self.host))
                .await;
            if trouble.is_some() {
                sleep(PAUSE).await;
            }
        }
    }

    /// Some at a time; the first that fails is told, and keeps no other from being tried.
    async fn all<'p, F>(&self, ports: &[&'p Port], each: impl Fn(&'p Port) -> F) -> Option<BackendError>
    where
        F: Future<Output = Result<(), BackendError>>,
    {
        let mut trouble = None;
        for some in ports.chunks(AT_ONCE) {
            let done = join_all(some.iter().map(|port| each(port))).await;
            trouble = trouble.or_else(|| done.into_iter().find_map(Result::err));
        }
        trouble
    }
}

/// One step: up, or without the tag. What has changed since it was read is read again before the next one.
async fn release(cloud: &Cloud, port: &Port, host: &str) -> Result<(), BackendError> {
    if port.is_up || is_held_elsewhere(port, &tag(host)) {
        cloud.untag_port(&port.id, &tag(host)).await
    } else {
        cloud.set_port_up(port, true).await.map(|_| ())
    }
}

/// The ports of a server that has left the host, as soon as they have left it too: on the host they stay down. `Err` says how many are
/// left.
pub(crate) async fn give_back_ports_of(
    server: &str,
    at: HostOf<'_>,
) -> Result<Result<(), usize>, BackendError> {
    loop {
        let ports = at.cloud.ports_of(server, &tag(at.host)).await?;
        if ports.is_empty() {
            return Ok(Ok(()));
        }
        let free: Vec<&Port> = ports
            .iter()
            .filter(|port| port.host.as_deref() != Some(at.host))
            .collect();
        if free.is_empty() || !at.has_time() {
            return Ok(Err(ports.len()));
        }
        if let Some(error) = at.all(&free, |port| release(at.cloud, port, at.host)).await {
            return Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_never_longer_than_neutron_takes() {
        assert_eq!(tag("compute1"), "ringfence:compute1");
        let (one, other) = ("x".repeat(254) + "a", "x".repeat(254) + "b");
        assert!(tag(&one).chars().count() <= MAX_TAG_CHARS);
        assert_ne!(tag(&one), tag(&other));
    }
}
