//! Servers for which no host has room, and servers that must stay.

use ringfence_tests::Ground;
use serde_json::json;
use tokio::task::block_in_place;

use super::plant::Plant;

/// Stops a server as its owner would.
fn stop(plant: &Plant, server: &str) {
    plant.cloud.act(server, json!({ "os-stop": null })).unwrap();
    let is_stopped = |server: &ringfence_lab::Server| server.status == "SHUTOFF";
    let stopped = plant.cloud.wait_server(server, "to be stopped", is_stopped);
    stopped.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_without_room_move_to_a_spare_host_and_opted_out_servers_stay() {
    let policy = json!({
        "fencing": { "automatic": true, "after_s": 1, "at_most_percent": 100 },
        "evacuation": { "retries": 0, "spare_hosts": ["room-spare"] },
    });
    let plant = Plant::start(Ground::Distributed, ["room-a", "room-spare"], policy).await;
    let client = &plant.stack.client;
    block_in_place(|| plant.cloud.disable("room-spare", "a spare host").unwrap());
    let moving = plant.boot(0, &["moves-1", "moves-2"]);
    let staying = plant.machines[0].with(|compute| {
        let metadata = [("HA_Enabled", "false")];
        plant.cloud.boot(compute, &["stays"], &metadata).unwrap()
    });
    let early = client
        .post("/hosts/room-a/evacuate", json!({ "reason": "too early" }))
        .await;
    assert_eq!((early.status, early.code()), (409, "fencing.gate.closed"));

    plant.machines[0].kill();
    let fence = plant.until_ended("room-a", "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");
    client
        .post("/hosts/room-a/evacuate", json!({ "reason": "they are missed" }))
        .await
        .ok(202);
    let evacuation = plant.until_ended("room-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    assert!(
        evacuation["detail"]
            .as_str()
            .unwrap()
            .contains("1 left where they are"),
        "{evacuation}"
    );
    assert_eq!(plant.hosts_of(&moving), ["room-spare"; 2]);
    assert_eq!(plant.hosts_of(&[staying[0].id.clone()]), ["room-a"]);
    let spare = block_in_place(|| plant.cloud.compute_service("room-spare").unwrap());
    assert_eq!(spare.status, "enabled");
    plant.judge();
    plant.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_evacuation_without_room_waits_for_a_person_and_goes_on_when_there_is_room() {
    let policy = json!({
        "fencing": { "automatic": true, "after_s": 1, "at_most_percent": 100 },
        "evacuation": { "automatic": true, "retries": 0 },
    });
    let plant = Plant::start(Ground::Standalone, ["full-a", "full-b"], policy).await;
    let client = &plant.stack.client;
    let servers = plant.boot(0, &["f1", "f2"]);
    block_in_place(|| {
        plant.cloud.disable("full-b", "being repaired").unwrap();
        stop(&plant, &servers[1]);
    });
    plant.machines[0].kill();
    let stuck = plant.until_ended("full-a", "evacuation").await;
    assert_eq!(stuck["status"], "needs_operator", "{stuck}");
    let detail = stuck["detail"].as_str().unwrap();
    assert!(
        detail.contains("f1 (") && detail.contains("No valid host"),
        "{detail}"
    );

    let retry = format!("/operations/{}/retry", stuck["id"].as_str().unwrap());
    client
        .post(&retry, json!({ "reason": "full-b should be repaired" }))
        .await
        .ok(200);
    let still = plant.until_ended("full-a", "evacuation").await;
    assert_eq!(still["status"], "needs_operator", "{still}");
    let cancel = format!("/operations/{}/cancel", stuck["id"].as_str().unwrap());
    let why = json!({ "reason": "not today" });
    client.post(&cancel, why).await.ok(200);

    block_in_place(|| plant.cloud.enable("full-b").unwrap());
    let why = json!({ "reason": "full-b is repaired" });
    client.post("/hosts/full-a/evacuate", why).await.ok(202);
    let done = plant.until_ended("full-a", "evacuation").await;
    assert_eq!(done["status"], "succeeded", "{done}");
    assert_eq!(plant.hosts_of(&servers), ["full-b"; 2]);
    // Nova alone would leave the server running after a failed first evacuation.
    let stopped = block_in_place(|| {
        let is_stopped = |server: &ringfence_lab::Server| server.status == "SHUTOFF";
        plant
            .cloud
            .wait_server(&servers[1], "to be stopped again", is_stopped)
            .unwrap()
    });
    assert_eq!(stopped.host.as_deref(), Some("full-b"));
    plant.judge();
    plant.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_could_not_move_run_again_when_their_host_is_back() {
    let policy = json!({
        "fencing": { "automatic": true, "after_s": 1, "at_most_percent": 100 },
        "evacuation": { "automatic": true, "retries": 0 },
    });
    let plant = Plant::start(Ground::Standalone, ["kept-a", "kept-b"], policy).await;
    let client = &plant.stack.client;
    let servers = plant.boot(0, &["k1", "k2"]);
    block_in_place(|| {
        plant.cloud.disable("kept-b", "being repaired").unwrap();
        stop(&plant, &servers[1]);
    });
    plant.machines[0].kill();
    let stuck = plant.until_ended("kept-a", "evacuation").await;
    assert_eq!(stuck["status"], "needs_operator", "{stuck}");
    let cancel = format!("/operations/{}/cancel", stuck["id"].as_str().unwrap());
    let why = json!({ "reason": "the host can be switched on again" });
    client.post(&cancel, why.clone()).await.ok(200);

    plant.machines[0].bmc.set_powered(true).unwrap();
    plant.until_seen("kept-a", "UP").await;
    client.post("/hosts/kept-a/rejoin", why).await.ok(202);
    let rejoin = plant.until_ended("kept-a", "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    assert_eq!(plant.hosts_of(&servers), ["kept-a"; 2]);
    let [runs, stopped] = [0, 1].map(|at| block_in_place(|| plant.cloud.server(&servers[at]).unwrap()));
    assert_eq!(runs.status, "ACTIVE");
    assert_eq!(plant.machines[0].running(), [servers[0].clone()]);
    assert_eq!(
        stopped.status, "ERROR",
        "the owner had stopped the server before the fence"
    );
    plant.stop().await;
}
