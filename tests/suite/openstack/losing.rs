//! Outages of the broker and of Nova while servers are being moved.

use std::time::Duration;

use ringfence_lab::NovaApiOptions;
use ringfence_tests::Site;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{Plant, cloud};

/// Waits until so many servers of the host have moved.
async fn until_moved(plant: &Plant, host: &str, count: usize) {
    let path = format!("/events?host={host}&limit=500");
    let are_moved = |list: &Value| {
        let events = list["events"].as_array().into_iter().flatten();
        events.filter(|event| event["type"] == "workload.moved").count() >= count
    };
    plant
        .stack
        .client
        .until_within(&path, Duration::from_secs(120), are_moved)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_evacuation_goes_on_when_broker_and_nova_were_away_and_a_server_is_gone() {
    let mut api = block_in_place(|| cloud().nova_api(NovaApiOptions::default()).unwrap());
    let policy = json!({
        "fencing": { "automatic": true, "after_s": 1, "at_most_percent": 100 },
        "evacuation": { "automatic": true, "at_once": 1 },
    });
    let site = Site::with_own_peers().await;
    let mut plant = Plant::start_on(site, Some(&api.url()), ["losing-a", "losing-b"], policy).await;
    let servers = plant.boot(0, &["l1", "l2", "l3", "l4"]);
    plant.machines[0].kill();
    until_moved(&plant, "losing-a", 1).await;

    api.kill();
    let mut rabbit = plant.stack.site.rabbit.take().unwrap();
    block_in_place(|| rabbit.crash().unwrap());
    let known: Vec<String> = plant.hosts_of(&servers);
    // The owner of a server that waits for its move deletes it.
    let waiting: Vec<usize> = (0..4).filter(|at| known[*at] == "losing-a").collect();
    let gone = *waiting.last().expect("a server that has not moved");
    block_in_place(|| plant.cloud.delete_server(&servers[gone]).unwrap());
    tokio::time::sleep(Duration::from_secs(60)).await;
    plant.judge();
    plant.stack.site.rabbit = Some(block_in_place(|| {
        rabbit.start_again().unwrap();
        rabbit
    }));
    block_in_place(|| api.start_again().unwrap());

    let evacuation = plant.until_ended("losing-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    for (at, server) in servers.iter().enumerate().filter(|(at, _)| *at != gone) {
        let host = block_in_place(|| plant.cloud.server(server).unwrap().host);
        assert_eq!(host.as_deref(), Some("losing-b"), "server {at}");
    }
    plant.judge();
    let records = block_in_place(|| plant.cloud.evacuations("losing-a").unwrap());
    for server in &servers {
        let asked = records.iter().filter(|one| one.instance_uuid == *server).count();
        assert!(asked <= 1, "{records:?}");
    }
    let moves = plant.moves(&evacuation).await;
    assert_eq!(moves.len(), 4, "{moves:?}");
    let of_gone = moves
        .iter()
        .find(|one| one["id"] == json!(servers[gone]))
        .unwrap();
    assert_eq!(
        (&of_gone["status"], &of_gone["to"]),
        (&json!("confirmed"), &Value::Null),
        "{of_gone}"
    );
    plant.stop().await;
}
