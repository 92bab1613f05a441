//! Evacuations that go on by themselves: when a worker dies, when Nova is away, when a host starts for a moment, and when an administrator
//! changes the service's record.

use std::time::{Duration, Instant};

use ringfence_lab::{NovaApiOptions, Server};
use ringfence_tests::{Ground, Site};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{Plant, cloud, until};

/// Longer than the time after which a silent host of the plant is UNREACHABLE.
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

/// The worker dies after its request to Nova, while the server moves. Another worker confirms the move as soon as it has ended, long
/// before the time for one server (5 min) is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_moves_of_a_dead_worker_are_confirmed_by_another_worker_before_their_deadline() {
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
    // `until_ended` waits two minutes at most.
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

/// Fences a host that is off already.
async fn fence(plant: &Plant, host: &str) {
    plant.until_seen(host, "UNREACHABLE").await;
    plant.stack.client.fence(host).await;
    let fence = plant.until_ended(host, "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");
}

/// Waits until an operation of the host says why Nova cannot do what is asked for.
async fn until_away(plant: &Plant, (host, kind): (&str, &str), why: &str) {
    let path = format!("/operations?host={host}&kind={kind}&limit=1");
    let says_why = |list: &Value| list.to_string().contains(why);
    let client = &plant.stack.client;
    client
        .until_within(&path, Duration::from_secs(60), says_why)
        .await;
}

/// Nova is away before it is asked for anything: a request that it may have heard is another story.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nova_that_is_away_or_takes_no_other_host_for_up_costs_an_evacuation_no_try() {
    let mut api = block_in_place(|| cloud().nova_api(NovaApiOptions::default()).unwrap());
    let policy = json!({ "evacuation": { "automatic": true, "retries": 0 } });
    let site = Site::new(Ground::Distributed).await;
    let plant = Plant::start_on(site, Some(&api.url()), ["away-a", "away-b"], policy).await;
    let servers = plant.boot(0, &["n1", "n2"]);
    plant.machines[0].kill();
    plant.until_seen("away-a", "UNREACHABLE").await;
    plant.machines[1].with(|host| host.pause().unwrap());
    block_in_place(|| plant.cloud.wait_state("away-b", false).unwrap());

    block_in_place(|| api.kill());
    plant.stack.client.fence("away-a").await;
    until_away(&plant, ("away-a", "fence"), "does not answer").await;
    block_in_place(|| api.start_again().unwrap());
    until_away(&plant, ("away-a", "evacuation"), "takes no other host for up").await;
    plant.machines[1].with(|host| host.resume().unwrap());

    let evacuation = plant.until_ended("away-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    assert_eq!(plant.hosts_of(&servers), ["away-b"; 2]);
    plant.stop().await;
}

/// The host starts behind the back of its BMC while its first server is moved, and `nova-compute` stops the second one, whose guest it finds
/// dead. It goes off before its first sign of life: with one the host would be back, and the evacuation over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_its_returning_host_has_stopped_runs_where_it_arrives() {
    let policy = json!({ "evacuation": { "automatic": true, "at_once": 1 } });
    let plant = Plant::start(Ground::Distributed, ["stopped-a", "stopped-b"], policy).await;
    let servers = plant.boot(0, &["s1", "s2", "s3"]);
    let is_stopped = |server: &Server| server.status == "SHUTOFF";
    let off = &servers[2];
    block_in_place(|| {
        plant.cloud.act(off, json!({ "os-stop": null })).unwrap();
        plant
            .cloud
            .wait_server(off, "stopped by its owner", is_stopped)
            .unwrap();
    });
    plant.machines[1].with(|host| host.hold_spawns().unwrap());
    plant.machines[0].kill();
    fence(&plant, "stopped-a").await;
    until(|| !plant.machines[1].running().is_empty());

    let begun = plant.machines[1].running();
    let waiting = servers[..2]
        .iter()
        .find(|server| !begun.contains(server))
        .unwrap();
    plant.machines[0].with(|host| {
        host.silent_at_start(600);
        host.power_on().unwrap();
    });
    block_in_place(|| {
        plant
            .cloud
            .wait_server(waiting, "stopped by nova-compute", is_stopped)
            .unwrap()
    });
    plant.machines[0].with(|host| host.power_off().unwrap());
    plant.machines[1].with(|host| host.release_spawns().unwrap());

    let evacuation = plant.until_ended("stopped-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    assert_eq!(plant.hosts_of(&servers), ["stopped-b"; 3]);
    until(|| plant.machines[1].running().len() == 2);
    for one in &plant.moves(&evacuation).await {
        let was_off = one["id"].as_str() == Some(off);
        let state = if was_off { "stopped" } else { "running" };
        assert_eq!(
            (&one["state"], &one["state_after"]),
            (&json!(state), &json!(state)),
            "{one}"
        );
    }
    plant.stop().await;
}
