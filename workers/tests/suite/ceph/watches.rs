//! Images of a real Ceph that hosts keep open.

use std::collections::BTreeMap;
use std::time::Duration;

use ringfence_core::{FrozenMethod, Heartbeat, ObservedState, Resource};
use ringfence_lab::Ceph;
use ringfence_workers::{DriverSettings, Drivers, Secrets, WorkerError};

use super::{cluster, keyring, programs};
use crate::{clock, method, seconds};

/// The host of the client.
const HOST: &str = Ceph::ADDRESS;

/// What a worker has of a cluster whose image `alive` hosts keep open.
struct Worker {
    drivers: Drivers,
    method: FrozenMethod,
    secrets: Secrets,
}

impl Worker {
    fn of(ceph: &Ceph) -> Self {
        ceph.make_image("alive").unwrap();
        let conf = ceph.conf();
        let parameters = [
            ("pool", Ceph::POOL),
            ("images", "alive"),
            ("conf", conf.to_str().unwrap()),
            ("user", Ceph::READING_USER),
            ("watch_timeout_s", Ceph::WATCH_TIMEOUT_S),
        ];
        let settings = DriverSettings {
            ceph: ceph.program(),
            ..DriverSettings::new(clock())
        };
        let own = std::fs::read_to_string(ceph.reading_keyring_file().unwrap()).unwrap();
        Self {
            drivers: Drivers::new(&settings),
            method: method("rbd-watch", Resource::Heartbeat, &parameters),
            secrets: keyring(&own),
        }
    }

    async fn read(&self, hosts: &[&str]) -> Result<BTreeMap<String, Heartbeat>, WorkerError> {
        let hosts: Vec<String> = hosts.iter().copied().map(str::to_owned).collect();
        let driver = self.drivers.get(&self.method.driver).unwrap();
        driver
            .heartbeats(&self.method, &self.secrets, &hosts, seconds(5))
            .await
    }

    async fn host(&self) -> Result<Heartbeat, WorkerError> {
        let mut read = self.read(&[HOST]).await?;
        Ok(read.remove(HOST).unwrap())
    }

    async fn fails(&self, words: &str) {
        let why = self.host().await.unwrap_err().to_string();
        assert!(why.contains(words), "{why}");
    }

    /// Reads as an engine does, until it is so, and returns what was read before that.
    async fn until(&self, is_so: impl Fn(&Heartbeat) -> bool) -> Vec<Result<Heartbeat, WorkerError>> {
        let mut before = Vec::new();
        loop {
            let read = self.host().await;
            if read.as_ref().is_ok_and(&is_so) {
                return before;
            }
            assert!(before.len() < 200, "{before:?}");
            before.push(read);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

fn is_heard(heartbeat: &Heartbeat) -> bool {
    matches!(heartbeat, Heartbeat::Heard { .. })
}

fn is_unheard(heartbeat: &Heartbeat) -> bool {
    *heartbeat == Heartbeat::Unheard
}

#[track_caller]
fn assert_unclear(heartbeat: &Heartbeat, words: &str) {
    let Heartbeat::Unclear { why } = heartbeat else {
        panic!("{heartbeat:?}");
    };
    assert!(why.contains(words), "{why}");
}

#[tokio::test]
async fn a_host_that_keeps_an_image_open_is_heard_until_its_client_is_killed() {
    let ceph = cluster();
    let mut worker = Worker::of(&ceph);
    assert!(is_unheard(&worker.host().await.unwrap()));
    let client = ceph.open_image("alive").unwrap();
    let soon = worker.until(is_heard).await;
    for read in &soon {
        assert_unclear(read.as_ref().unwrap(), "a watch counts once osd.0 have served");
    }
    let heard = worker.host().await.unwrap();
    let Heartbeat::Heard { by, within_s } = &heard else {
        panic!("{heard:?}");
    };
    assert!(by.contains("at 127.0.0.1 has volumes/alive open"), "{by}");
    assert_eq!(*within_s, 18);
    let read = worker
        .read(&["192.0.2.7", "h1", HOST, "127.0.0.0/28"])
        .await
        .unwrap();
    assert!(is_unheard(&read["192.0.2.7"]));
    assert_unclear(&read["h1"], "give them with the host");
    assert_unclear(&read[HOST], "another host has one of its addresses");

    // What a check shows.
    let driver = worker.drivers.get("rbd-watch").unwrap();
    let mut of_host = worker.method.clone();
    of_host.parameters.insert("host".to_owned(), HOST.to_owned());
    let seen = driver
        .observe(&of_host, &worker.secrets, seconds(5))
        .await
        .unwrap();
    assert_eq!(seen.state, ObservedState::Readable);
    assert!(seen.detail.contains("within 18 s: client."), "{}", seen.detail);

    drop(client);
    let last = worker.until(is_unheard).await;
    assert!(
        last.iter().all(|read| is_heard(read.as_ref().unwrap())),
        "{last:?}"
    );

    ceph.ceph(&["osd", "set", "norecover"]).unwrap();
    let _client = ceph.open_image("alive").unwrap();
    assert_unclear(&worker.host().await.unwrap(), "norecover is set");

    ceph.silence().unwrap();
    worker.fails("was killed").await;
    ceph.wake().unwrap();
    let mut other = |name: &str, value: &str| {
        let own = worker.method.parameters.insert(name.to_owned(), value.to_owned());
        own.unwrap()
    };
    let images = other("images", "alive,nosuch");
    worker.fails("rbd_id.nosuch: (2) No such file").await;
    let mut other =
        |name: &str, value: &str| worker.method.parameters.insert(name.to_owned(), value.to_owned());
    other("images", &images);
    other("user", "client.nosuch");
    worker.fails("rados failed").await;
}

/// Another OSD gives a watch that is on record the whole time once more. By then the host may be FENCED.
#[tokio::test]
async fn a_host_that_dies_with_the_osd_of_its_image_is_heard_no_more() {
    let mut ceph = Ceph::start_on(&programs(), &["a", "b"]).unwrap();
    let worker = Worker::of(&ceph);
    let client = ceph.open_image("alive").unwrap();
    worker.until(is_heard).await;
    let osd = ceph.osd_of("alive").unwrap();
    drop(client);
    ceph.kill_osd(osd);

    let read = worker.until(is_unheard).await;

    assert!(ceph.is_down(osd).unwrap());
    let read: Vec<_> = read.into_iter().flatten().collect();
    let of_other = read.iter().filter(
        |read| matches!(read, Heartbeat::Unclear { why } if why.contains("has volumes/alive open, and a watch counts once")),
    );
    assert_eq!(of_other.count(), read.len(), "{read:?}");
    assert!(!read.is_empty());
}
