//! Which servers move, in which order, and which worker continues when one dies.

use std::time::Duration;

use ringfence_lab::{NovaApiOptions, Server};
use ringfence_tests::{Ground, Site, eventually};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{Plant, cloud, until};

/// The names of the moved servers, in the order in which their moves began.
fn by_their_beginning(moves: &[Value]) -> Vec<&str> {
    let mut begun: Vec<_> = moves
        .iter()
        .filter(|one| one["status"] == "confirmed")
        .map(|one| (one["started_at"].as_str().unwrap(), one["name"].as_str().unwrap()))
        .collect();
    begun.sort_unstable();
    begun.into_iter().map(|(_, name)| name).collect()
}

/// No move began before the one before it had ended.
fn one_after_the_other(moves: &[Value]) {
    let of = |one: &Value, field: &str| one[field].as_str().unwrap().to_owned();
    let confirmed = moves.iter().filter(|one| one["status"] == "confirmed");
    let mut times: Vec<_> = confirmed
        .map(|one| (of(one, "started_at"), of(one, "ended_at")))
        .collect();
    times.sort_unstable();
    for pair in times.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "{moves:?}");
    }
}

/// Acts on a server, and waits for its new status.
fn change(plant: &Plant, server: &str, action: Value, status: &str) {
    block_in_place(|| {
        plant.cloud.act(server, action).unwrap();
        let is_so = |server: &Server| server.status == status;
        plant.cloud.wait_server(server, status, is_so).unwrap();
    });
}

/// Nova pauses only a running server, and neither evacuates nor starts a server in error or paused as it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_decide_which_servers_move_and_in_which_order() {
    let short_pages = NovaApiOptions {
        settings: "[api]\nmax_limit = 2\n".to_owned(),
        ..NovaApiOptions::default()
    };
    let api = block_in_place(|| cloud().nova_api(short_pages).unwrap());
    let policy = json!({
        "auto_rejoin": true, "fencing": { "automatic": true, "after_s": 1, "at_most_percent": 100 },
        "evacuation": { "automatic": true, "workloads": "opted_in", "in_segment": { "at_once": 1 } },
    });
    let site = Site::new(Ground::Distributed).await;
    let plant = Plant::start_on(site, Some(&api.url()), ["order-a", "order-b", "order-c"], policy).await;
    let boot_on = |machine: usize, name: &str, metadata: &[(&str, &str)]| {
        let machine = &plant.machines[machine];
        let made = machine.with(|host| plant.cloud.boot(host, &[name], metadata).unwrap());
        made[0].id.clone()
    };
    let boot = |name: &str, metadata: &[(&str, &str)]| boot_on(0, name, metadata);
    let with_priority =
        |name: &str, priority: &str| boot(name, &[("HA_Enabled", "true"), ("evacuation_priority", priority)]);
    let last = with_priority("last", "-5");
    let paused = with_priority("paused", "50");
    let whenever = boot("whenever", &[("HA_Enabled", "true")]);
    let first = with_priority("first", "90");
    let broken = with_priority("broken", "7");
    let silent = boot("silent", &[]);
    let unwilling = boot(
        "unwilling",
        &[("HA_Enabled", "false"), ("evacuation_priority", "99")],
    );
    change(&plant, &paused, json!({ "pause": null }), "PAUSED");
    let in_error = json!({ "os-resetState": { "state": "error" } });
    change(&plant, &broken, in_error, "ERROR");

    // A host that dies with it: its server comes before those of a lower priority.
    let high = [("HA_Enabled", "true"), ("evacuation_priority", "60")];
    let beside = boot_on(2, "beside", &high);

    plant.machines[1].with(|host| host.hold_spawns().unwrap());
    plant.machines[0].kill();
    plant.machines[2].kill();
    for host in ["order-a", "order-c"] {
        plant.until_moving(host).await;
    }
    eventually(|| async {
        let metrics = plant.stack.client.get("/metrics").await;
        ["under_way\"} 1\n", "waiting\"} 5\n"].iter().all(|moves| {
            metrics
                .body
                .as_str()
                .unwrap()
                .contains(&format!("ringfence_moves{{segment=\"rack\",state=\"{moves}"))
        })
    })
    .await;
    plant.machines[1].with(|host| host.release_spawns().unwrap());
    let evacuation = plant.until_ended("order-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    let other = plant.until_ended("order-c", "evacuation").await;
    let mut both = plant.moves(&evacuation).await;
    both.extend(plant.moves(&other).await);
    one_after_the_other(&both);
    let order = by_their_beginning(&both);
    let place = |name: &str| order.iter().position(|moved| *moved == name);
    assert!(place("beside") < place("paused"), "{order:?}");
    assert_eq!(plant.hosts_of(&[beside]), ["order-b"]);
    let detail = evacuation["detail"].as_str().unwrap();
    assert!(detail.contains("2 left where they are"), "{evacuation}");
    let moves = plant.moves(&evacuation).await;
    let order = by_their_beginning(&moves);
    assert_eq!(
        order,
        ["first", "paused", "broken", "whenever", "last"],
        "{moves:?}"
    );
    let moved = [first, paused, broken, whenever, last];
    assert_eq!(plant.hosts_of(&moved), ["order-b"; 5]);
    assert_eq!(
        plant.hosts_of(&[silent.clone(), unwilling.clone()]),
        ["order-a"; 2]
    );
    assert_eq!(plant.machines[1].running().len(), 6);

    plant.machines[0].bmc.set_powered(true).unwrap();
    let rejoin = plant.until_ended("order-a", "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    let mut stayed = [silent, unwilling];
    stayed.sort();
    assert_eq!(plant.machines[0].running(), stayed);
    plant.stop().await;
    drop(api);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_worker_waits_for_the_moves_that_a_dead_worker_requested() {
    let policy = json!({ "evacuation": { "automatic": true, "timeout_s": 20, "retries": 10 } });
    let mut plant = Plant::start(Ground::Distributed, ["heir-a", "heir-b"], policy).await;
    let servers = plant.boot(0, &["h1", "h2"]);
    plant.machines[1].with(|host| host.hold_spawns().unwrap());
    plant.machines[0].kill();
    plant.until_seen("heir-a", "UNREACHABLE").await;
    plant.stack.client.fence("heir-a").await;
    until(|| plant.machines[1].running().len() == 2);

    plant.stack.add_worker().await;
    plant.stack.workers.remove(0).abandon();
    // Longer than the time that a worker has for one server: another attempt begins each time.
    tokio::time::sleep(Duration::from_secs(45)).await;
    plant.machines[1].with(|host| host.release_spawns().unwrap());
    let evacuation = plant.until_ended("heir-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    assert_eq!(plant.hosts_of(&servers), ["heir-b"; 2]);
    let moves = plant.moves(&evacuation).await;
    for one in &moves {
        assert!(one["attempts"].as_u64().unwrap() >= 2, "{one}");
    }
    let records = block_in_place(|| plant.cloud.evacuations("heir-a").unwrap());
    assert_eq!(records.len(), 2, "one request for each server: {records:?}");
    plant.stop().await;
}
