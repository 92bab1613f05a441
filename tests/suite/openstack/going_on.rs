//! Evacuations that go on by themselves: after the death of a worker, and after an administrator changes the service's record.

use std::time::{Duration, Instant};

use ringfence_tests::Ground;
use serde_json::json;
use tokio::task::block_in_place;

use super::plant::{Plant, until};

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
