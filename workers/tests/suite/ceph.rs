//! A real Ceph cuts a host off and lets it in again.

mod watches;

use std::path::PathBuf;
use std::sync::Arc;

use ringfence_core::{CephSurvey, FencingKind, FrozenMethod, ObservedState, Outcome, Resource};
use ringfence_lab::{Ceph, CephPrograms, CephWriter};
use ringfence_workers::{
    Ceph as CephDriver, Clock, Driver, DriverSettings, HostInStorage, Report, Secrets, WorkerError,
};

use crate::{assert_confirmed, assert_outcome, clock, method, seconds, seen};

/// Addresses of a host that has more than that of the clients, all of them for documentation.
const SEVERAL: &str = "127.0.0.1,192.0.2.16/28,2001:db8::7";

fn cluster() -> Ceph {
    Ceph::start(&programs()).unwrap()
}

pub fn programs() -> CephPrograms {
    CephPrograms::from_environment()
        .expect("RINGFENCE_TEST_CEPH is not set; run this through `cargo xtask test` or `cargo xtask lab`")
}

fn driver(program: PathBuf, clock: Clock) -> CephDriver {
    CephDriver::new(&DriverSettings {
        ceph: program,
        ..DriverSettings::new(clock)
    })
}

/// What a worker has of a cluster.
struct Worker {
    driver: CephDriver,
    method: FrozenMethod,
    secrets: Secrets,
}

impl Worker {
    fn of(ceph: &Ceph, addresses: &str) -> Self {
        let conf = ceph.conf();
        let parameters = [("addresses", addresses), ("conf", conf.to_str().unwrap())];
        Self {
            driver: driver(ceph.program(), clock()),
            method: method("ceph", Resource::Storage, &parameters),
            secrets: keyring(&ceph.keyring().unwrap()),
        }
    }

    async fn act(&self, kind: FencingKind, budget_s: u64) -> Report {
        let budget = seconds(budget_s);
        self.driver
            .act_and_observe(kind, &self.method, &self.secrets, budget)
            .await
    }

    async fn fence(&self) -> Report {
        self.act(FencingKind::StorageFence, 30).await
    }

    async fn release(&self) -> Report {
        self.act(FencingKind::StorageUnfence, 30).await
    }

    async fn survey(&self, host: &str, gone: &[&str]) -> Result<CephSurvey, WorkerError> {
        let gone: Vec<String> = gone.iter().map(|name| (*name).to_owned()).collect();
        let about = HostInStorage { host, gone: &gone };
        self.driver
            .survey(&self.method, &self.secrets, about, seconds(12))
            .await
    }

    async fn observe(&self) -> Result<ObservedState, WorkerError> {
        let observed = self
            .driver
            .observe(&self.method, &self.secrets, seconds(30))
            .await;
        observed.map(|observation| observation.state)
    }
}

pub fn keyring(text: &str) -> Secrets {
    [("keyring", text)].into_iter().collect()
}

/// The clock by which Ceph ends an entry.
fn now() -> Clock {
    #[expect(clippy::disallowed_methods, reason = "Ceph reckons by this machine's clock")]
    Arc::new(chrono::Utc::now)
}

async fn until_refused(writer: &CephWriter) {
    while writer.is_writing() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_fenced_address_writes_no_more_until_it_is_released() {
    let ceph = cluster();
    let worker = Worker::of(&ceph, SEVERAL);
    let writer = ceph.start_writing().unwrap();
    let before = ceph.objects().unwrap();
    while ceph.objects().unwrap() <= before + 1 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(writer.is_writing());
    assert_eq!(worker.observe().await.unwrap(), ObservedState::Unfenced);

    assert_confirmed(&worker.fence().await, ObservedState::Fenced);

    until_refused(&writer).await;
    assert!(!ceph.writes("by a new client").unwrap());
    assert_confirmed(&worker.fence().await, ObservedState::Fenced);

    assert_confirmed(&worker.release().await, ObservedState::Unfenced);

    assert!(ceph.writes("after the release").unwrap());
    assert_confirmed(&worker.release().await, ObservedState::Unfenced);
}

#[tokio::test]
async fn another_hosts_fence_lets_a_client_write_on() {
    let ceph = cluster();
    let worker = Worker::of(&ceph, "192.0.2.7");
    assert_confirmed(&worker.fence().await, ObservedState::Fenced);
    assert!(ceph.writes("still").unwrap());
}

#[tokio::test]
async fn an_entry_that_ends_in_an_hour_is_no_fence_and_is_made_to_last() {
    let ceph = cluster();
    let mut worker = Worker::of(&ceph, "192.0.2.7");
    worker.driver = driver(ceph.program(), now());
    ceph.ceph(&["osd", "blocklist", "add", "192.0.2.7"]).unwrap();

    let soon = worker.observe().await.unwrap_err().to_string();
    assert!(
        soon.contains("192.0.2.7 is on the blocklist only until"),
        "{soon}"
    );

    assert_confirmed(&worker.fence().await, ObservedState::Fenced);
}

#[tokio::test]
async fn a_host_in_a_network_that_is_listed_for_another_reason_is_not_released() {
    let ceph = cluster();
    let worker = Worker::of(&ceph, "192.0.2.7");
    assert_confirmed(&worker.fence().await, ObservedState::Fenced);
    ceph.ceph(&["osd", "blocklist", "range", "add", "192.0.2.0/24", "600"])
        .unwrap();
    let report = worker.act(FencingKind::StorageUnfence, 8).await;
    assert_eq!(report.outcome, Outcome::Unknown, "{report:?}");
    let why = worker.observe().await.unwrap_err().to_string();
    assert!(
        why.contains("remove it with ceph osd blocklist range rm 192.0.2.0/24"),
        "{why}"
    );
}

#[tokio::test]
async fn a_monitor_that_hangs_is_unknown_within_the_budget() {
    let ceph = cluster();
    let worker = Worker::of(&ceph, SEVERAL);
    ceph.silence().unwrap();
    let report = worker.act(FencingKind::StorageFence, 4).await;
    assert_outcome(&report, Outcome::Unknown, "was killed");
    assert_eq!(seen(&report), None);
    assert!(worker.act(FencingKind::StorageUnfence, 4).await.outcome == Outcome::Unknown);

    ceph.wake().unwrap();
    assert_confirmed(&worker.fence().await, ObservedState::Fenced);
}

#[tokio::test]
async fn a_wrong_key_and_an_unknown_user_are_definite_and_show_no_key() {
    let ceph = cluster();
    let mut worker = Worker::of(&ceph, "192.0.2.7");
    let right = worker.secrets.clone();
    let key = "AQAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAA==";
    worker.secrets = keyring(&format!("[client.ringfence]\n\tkey = {key}"));
    let report = worker.fence().await;
    assert_outcome(&report, Outcome::Refused, "permission denied");
    assert!(!format!("{report:?}").contains(key), "{report:?}");

    worker.secrets = right;
    worker
        .method
        .parameters
        .insert("user".to_owned(), "client.nosuch".to_owned());
    assert_outcome(&worker.fence().await, Outcome::Refused, "permission denied");
}

#[tokio::test]
async fn monitors_can_be_given_in_place_of_a_configuration() {
    let ceph = cluster();
    let mut worker = Worker::of(&ceph, "192.0.2.7");
    worker.method.parameters.remove("conf");
    worker
        .method
        .parameters
        .insert("monitors".to_owned(), ceph.monitor());
    assert_confirmed(&worker.fence().await, ObservedState::Fenced);
}

#[tokio::test]
async fn a_host_without_addresses_or_with_those_of_others_is_refused() {
    let driver = driver("/nonexistent/ceph".into(), clock());
    for (parameters, words) in [
        (&[][..], "m1.addresses=192.0.2.7"),
        (&[("addresses", "192.0.2.0/16")], "would cut other hosts off"),
        (&[("addresses", "192.0.2.7")], "is not installed"),
    ] {
        let method = method("ceph", Resource::Storage, parameters);
        let report = driver
            .act_and_observe(
                FencingKind::StorageFence,
                &method,
                &Secrets::default(),
                seconds(5),
            )
            .await;
        assert_outcome(&report, Outcome::Refused, words);
    }
}

#[tokio::test]
async fn a_ceph_tells_what_a_fence_of_a_host_would_cost_it() {
    let mut ceph = Ceph::start_on(&programs(), &["a", "b.example.org", "c"]).unwrap();
    let worker = Worker::of(&ceph, "192.0.2.7");

    let healthy = worker.survey("a", &[]).await.unwrap();
    let expected = CephSurvey {
        fsid: healthy.fsid.clone(),
        osds: 1,
        up: 1,
        groups: healthy.groups,
        monitors: 1,
        monitors_left: 1,
        is_ok_to_stop: Some(true),
        ..CephSurvey::default()
    };
    assert_eq!(healthy, expected);
    // The manager has a pool of its own.
    let all = healthy.groups;
    assert!(all > 8 && healthy.fsid.len() == 36, "{healthy:?}");
    let elsewhere = worker.survey("compute-1", &[]).await.unwrap();
    assert_eq!((elsewhere.osds, elsewhere.is_ok_to_stop), (0, None));
    // What is being fenced counts before Ceph has noticed.
    let beside = worker.survey("c", &["a", "compute-1"]).await.unwrap();
    assert_eq!((beside.unclean, beside.stopped), (all, all), "{beside:?}");
    assert_eq!(beside.gone, ["a"]);

    ceph.kill_osd(0);

    let own = loop {
        let own = worker.survey("a", &[]).await.unwrap();
        if own.up == 0 {
            break own;
        }
    };
    assert_eq!((own.osds, own.is_ok_to_stop), (1, None), "{own:?}");
    let other = loop {
        let other = worker.survey("b", &[]).await.unwrap();
        let one = other.one_unclean.clone().unwrap_or_default();
        if other.unclean == all && one.contains("undersized") {
            break other;
        }
    };
    assert_eq!((other.up, other.stopped), (1, all), "{other:?}");
    assert!(!other.is_own_domain, "{other:?}");
    assert_eq!(other.is_ok_to_stop, Some(false));
}

#[tokio::test]
async fn a_manager_or_a_monitor_that_hangs_is_unknown_within_the_budget_and_a_refusal_is_told() {
    let ceph = Ceph::start_on(&programs(), &["a", "b"]).unwrap();
    let mut worker = Worker::of(&ceph, "192.0.2.7");
    ceph.silence_manager().unwrap();
    let why = worker.survey("a", &[]).await.unwrap_err();
    assert!(matches!(why, WorkerError::Unclear { .. }), "{why}");
    assert!(why.to_string().contains("was killed"), "{why}");
    ceph.wake_manager().unwrap();
    assert_eq!(worker.survey("a", &[]).await.unwrap().is_ok_to_stop, Some(true));
    ceph.silence().unwrap();
    let why = worker.survey("a", &[]).await.unwrap_err();
    assert!(matches!(why, WorkerError::Unclear { .. }), "{why}");
    ceph.wake().unwrap();
    // The monitor and the manager find each other again.
    while worker.survey("a", &[]).await.is_err() {}

    let nosuch = ("user".to_owned(), "client.nosuch".to_owned());
    worker.method.parameters.extend([nosuch]);
    let why = worker.survey("a", &[]).await.unwrap_err();
    assert!(matches!(why, WorkerError::Refused { .. }), "{why}");
    assert!(why.to_string().contains("permission denied"), "{why}");
}
