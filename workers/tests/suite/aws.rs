//! The real `fence_aws` with the API of EC2.
//!
//! The agent stops an instance only if the machine that it runs on is itself a running instance that its key sees: it asks the metadata of
//! its machine for the instance's id first.

use std::os::unix::fs::PermissionsExt;

use ringfence_core::{FencingKind, FrozenMethod, ObservedState, Outcome, Resource};
use ringfence_lab::{Aws, serve_instance_metadata};
use ringfence_workers::{Driver, FenceAgent, Report, Secrets, WorkerError};
use tempfile::TempDir;

use crate::{assert_confirmed, assert_outcome, clock, method, seconds};

const AGENT: &str = include_str!("peers/fence_aws.py");

/// A worker on a machine with this id of an instance.
struct Worker {
    driver: FenceAgent,
    _agents: TempDir,
}

impl Worker {
    fn on(instance: &str, aws: &Aws) -> Self {
        let agents = tempfile::tempdir().unwrap();
        let agent = AGENT
            .replace("@METADATA@", &serve_instance_metadata(instance).unwrap())
            .replace("@AWS@", &aws.url());
        let path = agents.path().join("fence_aws");
        std::fs::write(&path, agent).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Self {
            driver: FenceAgent::new(vec![agents.path().to_owned()], clock()),
            _agents: agents,
        }
    }

    async fn act(&self, kind: FencingKind, method: &FrozenMethod, secrets: &Secrets) -> Report {
        self.act_for(60, kind, method, secrets).await
    }

    /// For tasks that use up all their time.
    async fn act_for(&self, s: u64, kind: FencingKind, method: &FrozenMethod, secrets: &Secrets) -> Report {
        self.driver
            .act_and_observe(kind, method, secrets, seconds(s))
            .await
    }

    async fn observe(&self, method: &FrozenMethod, secrets: &Secrets) -> Result<ObservedState, WorkerError> {
        let observed = self.driver.observe(method, secrets, seconds(60)).await;
        observed.map(|observation| observation.state)
    }
}

fn account() -> Aws {
    let server = Aws::server_from_environment()
        .expect("RINGFENCE_TEST_MOTO is not set; run this through `cargo xtask test` or `cargo xtask lab`");
    Aws::start(&server).unwrap()
}

fn instance(aws: &Aws, id: &str) -> FrozenMethod {
    let (access_key, _) = aws.key();
    let parameters = [
        ("agent", "fence_aws"),
        ("region", Aws::REGION),
        ("access_key", access_key),
        ("plug", id),
    ];
    method("fence-agent", Resource::Power, &parameters)
}

fn key(secret: &str) -> Secrets {
    [("secret_key", secret)].into_iter().collect()
}

#[tokio::test]
async fn an_instance_is_switched_off_and_on_and_both_are_read_back() {
    let aws = account();
    let [host, of_worker] = aws.instances();
    let (worker, method, secrets) = (
        Worker::on(of_worker, &aws),
        instance(&aws, host),
        key(aws.key().1),
    );
    assert_eq!(
        worker.observe(&method, &secrets).await.unwrap(),
        ObservedState::On
    );

    let off = worker.act(FencingKind::PowerOff, &method, &secrets).await;
    assert_confirmed(&off, ObservedState::Off);
    assert_eq!(
        worker.observe(&method, &secrets).await.unwrap(),
        ObservedState::Off
    );
    let other = instance(&aws, of_worker);
    assert_eq!(worker.observe(&other, &secrets).await.unwrap(), ObservedState::On);

    let on = worker.act(FencingKind::PowerOn, &method, &secrets).await;
    assert_confirmed(&on, ObservedState::On);
}

#[tokio::test]
async fn a_wrong_key_is_unknown_and_is_not_shown() {
    let aws = account();
    let [host, of_worker] = aws.instances();
    let (worker, method) = (Worker::on(of_worker, &aws), instance(&aws, host));
    let wrong = key("not-the-secret-of-this-key");
    let report = worker.act_for(10, FencingKind::PowerOff, &method, &wrong).await;
    assert_eq!(report.outcome, Outcome::Unknown, "{report:?}");
    let why = worker.observe(&method, &wrong).await.unwrap_err().to_string();
    assert!(why.contains("Incorrect Access Key or Secret Key"), "{why}");
    assert!(!format!("{report:?}").contains("not-the-secret"), "{report:?}");

    let right = key(aws.key().1);
    assert_eq!(worker.observe(&method, &right).await.unwrap(), ObservedState::On);
}

#[tokio::test]
async fn an_instance_that_does_not_exist_is_never_off() {
    let aws = account();
    let [_, of_worker] = aws.instances();
    let (worker, method) = (Worker::on(of_worker, &aws), instance(&aws, "i-0123456789abcdef0"));
    let secrets = key(aws.key().1);
    let report = worker.act_for(10, FencingKind::PowerOff, &method, &secrets).await;
    assert_outcome(&report, Outcome::Unknown, "could not be read");
    assert!(worker.observe(&method, &secrets).await.is_err());
}

#[tokio::test]
async fn a_worker_on_a_machine_that_is_no_instance_of_the_account_stops_nothing() {
    let aws = account();
    let [host, _] = aws.instances();
    let (worker, method) = (Worker::on("i-0123456789abcdef0", &aws), instance(&aws, host));
    let secrets = key(aws.key().1);
    let report = worker.act_for(20, FencingKind::PowerOff, &method, &secrets).await;
    assert_eq!(report.outcome, Outcome::Unknown, "{report:?}");
    assert_eq!(
        worker.observe(&method, &secrets).await.unwrap(),
        ObservedState::On
    );
}
