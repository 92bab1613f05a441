//! A host that dies while a server is being moved to it.

use std::time::Duration;

use ringfence_tests::Ground;
use serde_json::json;
use tokio::task::block_in_place;

use super::plant::{Plant, until};

/// Nova leaves such a server as it is, and would accept a second request although the guest may already run on the dead destination.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_destination_dies_moves_on_once_the_destination_is_fenced_too() {
    let policy = json!({ "auto_rejoin": true, "evacuation": { "automatic": true } });
    let names = ["stuck-a", "stuck-b", "stuck-c"];
    let plant = Plant::start(Ground::Distributed, names, policy).await;
    let client = &plant.stack.client;
    let servers = plant.boot(0, &["stuck-1"]);
    block_in_place(|| plant.cloud.disable("stuck-c", "not yet").unwrap());
    plant.machines[1].with(|compute| compute.hold_spawns().unwrap());

    plant.machines[0].kill();
    plant.until_seen("stuck-a", "UNREACHABLE").await;
    client.fence("stuck-a").await;
    // The guest runs on stuck-b, and Nova does not know it.
    until(|| plant.machines[1].running() == servers);
    plant.machines[1].kill();
    plant.until_seen("stuck-b", "UNREACHABLE").await;
    block_in_place(|| plant.cloud.enable("stuck-c").unwrap());
    // The server must not start on stuck-c: stuck-b may still run it.
    tokio::time::sleep(Duration::from_secs(12)).await;
    assert_eq!(plant.machines[2].running(), Vec::<String>::new());
    client.fence("stuck-b").await;

    let evacuation = plant.until_ended("stuck-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    let moves = plant.moves(&evacuation).await;
    assert_eq!(moves[0]["to"], "stuck-c", "{moves:?}");
    assert_eq!(plant.machines[2].running(), servers);
    let records = block_in_place(|| plant.cloud.evacuations("stuck-a").unwrap());
    let mut to: Vec<_> = records.iter().map(|record| record.dest_compute.clone()).collect();
    to.sort();
    assert_eq!(to, [Some("stuck-b".to_owned()), Some("stuck-c".to_owned())]);

    for machine in [1, 0] {
        plant.machines[machine].bmc.set_powered(true).unwrap();
        let rejoin = plant.until_ended(names[machine], "rejoin").await;
        assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    }
    assert_eq!(plant.machines[2].running(), servers);
    plant.judge();
    // Nova refuses to delete a service that has a move's record, and deletes the record with the server.
    block_in_place(|| plant.cloud.delete_server(&servers[0]).unwrap());
    until(|| plant.cloud.server(&servers[0]).is_err());
    plant.stop().await;
}
