//! Engines that die.

use ringfence_tests::Ground;
use serde_json::{Value, json};

use super::plant::Plant;

/// The host's latest operation and the number of its tasks that have ended; a change of either is a step.
async fn progress(plant: &Plant, host: &str) -> Option<(String, usize)> {
    let path = format!("/operations?host={host}&sort=created_at:desc&limit=1");
    let list = plant.stack.client.get(&path).await.ok(200);
    let operation = list["operations"].get(0)?;
    let stages = operation["stages"].as_array().unwrap();
    let tasks = stages.iter().flat_map(|stage| stage["tasks"].as_array().unwrap());
    let over = tasks
        .filter(|task| task["status"] != "pending" && task["status"] != "running")
        .count();
    Some((operation["id"].as_str().unwrap().to_owned(), over))
}

/// Kills the engine at every step of the host's operations until one of this kind has ended; returns the number of kills.
async fn kill_until_ended(plant: &mut Plant, host: &str, kind: &str) -> usize {
    let mut known = progress(plant, host).await;
    let ended = format!("/operations?host={host}&kind={kind}&status=in:succeeded,needs_operator,cancelled");
    for kills in 0..100 {
        let step = loop {
            if plant.stack.client.get(&ended).await.ok(200)["operations"]
                .get(0)
                .is_some()
            {
                return kills;
            }
            let step = progress(plant, host).await;
            if step != known {
                break step;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        };
        known = step;
        plant.kill_engine().await;
    }
    panic!("no {kind} of {host} ended within 100 kills of the engine");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_engine_that_dies_at_every_step_moves_no_server_twice() {
    let policy = json!({
        "auto_rejoin": true, "fencing": { "automatic": true, "after_s": 1, "at_most_percent": 100 },
        "evacuation": { "automatic": true, "at_once": 2 },
    });
    let mut plant = Plant::start(Ground::Distributed, ["dying-a", "dying-b"], policy).await;
    let servers = plant.boot(0, &["d1", "d2", "d3", "d4"]);
    plant.machines[0].kill();
    let kills = kill_until_ended(&mut plant, "dying-a", "evacuation").await;
    assert!(kills >= 6, "the fence, four moves and more: {kills} steps");
    let evacuation = plant.until_ended("dying-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    assert_eq!(plant.hosts_of(&servers), ["dying-b"; 4]);
    plant.judge();
    // Nova has one record of each server: no move was requested twice.
    let asked = tokio::task::block_in_place(|| plant.cloud.evacuations("dying-a").unwrap());
    assert_eq!(asked.len(), 4, "{asked:?}");

    plant.machines[0].bmc.set_powered(true).unwrap();
    kill_until_ended(&mut plant, "dying-a", "rejoin").await;
    let rejoin = plant.until_ended("dying-a", "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    plant.judge();
    let events = plant.stack.client.event_types("dying-a").await;
    for once in ["host.fenced", "host.unfenced"] {
        assert_eq!(
            events.iter().filter(|kind| *kind == once).count(),
            1,
            "{events:?}"
        );
    }
    let moved = events.iter().filter(|kind| *kind == "workload.moved").count();
    assert_eq!(moved, 4, "{events:?}");
    assert_ne!(
        plant.stack.client.host("dying-a").await["fencing_state"],
        Value::Null
    );
    plant.stop().await;
}
