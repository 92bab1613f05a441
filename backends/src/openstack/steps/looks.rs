//! What Nova says of a host that is being emptied, read once for all moves of its servers.
//!
//! Each move of a server waits for its record, and Nova has to answer each look beside the evacuations themselves. Moves that begin
//! together would otherwise each ask for what the others have just read, before the first evacuation begins.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};

use crate::BackendError;
use crate::openstack::{ComputeService, Evacuation, Server};
use tokio::time::Instant;

use super::sign::Sign;
use crate::openstack::host::HostOf;

/// The move that has the turn may use a look that is no older than this instead of a look of its own, if the look began after its attempt
/// did: as much time passes between a look of its own and Nova's handling of the request that follows.
const SAME_MOMENT: Duration = Duration::from_millis(250);
/// How long a server counts as it was listed. In less time no other request can move the server to another host and that host die and count
/// as down; Nova would evacuate the server from there, too. Nova itself refuses to evacuate a server that is deleted or runs elsewhere.
pub(in crate::openstack) const LISTED_FOR: Duration = Duration::from_secs(1);
/// How long the looks at a host are kept once no step of it runs.
const KEPT_FOR: Duration = Duration::from_secs(5);

/// The looks at the hosts that are being emptied, by cloud and host.
#[derive(Default)]
pub(in crate::openstack) struct Looks(Mutex<HashMap<(String, String), Kept>>);

struct Kept {
    host: Arc<HostLooks>,
    used_at: Instant,
}

/// The last looks at one host. They last as long as a step of the host runs, and a little longer: the step that lists the servers ends
/// before those that move them begin.
#[derive(Default)]
pub(in crate::openstack) struct HostLooks {
    newest: Seen<Arc<Newest>>,
    service: Seen<Option<ComputeService>>,
    listing: Mutex<Listing>,
    sign: Mutex<Option<Sign>>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// While the turn is held, no other move of this process asks for an evacuation from the host.
pub(in crate::openstack) type AskingTurn = tokio::sync::OwnedMutexGuard<()>;

/// Servers that no move has taken up since they were listed.
#[derive(Default)]
struct Listing {
    begun: Option<Instant>,
    servers: HashMap<String, Server>,
}

struct Newest {
    /// The oldest first.
    evacuations: Vec<Evacuation>,
    are_all: bool,
}

/// A result, and when its look began. The holder of the lock looks; the others wait for the result.
struct Seen<T>(tokio::sync::Mutex<Option<(Instant, T)>>);

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self(tokio::sync::Mutex::new(None))
    }
}

impl Looks {
    /// The looks at this host, shared by all steps of the host.
    pub fn of(&self, at: &HostOf<'_>) -> Arc<HostLooks> {
        self.of_place(at.cloud.name(), at.host, Instant::now())
    }

    fn of_place(&self, cloud: &str, host: &str, now: Instant) -> Arc<HostLooks> {
        let mut hosts = lock(&self.0);
        hosts.retain(|_, kept| Arc::strong_count(&kept.host) > 1 || now < kept.used_at + KEPT_FOR);
        let place = (cloud.to_owned(), host.to_owned());
        let kept = hosts.entry(place).or_insert_with(|| Kept {
            host: Arc::default(),
            used_at: now,
        });
        kept.used_at = now;
        Arc::clone(&kept.host)
    }
}

/// When the looks begin that count for an attempt that began at `begun`. A look from before the attempt may miss a request of the attempt
/// before it, which may have ended a moment ago in another worker.
pub(in crate::openstack) fn recent(begun: Instant) -> Instant {
    let moment_ago = Instant::now().checked_sub(SAME_MOMENT);
    moment_ago.map_or(begun, |moment_ago| moment_ago.max(begun))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl HostLooks {
    /// Whether the host's `nova-compute` has given a sign of life since the look before. One is enough to wait for the observers. An
    /// administrator's change is none.
    pub fn stirs(&self, service: &ComputeService) -> bool {
        let sign = Sign::of(service);
        let known = lock(&self.sign).replace(sign.clone());
        known.is_some_and(|known| sign.came_after(&known))
    }

    /// Keeps the servers of the host that a look has found, which began at `begun`.
    pub fn listed(&self, begun: Instant, servers: Vec<Server>) {
        let servers = servers.into_iter().map(|server| (server.id.clone(), server));
        *lock(&self.listing) = Listing {
            begun: Some(begun),
            servers: servers.collect(),
        };
    }

    /// A server as it was listed a moment ago, and when that look began. A server is returned once: a caller that asks again has changed
    /// the server since.
    pub fn take_listed(&self, id: &str, now: Instant) -> Option<(Instant, Server)> {
        let mut listing = lock(&self.listing);
        let begun = listing.begun?;
        if now > begun + LISTED_FOR {
            *listing = Listing::default();
        }
        Some((begun, listing.servers.remove(id)?))
    }

    /// Waits for the turn to ask for an evacuation. Requests that reach Nova at one moment reach Placement at one moment, where requests
    /// for one destination lock each other out; the request that loses is repeated after a second, and after two more.
    pub async fn turn(&self) -> AskingTurn {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// The last evacuation of a server from the host, read at `not_before` or later.
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

    /// The host's `nova-compute`, read at `not_before` or later.
    pub async fn service(
        &self,
        at: &HostOf<'_>,
        not_before: Instant,
    ) -> Result<Option<ComputeService>, BackendError> {
        self.service.since(not_before, at.service()).await
    }
}

impl Newest {
    async fn from(at: &HostOf<'_>) -> Result<Arc<Self>, BackendError> {
        let (evacuations, are_all) = at.cloud.newest_evacuations_from(at.host).await?;
        Ok(Arc::new(Self { evacuations, are_all }))
    }
}

impl<T: Clone> Seen<T> {
    /// The result of a look that began at `not_before` or later.
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

    use serde_json::json;
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn callers_who_come_during_a_look_share_the_next_one() {
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

    #[tokio::test]
    async fn one_at_a_time_has_the_turn_to_ask() {
        let looks = HostLooks::default();
        let first = looks.turn().await;
        let second = looks.turn();
        tokio::pin!(second);
        assert!(futures_util::poll!(&mut second).is_pending());
        drop(first);
        assert!(futures_util::poll!(&mut second).is_ready());
    }

    #[test]
    fn the_looks_at_a_host_are_shared_for_as_long_as_a_caller_keeps_them_and_a_little_longer() {
        let (looks, begun) = (Looks::default(), Instant::now());
        let known = || looks.0.lock().len();
        let first = looks.of_place("paris", "c1", begun);
        let of_another_cloud = looks.of_place("oslo", "c1", begun);
        assert!(Arc::ptr_eq(&first, &looks.of_place("paris", "c1", begun)));
        assert!(!Arc::ptr_eq(&first, &of_another_cloud));
        let later = begun + KEPT_FOR;
        drop(looks.of_place("paris", "c2", later));
        assert_eq!(known(), 3, "steps of the first two run");
        drop((first, of_another_cloud));
        drop(looks.of_place("paris", "c3", later + KEPT_FOR));
        assert_eq!(known(), 1);
    }

    #[test]
    fn what_was_seen_before_an_attempt_began_does_not_count_for_it() {
        let now = Instant::now();
        assert_eq!(recent(now), now, "however recent it is");
        let long_ago = now.checked_sub(SAME_MOMENT * 2).unwrap();
        let counts = recent(long_ago);
        assert!(counts > long_ago && counts >= now - SAME_MOMENT && counts <= Instant::now());
    }

    #[test]
    fn a_listed_server_is_given_away_once_and_only_for_a_moment() {
        let (looks, begun) = (HostLooks::default(), Instant::now());
        let server = |id: &str| -> Server {
            let told = json!({
                "id": id, "status": "ACTIVE", "OS-EXT-STS:vm_state": "active", "OS-EXT-STS:task_state": null,
                "OS-EXT-STS:power_state": 1, "OS-EXT-SRV-ATTR:host": "c1",
            });
            serde_json::from_value(told).unwrap()
        };
        let taken = |id: &str, now| looks.take_listed(id, now).map(|(_, server)| server.id);
        assert_eq!(taken("a", begun), None, "no look has listed servers");
        looks.listed(begun, vec![server("a"), server("b"), server("c")]);
        let end = begun + LISTED_FOR;
        assert_eq!(taken("a", end).as_deref(), Some("a"));
        assert_eq!(taken("a", end), None);
        assert_eq!(taken("b", end).as_deref(), Some("b"));
        assert_eq!(taken("c", end + Duration::from_millis(1)), None);
    }
}
