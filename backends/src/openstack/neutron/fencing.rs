//! Setting a host's ports down, and releasing them.

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::BackendError;
use crate::openstack::host::{AT_ONCE, Fenced, HostOf, PAUSE, ReadBack, is_hopeless};
use crate::openstack::{Cloud, Port};

/// The longest tag that Neutron takes, in characters.
const MAX_TAG_CHARS: usize = 60;
/// How all tags of Ringfence's begin.
const OURS: &str = "ringfence:";
/// The owner of ports that belong to Neutron's own services and to no server.
const OF_THE_NETWORK: &str = "network:";

/// The tag of a port that a fence sets down. The tag names the host that the port was on, so that the port is found on any host.
fn tag(host: &str) -> String {
    let tag = format!("{OURS}{host}");
    if tag.chars().count() <= MAX_TAG_CHARS {
        return tag;
    }
    // A shortened name could be the beginning of two host names; the id is one of the whole name.
    let id = Uuid::new_v5(&Uuid::NAMESPACE_URL, host.as_bytes());
    format!("{OURS}{id}")
}

/// Whether another host's fence keeps the port down as well, because its server went from one fenced host to another.
fn is_held_elsewhere(port: &Port, tag: &str) -> bool {
    port.tags
        .iter()
        .any(|other| other.starts_with(OURS) && other != tag)
}

impl HostOf<'_> {
    /// The ports of the host's servers; or why the answer cannot be believed. Neutron leaves out ports that the user may not see, without
    /// an error.
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

    /// Sends a change for every port, also for one that is down: another request under way may be about to set it up.
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

    /// Whether a port is up, or down only by another host's fence: that port also gets the tag of this fence.
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

    /// The tag is set first: a port that is down without a tag was set down by its owner, and stays down. The tag changes the port's
    /// revision, so the port is read again.
    async fn set_down(&self, port: &Port) -> Result<(), BackendError> {
        let tag = tag(self.host);
        if port.tags.contains(&tag) || !self.is_open(port) {
            self.cloud.set_port_up(port, false).await?;
        } else {
            self.cloud.tag_port(&port.id, &tag).await?;
        }
        Ok(())
    }

    /// Releases all ports that were set down, on any host. A port that is still down is set up, and then loses the tag.
    ///
    /// # Errors
    /// Neutron is away, or refuses.
    pub async fn release_ports(&self) -> Result<Fenced, BackendError> {
        // An empty listing of a user who may not see ports does not show that no port is left.
        if let Err(why) = self.ports().await? {
            return Ok(Fenced::No(why));
        }
        let mut count = 0;
        let mut trouble = None;
        loop {
            let from = Instant::now();
            let ports = self.cloud.ports_tagged(&tag(self.host)).await?;
            if ports.is_empty() {
                let detail = format!("{count} ports of {} were released", self.host);
                return Ok(Fenced::So(ReadBack::new(detail, from)));
            }
            if !self.has_time() || trouble.as_ref().is_some_and(is_hopeless) {
                let why = trouble.map_or_else(String::new, |why| format!(": {why}"));
                let left = ports.len();
                return Ok(Fenced::NotYet(format!(
                    "{left} ports of {} are not released{why}",
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

    /// Some ports at a time. The first error is returned, and does not stop the calls for the other ports.
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

/// One step: set up, or without the tag. A port that has changed since it was read is read again before the next step.
async fn release(cloud: &Cloud, port: &Port, host: &str) -> Result<(), BackendError> {
    if port.is_up || is_held_elsewhere(port, &tag(host)) {
        cloud.untag_port(&port.id, &tag(host)).await
    } else {
        cloud.set_port_up(port, true).await.map(|_| ())
    }
}

/// Releases the ports of a server that has left the host, as soon as they are bound to another host: on the host they stay down. `Err`
/// holds how many are left.
pub(crate) async fn release_ports_of(
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
