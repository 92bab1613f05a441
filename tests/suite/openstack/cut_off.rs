//! A host that is fenced by the services of its cloud: servers that move keep their volumes and ports, servers that stay get them back.

use ringfence_lab::{Api, Cloud, NewServer, Port, Server};
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::Plant;

/// A server with a volume and a port.
struct Equipped {
    server: String,
    volume: String,
    port: String,
}

fn equip(plant: &Plant, network: &str, name: &str, metadata: &[(&str, &str)]) -> Equipped {
    let cloud = &plant.cloud;
    plant.machines[0].with(|compute| {
        let port = cloud.make_port(network).unwrap();
        let wanted = NewServer {
            host: Some(compute),
            metadata,
            ports: &[&port],
            ..NewServer::new(name)
        };
        let server = cloud.boot_all(&[wanted]).unwrap().remove(0).id;
        let volume = cloud.make_volume(name).unwrap().id;
        cloud.attach(&server, &volume).unwrap();
        Equipped {
            server,
            volume,
            port: port.id,
        }
    })
}

/// Adds the methods, and a plan for one host: storage and network by the cloud's services, then power.
async fn configure(plant: &Plant, host: &str) {
    let client = &plant.stack.client;
    let times = json!({ "attempt_timeout_s": 120, "timeout_s": 300 });
    for method in [
        json!({
            "name": "volumes", "resource": "storage", "driver": "cinder", "times": times,
            "parameters": { "trusted_backends": "logged", "local_disks": "true" },
        }),
        json!({
            "name": "ports", "resource": "network", "driver": "neutron", "times": times,
            "parameters": { "trusted": "true" },
        }),
    ] {
        client.post("/methods", method).await.ok(201);
    }
    let task =
        |kind: &str, method: &str| json!({ "kind": kind, "levels": [{ "level": 1, "methods": [method] }] });
    let plan = json!({
        "name": "services", "scope": { "kind": "host", "value": host },
        "stages": [
            { "tasks": [task("storage.fence", "volumes"), task("network.fence", "ports")] },
            { "tasks": [task("power.off", "bmc")] },
        ],
    });
    client.post("/plans", plan).await.ok(201);
    // The services must answer before the fence needs them.
    for method in ["volumes", "ports"] {
        let is_well = |method: &Value| method["checks"]["outcome"] == "confirmed";
        client.until(&format!("/methods/{method}"), is_well).await;
    }
}

fn server(cloud: &Cloud, id: &str) -> Server {
    block_in_place(|| cloud.server(id).unwrap())
}

fn port(cloud: &Cloud, id: &str) -> Port {
    block_in_place(|| cloud.port(id).unwrap())
}

/// The hosts that are connected to a volume, and how many attachments it has.
fn connected(cloud: &Cloud, volume: &str) -> (Vec<String>, usize) {
    block_in_place(|| {
        let hosts = cloud.volume(volume).unwrap().attachments.into_iter();
        let path = format!("/attachments/detail?all_tenants=1&volume_id={volume}");
        let all = cloud.get(Api::Volume, &path).unwrap();
        let count = all["attachments"].as_array().unwrap().len();
        (
            hosts.filter_map(|attachment| attachment.host_name).collect(),
            count,
        )
    })
}

/// How often the storage was told to disconnect a host from a volume.
fn disconnections(cloud: &Cloud, volume: &str) -> usize {
    let log = cloud.description().folder.join("log/cinder-volume.log");
    let log = std::fs::read_to_string(log).unwrap();
    let is_one = |line: &&str| line.contains("==> terminate_connection: call") && line.contains(volume);
    log.lines().filter(is_one).count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_move_keep_volumes_and_ports_and_servers_that_stay_get_them_back() {
    let policy = json!({ "auto_rejoin": true, "evacuation": { "automatic": true } });
    let plant = Plant::start(Ground::Distributed, ["taken-a", "taken-b"], policy).await;
    let (cloud, client) = (&plant.cloud, &plant.stack.client);
    configure(&plant, "taken-a").await;
    let network = block_in_place(|| cloud.make_network("cut").unwrap());
    let moves = equip(&plant, &network, "cut-moves", &[]);
    let stays = equip(&plant, &network, "cut-stays", &[("HA_Enabled", "false")]);

    plant.machines[0].kill();
    plant.until_seen("taken-a", "UNREACHABLE").await;
    client.fence("taken-a").await;
    let fence = plant.until_ended("taken-a", "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");
    let host = client.host("taken-a").await;
    let kinds = |host: &Value| -> Vec<String> {
        let proofs = host["proofs"].as_array().unwrap().iter();
        proofs
            .map(|proof| proof["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(kinds(&host).contains(&"storage.fence".to_owned()), "{host}");
    assert!(kinds(&host).contains(&"network.fence".to_owned()), "{host}");
    let evacuation = plant.until_ended("taken-a", "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");

    assert_eq!(server(cloud, &moves.server).host.as_deref(), Some("taken-b"));
    assert_eq!(connected(cloud, &moves.volume), (vec!["taken-b".to_owned()], 1));
    let its_port = port(cloud, &moves.port);
    assert_eq!(
        (its_port.host.as_str(), its_port.admin_state_up),
        ("taken-b", true)
    );
    for volume in [&moves.volume, &stays.volume] {
        assert_eq!(
            disconnections(cloud, volume),
            1,
            "the fence disconnects the volume once, and nothing else does"
        );
    }
    assert_eq!(connected(cloud, &stays.volume), (vec![], 1));
    assert!(!port(cloud, &stays.port).admin_state_up);
    plant.judge();

    plant.machines[0].bmc.set_powered(true).unwrap();
    let rejoin = plant.until_ended("taken-a", "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    assert_eq!(client.host("taken-a").await["fencing_state"], "UNFENCED");
    assert_eq!(server(cloud, &stays.server).host.as_deref(), Some("taken-a"));
    assert_eq!(connected(cloud, &stays.volume), (vec!["taken-a".to_owned()], 1));
    assert!(port(cloud, &stays.port).admin_state_up);
    let marked = block_in_place(|| {
        cloud
            .get(Api::Network, "/v2.0/ports?tags=ringfence:taken-a")
            .unwrap()
    });
    assert_eq!(marked["ports"], json!([]));
    plant.judge();

    plant.stop().await;
}
