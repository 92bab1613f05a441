//! Real ClusterLabs agents, and agents with faults.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use ringfence_core::{FencingKind, FrozenMethod, ObservedState, Outcome, Resource};
use ringfence_workers::{Driver, FenceAgent, Report};
use tempfile::TempDir;

use crate::{assert_confirmed, assert_outcome, clock, drivers, method, no_secrets, password, seconds, seen};

struct Dummy {
    dir: TempDir,
}

impl Dummy {
    fn new(state: &str) -> Self {
        let dummy = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::write(dummy.file(), state).unwrap();
        dummy
    }

    fn file(&self) -> String {
        self.dir.path().join("status").to_str().unwrap().to_owned()
    }

    fn state(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap()
    }

    fn method(&self, resource: Resource) -> FrozenMethod {
        method(
            "fence-agent",
            resource,
            &[("agent", "fence_dummy"), ("status_file", &self.file())],
        )
    }

    async fn act(&self, kind: FencingKind) -> Report {
        act(kind, &self.method(kind.resource())).await
    }
}

async fn act(kind: FencingKind, method: &FrozenMethod) -> Report {
    let driver = drivers().get("fence-agent").unwrap();
    driver
        .act_and_observe(kind, method, &no_secrets(), seconds(10))
        .await
}

#[tokio::test]
async fn an_agent_switches_off_and_on_and_both_are_read_back() {
    let dummy = Dummy::new("on");
    assert_confirmed(&dummy.act(FencingKind::PowerOff).await, ObservedState::Off);
    assert_eq!(dummy.state(), "off");
    assert_confirmed(&dummy.act(FencingKind::PowerOn).await, ObservedState::On);
    assert_eq!(dummy.state(), "on");
}

#[tokio::test]
async fn for_storage_and_network_off_means_fenced() {
    let dummy = Dummy::new("on");
    assert_confirmed(&dummy.act(FencingKind::StorageFence).await, ObservedState::Fenced);
    assert_confirmed(&dummy.act(FencingKind::NetworkFence).await, ObservedState::Fenced);
    assert_confirmed(
        &dummy.act(FencingKind::NetworkUnfence).await,
        ObservedState::Unfenced,
    );
    assert_eq!(dummy.state(), "on");
}

#[tokio::test]
async fn the_agents_library_sends_no_off_to_a_device_that_is_off() {
    let dummy = Dummy::new("off");
    let untouched = || std::fs::metadata(dummy.file()).unwrap().modified().unwrap();
    let before = untouched();
    assert_confirmed(&dummy.act(FencingKind::PowerOff).await, ObservedState::Off);
    assert_eq!(untouched(), before);
}

#[tokio::test]
async fn a_status_check_changes_nothing() {
    let dummy = Dummy::new("on");
    let driver = drivers().get("fence-agent").unwrap();
    let observed = driver
        .observe(&dummy.method(Resource::Power), &no_secrets(), seconds(10))
        .await
        .unwrap();
    assert_eq!(
        (observed.state, observed.detail.as_str()),
        (ObservedState::On, "Status: ON")
    );
    assert_eq!(dummy.state(), "on");
}

#[tokio::test]
async fn an_agent_that_runs_out_of_time_is_unknown_and_stopped_within_the_budget() {
    let failing = method(
        "fence-agent",
        Resource::Power,
        &[("agent", "fence_dummy"), ("type", "fail")],
    );
    let driver = drivers().get("fence-agent").unwrap();
    let started = Instant::now();
    let report = driver
        .act_and_observe(FencingKind::PowerOff, &failing, &no_secrets(), seconds(15))
        .await;
    assert_outcome(&report, Outcome::Unknown, "it last read as on");
    assert_eq!(seen(&report), Some(ObservedState::On));
    assert!(started.elapsed() <= seconds(15), "{:?}", started.elapsed());
}

#[tokio::test]
async fn an_agent_that_cannot_read_is_unknown() {
    let dummy = Dummy::new("");
    let folder = method(
        "fence-agent",
        Resource::Power,
        &[("agent", "fence_dummy"), ("status_file", &dummy.file())],
    );
    let driver = drivers().get("fence-agent").unwrap();
    let error = driver
        .observe(&folder, &no_secrets(), seconds(5))
        .await
        .unwrap_err();
    assert!(
        matches!(error, ringfence_workers::WorkerError::Unclear { .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn agents_that_prove_nothing_are_refused_before_they_run() {
    for (agent, kind, words) in [
        ("fence_kdump", FencingKind::PowerOff, "crash kernel"),
        ("fence_sbd", FencingKind::PowerOff, "message was left"),
        ("fence_crosslink", FencingKind::PowerOff, "link is silent"),
        ("fence_evacuate", FencingKind::PowerOff, "compute service"),
        ("fence_ringfence", FencingKind::PowerOff, "asks Ringfence itself"),
        ("fence_scsi", FencingKind::PowerOff, "does not act on its power"),
        (
            "fence_brocade",
            FencingKind::PowerOff,
            "does not act on its power",
        ),
        (
            "fence_heuristics_ping",
            FencingKind::NetworkFence,
            "answers a ping",
        ),
        ("fence_nosuch", FencingKind::PowerOff, "is not installed"),
        (
            "fence_../../bin/sh",
            FencingKind::PowerOff,
            "is not the name of a fence agent",
        ),
    ] {
        let report = act(kind, &method("fence-agent", kind.resource(), &[("agent", agent)])).await;
        assert_outcome(&report, Outcome::Refused, words);
    }
}

#[tokio::test]
async fn a_parameter_that_could_change_the_action_is_refused_before_the_agent_runs() {
    let dummy = Dummy::new("on");
    for (name, value) in [
        ("delay", "0\naction=on"),
        ("action", "on"),
        ("missing_as_off", "1"),
        ("method", "cycle"),
        ("delay=0\naction", "on"),
    ] {
        let mut method = dummy.method(Resource::Power);
        method.parameters.insert(name.to_owned(), value.to_owned());
        assert_outcome(&act(FencingKind::PowerOff, &method).await, Outcome::Refused, "");
        assert_eq!(dummy.state(), "on", "{name}");
    }
}

/// An agent of these tests, which runs `body` after its input was read into `$input`.
struct OwnAgent {
    dir: TempDir,
}

impl OwnAgent {
    fn new(body: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let script = include_str!("peers/agent.sh").replace("@BODY@", body);
        let path = dir.path().join("fence_own");
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Self { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    async fn act(&self, kind: FencingKind, secret: &str, budget_s: u64) -> Report {
        let driver = FenceAgent::new(vec![self.path().to_owned()], clock());
        let folder = self.path().to_str().unwrap();
        let method = method(
            "fence-agent",
            kind.resource(),
            &[("agent", "fence_own"), ("folder", folder)],
        );
        driver
            .act_and_observe(kind, &method, &password(secret), seconds(budget_s))
            .await
    }
}

#[tokio::test]
async fn an_agent_that_reports_success_and_stays_on_is_unknown() {
    let agent =
        OwnAgent::new("case $action in status) echo 'Status: ON'; exit 0;; *) echo Success; exit 0;; esac");
    assert_outcome(
        &agent.act(FencingKind::PowerOff, "x", 3).await,
        Outcome::Unknown,
        "it last read as on",
    );
}

#[tokio::test]
async fn an_agent_runs_the_off_before_the_status() {
    let agent = OwnAgent::new(
        "echo $action >> \"$folder/log\"; case $action in status) echo 'Status: OFF'; exit 2;; *) exit 0;; esac",
    );
    let report = agent.act(FencingKind::PowerOff, "x", 5).await;
    assert_confirmed(&report, ObservedState::Off);
    let log = std::fs::read_to_string(agent.path().join("log")).unwrap();
    assert_eq!(log.lines().collect::<Vec<_>>(), ["off", "status"]);
}

#[tokio::test]
async fn a_usage_error_that_ends_with_2_is_not_off() {
    let agent = OwnAgent::new("echo 'usage: fence_own' >&2; exit 2");
    assert_outcome(
        &agent.act(FencingKind::PowerOff, "x", 3).await,
        Outcome::Unknown,
        "could not be read",
    );
}

#[tokio::test]
async fn an_agent_that_fails_and_leaves_the_device_off_is_confirmed_by_its_status() {
    let agent = OwnAgent::new(
        "case $action in status) [ -f \"$folder/off\" ] && { echo 'Status: OFF'; exit 2; }; echo 'Status: ON'; exit 0;; \
         off) touch \"$folder/off\"; exit 1;; esac",
    );
    assert_confirmed(
        &agent.act(FencingKind::PowerOff, "x", 5).await,
        ObservedState::Off,
    );
}

#[tokio::test]
async fn a_secret_that_an_agent_prints_is_masked() {
    let agent = OwnAgent::new("echo \"bad input: $input\" >&2; exit 1");
    let report = agent.act(FencingKind::PowerOff, "hunter2 and more", 3).await;
    assert_outcome(&report, Outcome::Unknown, "password=[secret]");
    assert!(!format!("{report:?}").contains("hunter2"), "{report:?}");
}

#[tokio::test]
async fn an_agent_that_ignores_sigterm_is_killed_within_the_budget() {
    let agent = OwnAgent::new("echo $$ >> \"$folder/pids\"; trap '' TERM; sleep 60; sleep 60");
    let started = Instant::now();
    let report = agent.act(FencingKind::PowerOff, "x", 4).await;
    assert!(started.elapsed() <= seconds(4), "{:?}", started.elapsed());
    assert_outcome(&report, Outcome::Unknown, "was killed");
    for pid in std::fs::read_to_string(agent.path().join("pids"))
        .unwrap()
        .lines()
    {
        assert!(!Path::new("/proc").join(pid).exists(), "process {pid} still runs");
    }
}
