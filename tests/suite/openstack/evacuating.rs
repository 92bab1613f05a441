//! A host that dies, the evacuation of its servers, and its return.

use std::time::Duration;

use chrono::{NaiveDateTime, TimeDelta};
use ringfence_lab::Server;
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::Plant;

fn statuses(moves: &[Value]) -> Vec<&str> {
    moves.iter().map(|one| one["status"].as_str().unwrap()).collect()
}

/// The start and the end of the requests that changed these servers, by the log of Nova's API.
fn requests(log: &str, servers: &[String]) -> Vec<(NaiveDateTime, NaiveDateTime)> {
    let actions: Vec<String> = servers
        .iter()
        .map(|id| format!("\"POST /v2.1/servers/{id}/action"))
        .collect();
    let wanted = |line: &&str| actions.iter().any(|action| line.contains(action));
    let mut requests: Vec<_> = log.lines().filter(wanted).map(times).collect();
    requests.sort();
    requests
}

/// A line of the log has the time of the request's end first, and its duration in seconds.
fn times(line: &str) -> (NaiveDateTime, NaiveDateTime) {
    let ended = NaiveDateTime::parse_from_str(&line[..23], "%Y-%m-%d %H:%M:%S%.f").unwrap();
    let (_, took) = line.split_once(" time: ").unwrap();
    let digits = took.find(|c: char| !c.is_ascii_digit() && c != '.');
    let took: f64 = took[..digits.unwrap_or(took.len())].parse().unwrap();
    (ended - Duration::from_secs_f64(took), ended)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_host_is_fenced_evacuated_and_taken_back() {
    let policy = json!({ "auto_rejoin": true, "evacuation": { "automatic": true } });
    let plant = Plant::start(Ground::Distributed, ["story-a", "story-b"], policy).await;
    let servers = plant.boot(0, &["s1", "s2", "s3", "s4", "s5"]);
    let client = &plant.stack.client;

    plant.machines[0].kill();
    plant.until_seen("story-a", "UNREACHABLE").await;
    client.fence("story-a").await;
    let fence = plant.until_ended("story-a", "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");
    let evacuation = plant.until_ended("story-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    let moves = plant.moves(&evacuation).await;
    assert_eq!(statuses(&moves), ["confirmed"; 5], "{moves:?}");
    for one in &moves {
        assert_eq!(
            (&one["from"], &one["to"]),
            (&json!("story-a"), &json!("story-b")),
            "{one}"
        );
        assert!(one["request_id"].as_str().unwrap().starts_with("req-"), "{one}");
    }
    assert_eq!(plant.hosts_of(&servers), ["story-b"; 5]);
    plant.judge();
    assert_eq!(plant.machines[1].running().len(), 5);

    plant.machines[0].bmc.set_powered(true).unwrap();
    let rejoin = plant.until_ended("story-a", "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    let host = client.host("story-a").await;
    assert_eq!(
        (&host["fencing_state"], &host["failure_state"]),
        (&json!("UNFENCED"), &json!("UP"))
    );
    let service = block_in_place(|| plant.cloud.compute_service("story-a").unwrap());
    assert!(service.is_up() && service.status == "enabled" && !service.forced_down);
    assert_eq!(client.gates("story-a").await["schedule"]["allowed"], true);
    assert!(plant.machines[0].running().is_empty());
    plant.judge();
    let again = plant.machines[0].with(|compute| plant.cloud.boot(compute, &["s6"], &[]).unwrap());
    assert_eq!(again[0].host.as_deref(), Some("story-a"));
    // Ringfence's own calls went through the gate before Nova's API, like those of every caller.
    let log = plant.cloud.description().folder.join("log/nova-api.log");
    let log = std::fs::read_to_string(log).unwrap();
    let requests = requests(&log, &servers);
    assert_eq!(requests.len(), 5, "{requests:?}");
    let one_after_the_other = requests
        .windows(2)
        .all(|two| two[0].1 <= two[1].0 + TimeDelta::milliseconds(20));
    assert!(one_after_the_other, "{requests:?}");
    for allowed in ["from host story-a", "un-forcing host story-a"] {
        let is_it = |line: &str| line.contains("Ringfence allows") && line.contains(allowed);
        assert!(log.lines().any(is_it), "the log of the gate lacks: {allowed}");
    }
    plant.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_left_on_a_returning_host_run_again_and_stopped_servers_stay_stopped() {
    let policy = json!({ "auto_rejoin": true, "fencing": { "automatic": true, "after_s": 1, "at_most_percent": 100 } });
    let plant = Plant::start(Ground::Standalone, ["stays-a"], policy).await;
    let servers = plant.boot(0, &["ran-1", "ran-2", "was-stopped"]);
    block_in_place(|| {
        plant.cloud.act(&servers[2], json!({ "os-stop": null })).unwrap();
        let is_stopped = |server: &Server| server.status == "SHUTOFF";
        plant
            .cloud
            .wait_server(&servers[2], "to be stopped", is_stopped)
            .unwrap();
    });

    // The fence and the evacuation are automatic.
    plant.machines[0].kill();
    let fence = plant.until_ended("stays-a", "fence").await;
    assert_eq!(
        (&fence["status"], &fence["requested_by"]),
        (&json!("succeeded"), &json!("ringfence")),
        "{fence}"
    );
    assert!(plant.machines[0].running().is_empty());

    plant.machines[0].bmc.set_powered(true).unwrap();
    let rejoin = plant.until_ended("stays-a", "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    let mut running = plant.machines[0].running();
    running.sort();
    let mut ran = servers[..2].to_vec();
    ran.sort();
    assert_eq!(running, ran, "{rejoin}");
    let stopped = block_in_place(|| plant.cloud.server(&servers[2]).unwrap());
    assert_eq!(stopped.status, "SHUTOFF");
    plant.stop().await;
}
