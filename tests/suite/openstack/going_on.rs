//! Evacuations that go on by themselves: when a worker dies, when Nova is away, when an administrator changes the service's record.

use std::time::{Duration, Instant};

use ringfence_backends::openstack::Nova;
use ringfence_backends::{Platform, StepOrder, Unanswered};
use ringfence_core::{
    Backend, Finding, MoveStep, Outcome, PlatformHost, Workload, WorkloadState, WorkloadStep,
};
use ringfence_lab::{NovaApiOptions, OPENSTACK_PASSWORD, Server, User};
use ringfence_tests::{Ground, Site};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{CLOUD, Plant, backend, cloud, entry, until};

/// Longer than a host of the plant may be silent.
const A_WHILE: Duration = Duration::from_secs(15);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gate_stays_open_when_an_administrator_enables_the_service_of_a_fenced_host() {
    let plant = Plant::start(Ground::Standalone, ["enabled-a", "enabled-b"], json!({})).await;
    plant.machines[0].kill();
    plant.until_seen("enabled-a", "UNREACHABLE").await;
    plant.stack.client.fence("enabled-a").await;
    let fence = plant.until_ended("enabled-a", "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");
    let service = block_in_place(|| plant.cloud.compute_service("enabled-a").unwrap());
    assert!(service.forced_down && service.status == "disabled", "{service:?}");

    for change in ["enable", "disable", "enable"] {
        block_in_place(|| match change {
            "enable" => plant.cloud.enable("enabled-a").unwrap(),
            _ => plant.cloud.disable("enabled-a", "looked at").unwrap(),
        });
        let since = Instant::now();
        while since.elapsed() < A_WHILE {
            let gates = plant.stack.client.gates("enabled-a").await;
            assert_eq!(gates["evacuate"]["allowed"], true, "after {change}: {gates}");
            assert_eq!(gates["schedule"]["allowed"], false, "after {change}: {gates}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    plant.stop().await;
}

/// Nova has been asked, and the server is on its way, when the worker dies: another one sees to its end as soon as that is certain, long before
/// the time for one server (5 min) is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_worker_has_begun_is_followed_long_before_its_time_is_over() {
    let policy = json!({ "evacuation": { "automatic": true, "retries": 0 } });
    let mut plant = Plant::start(Ground::Distributed, ["follow-a", "follow-b"], policy).await;
    let servers = plant.boot(0, &["f1", "f2"]);
    plant.machines[1].with(|host| host.hold_spawns().unwrap());
    plant.machines[0].kill();
    plant.until_seen("follow-a", "UNREACHABLE").await;
    plant.stack.client.fence("follow-a").await;
    until(|| plant.machines[1].running().len() == 2);

    plant.stack.add_worker().await;
    plant.stack.workers.remove(0).abandon();
    plant.machines[1].with(|host| host.release_spawns().unwrap());
    // Within two minutes.
    let evacuation = plant.until_ended("follow-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    assert_eq!(plant.hosts_of(&servers), ["follow-b"; 2]);
    for one in &plant.moves(&evacuation).await {
        assert_eq!(one["state_after"], "running", "{one}");
        assert!(one["attempts"].as_u64().unwrap() >= 2, "{one}");
    }
    let records = block_in_place(|| plant.cloud.evacuations("follow-a").unwrap());
    assert_eq!(records.len(), 2, "Nova was asked twice: {records:?}");
    plant.stop().await;
}

/// Waits until a move has been tried in vain.
async fn until_tried(plant: &Plant, host: &str) {
    let path = format!("/operations?host={host}&kind=evacuation&limit=1");
    let was_tried = |list: &Value| list.to_string().contains("\"outcome\":\"unknown\"");
    let client = &plant.stack.client;
    client
        .until_within(&path, Duration::from_secs(60), was_tried)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nova_that_is_away_or_has_no_other_host_up_costs_an_evacuation_no_try() {
    let mut api = block_in_place(|| cloud().nova_api(NovaApiOptions::default()).unwrap());
    let policy = json!({
        "fencing": { "automatic": true, "after_s": 1, "at_most_percent": 100 },
        "evacuation": { "automatic": false, "retries": 0 },
    });
    let site = Site::new(Ground::Distributed).await;
    let plant = Plant::start_on(site, Some(&api.url()), ["away-a", "away-b"], policy).await;
    let servers = plant.boot(0, &["n1", "n2"]);
    plant.machines[0].kill();
    let fence = plant.until_ended("away-a", "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");

    // Nova takes the only other host for down, and then does not answer at all.
    plant.machines[1].with(|host| host.pause().unwrap());
    block_in_place(|| plant.cloud.wait_state("away-b", false).unwrap());
    let why = json!({ "reason": "it is dead" });
    plant
        .stack
        .client
        .post("/hosts/away-a/evacuate", why)
        .await
        .ok(202);
    until_tried(&plant, "away-a").await;
    block_in_place(|| api.kill());
    plant.machines[1].with(|host| host.resume().unwrap());
    tokio::time::sleep(A_WHILE).await;
    block_in_place(|| api.start_again().unwrap());

    let evacuation = plant.until_ended("away-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    assert_eq!(plant.hosts_of(&servers), ["away-b"; 2]);
    plant.stop().await;
}

/// A host that is switched on too early stops the guests that it finds dead before Nova is asked to evacuate them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ran_runs_where_it_arrives_although_nova_has_it_stopped() {
    let plant = Plant::start(Ground::Standalone, ["stopped-a", "stopped-b"], json!({})).await;
    let servers = plant.boot(0, &["ran", "was-stopped"]);
    block_in_place(|| {
        for server in &servers {
            plant.cloud.act(server, json!({ "os-stop": null })).unwrap();
            let is_stopped = |server: &Server| server.status == "SHUTOFF";
            plant
                .cloud
                .wait_server(server, "to be stopped", is_stopped)
                .unwrap();
        }
    });
    plant.machines[0].kill();
    plant.until_seen("stopped-a", "UNREACHABLE").await;
    plant.stack.client.fence("stopped-a").await;
    let fence = plant.until_ended("stopped-a", "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");

    let folder = tempfile::tempdir().unwrap();
    let nova = Nova::new(backend(
        &folder,
        &entry(&plant.cloud, User::Fencing, OPENSTACK_PASSWORD, ""),
    ));
    for (server, listed_as) in servers
        .iter()
        .zip([WorkloadState::Running, WorkloadState::Stopped])
    {
        let report = moved(&nova, server, listed_as).await;
        assert_eq!(report.state_after, Some(listed_as), "{report:?}");
        assert_eq!(report.to.as_deref(), Some("stopped-b"), "{report:?}");
    }
    assert_eq!(plant.machines[1].running(), servers[..1]);
    plant.stop().await;
}

/// Moves a server away from `stopped-a` that was in this state when it was listed.
async fn moved(nova: &Nova, server: &str, state: WorkloadState) -> ringfence_core::MoveReport {
    let step = WorkloadStep::Move(Box::new(MoveStep {
        workload: Workload {
            id: server.to_owned(),
            name: server.to_owned(),
            state,
            metadata: std::collections::BTreeMap::new(),
        },
        cut_off_by: Vec::new(),
        given_up: None,
        only_look: false,
    }));
    let at = PlatformHost {
        backend: Backend::Nova,
        platform: CLOUD.to_owned(),
        host: "stopped-a".to_owned(),
        zone: "default".to_owned(),
    };
    let order = StepOrder {
        step: &step,
        at: &at,
        unanswered: &Unanswered::default(),
    };
    let report = nova.carry_out(order, Duration::from_secs(90)).await;
    assert_eq!(report.outcome, Outcome::Confirmed, "{report:?}");
    match report.finding {
        Some(Finding::Move(report)) => report,
        other => panic!("no move: {other:?}"),
    }
}
