//! What Nova says of a host that is being emptied, read once for all who move its servers.
//!
//! Everybody who moves a server waits for its record, and Nova has to answer each question beside the evacuations themselves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ringfence_backends::BackendError;
use ringfence_backends::openstack::{ComputeService, Evacuation};
use tokio::time::Instant;

use crate::openstack::HostOf;

/// The looks at the hosts that somebody empties, by cloud and host.
#[derive(Default)]
pub(super) struct Looks(Mutex<HashMap<(String, String), Weak<HostLooks>>>);

/// What was seen last of one host. It lasts for as long as somebody who moves a server of the host keeps it.
#[derive(Default)]
pub(super) struct HostLooks {
    newest: Seen<Arc<Newest>>,
    service: Seen<Option<ComputeService>>,
}

struct Newest {
    /// The oldest first.
    evacuations: Vec<Evacuation>,
    are_all: bool,
}

/// What was seen, and when the look began. Whoever has the lock looks; the others wait for what comes of it.
struct Seen<T>(tokio::sync::Mutex<Option<(Instant, T)>>);

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self(tokio::sync::Mutex::new(None))
    }
}

impl Looks {
    /// Those of this host, the same for all who have it at the same time.
    pub fn of(&self, at: &HostOf<'_>) -> Arc<HostLooks> {
        self.of_place(at.cloud.name(), at.host)
    }

    fn of_place(&self, cloud: &str, host: &str) -> Arc<HostLooks> {
        let mut hosts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        hosts.retain(|_, host| host.strong_count() > 0);
        let place = hosts.entry((cloud.to_owned(), host.to_owned())).or_default();
        place.upgrade().unwrap_or_else(|| {
            let host = Arc::new(HostLooks::default());
            *place = Arc::downgrade(&host);
            host
        })
    }
}

impl HostLooks {
    /// The last evacuation of a server from the host as it was at `not_before`, or later.
    pub async fn last_evacuation(
        &self,
        at: &HostOf<'_>,
        server: &str,
        not_before: Instant,
    ) -> Result<Option<Evacuation>, BackendError> {
        let newest = self.newest.since(not_before, Newest::from(at)).await?;
        let mut of_server = newest.evacuations.iter().filter(|one| one.server == server);
        match of_server.next_back() {
            Some(last) => Ok(Some(last.clone())),
            None if newest.are_all => Ok(None),
            None => at.last_evacuation(server).await,
        }
    }

    /// The host's `nova-compute` as it is now.
    pub async fn service(&self, at: &HostOf<'_>) -> Result<Option<ComputeService>, BackendError> {
        self.service.since(Instant::now(), at.service()).await
    }
}

impl Newest {
    async fn from(at: &HostOf<'_>) -> Result<Arc<Self>, BackendError> {
        let (evacuations, are_all) = at.cloud.newest_evacuations_from(at.host).await?;
        Ok(Arc::new(Self { evacuations, are_all }))
    }
}

impl<T: Clone> Seen<T> {
    /// What a look that began at `not_before` or later has found.
    async fn since(
        &self,
        not_before: Instant,
        look: impl Future<Output = Result<T, BackendError>>,
    ) -> Result<T, BackendError> {
        let mut seen = self.0.lock().await;
        if let Some((begun, known)) = &*seen
            && *begun >= not_before
        {
            return Ok(known.clone());
        }
        let begun = Instant::now();
        let found = look.await?;
        *seen = Some((begun, found.clone()));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn those_who_come_while_somebody_looks_share_the_next_look() {
        let seen = Seen::default();
        let looks = AtomicU32::new(0);
        let may_end = Semaphore::new(0);
        let look = async || {
            let number = looks.fetch_add(1, Ordering::SeqCst);
            may_end.acquire().await.unwrap().forget();
            Ok(number)
        };
        let ask = async || seen.since(Instant::now(), look()).await.unwrap();
        let end = async |looks| may_end.add_permits(looks);
        // The first looks for itself. What it began before the others came is too old for them.
        let found = tokio::join!(biased; ask(), ask(), ask(), ask(), end(2));
        assert_eq!(found, (0, 1, 1, 1, ()));
        let before = Instant::now();
        may_end.add_permits(1);
        assert_eq!(ask().await, 2);
        assert_eq!(seen.since(before, look()).await.unwrap(), 2);
    }

    #[test]
    fn the_looks_at_a_host_are_shared_for_as_long_as_somebody_keeps_them() {
        let looks = Looks::default();
        let known = || looks.0.lock().unwrap().len();
        let first = looks.of_place("paris", "c1");
        let of_another_cloud = looks.of_place("oslo", "c1");
        assert!(Arc::ptr_eq(&first, &looks.of_place("paris", "c1")));
        assert!(!Arc::ptr_eq(&first, &of_another_cloud));
        assert_eq!(known(), 2);
        drop((first, of_another_cloud));
        drop(looks.of_place("paris", "c2"));
        assert_eq!(known(), 1);
    }
}
