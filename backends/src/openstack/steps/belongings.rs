//! What a fence has taken from a server that moves and that the server needs on its new host: its ports, and its volumes without a
//! reservation.

use std::time::Duration;

use crate::BackendError;
use ringfence_core::FrozenMethod;
use tokio::time::Instant;

use super::sight::Situation;
use crate::openstack::cinder::release_reserves_of;
use crate::openstack::host::HostOf;
use crate::openstack::neutron::release_ports_of;
use crate::openstack::{CINDER, NEUTRON};

/// Between two looks at the ports: Neutron takes long for each.
const PORTS_EVERY: Duration = Duration::from_secs(1);

/// What has to be released. No other method has taken anything.
pub(super) struct Belongings<'a> {
    ports_of: Option<HostOf<'a>>,
    volumes_of: Option<HostOf<'a>>,
    ports_next: Instant,
}

impl<'a> Belongings<'a> {
    /// The ports and volumes of a host's servers; Neutron and Cinder may know the host by other names.
    pub fn of(at: &HostOf<'a>, cut_off_by: &'a [FrozenMethod]) -> Self {
        let of = |driver: &str| {
            let by = cut_off_by.iter().find(|method| method.driver == driver)?;
            let host = by.parameters.get("host")?;
            Some(HostOf { host, ..*at })
        };
        Self {
            ports_of: of(NEUTRON),
            volumes_of: of(CINDER),
            ports_next: Instant::now(),
        }
    }

    /// Releases the ports that are no more bound to the host, before the server has arrived: Nova waits for the ports. Returns how many are
    /// left, as far as they were looked at.
    pub async fn release_ports(&mut self, server: &str, step: &Situation) -> Result<usize, BackendError> {
        let Some(at) = self.ports_of else { return Ok(0) };
        let is_due = Instant::now() >= self.ports_next;
        match step {
            Situation::Wait if is_due => {}
            Situation::Arrived(_) => {}
            Situation::Wait | Situation::Ask | Situation::Failed(_) => return Ok(0),
        }
        let left = release_ports_of(server, at).await?;
        self.ports_next = Instant::now() + PORTS_EVERY;
        Ok(left.err().unwrap_or(0))
    }

    /// What a server that has arrived still lacks.
    pub async fn left(&self, server: &str, ports: usize) -> Result<Option<String>, BackendError> {
        if ports > 0 {
            return Ok(Some(format!("{ports} of its ports are still down")));
        }
        let Some(at) = self.volumes_of else {
            return Ok(None);
        };
        let Some(server) = at.cloud.server(server).await? else {
            return Ok(None);
        };
        let is_clean = release_reserves_of(&server, at).await?;
        Ok((!is_clean).then(|| "its volumes are still reserved for it".to_owned()))
    }
}
