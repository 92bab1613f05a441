//! Two clusters whose nodes have equal names, and one Ringfence that watches both.

use std::time::Duration;

use ringfence_backends::kubernetes::ClusterSettings;
use ringfence_engine::ObserverConfig;
use ringfence_lab::{Component, ControlPlane, IpmiBmc, Kubelet, KubeletOptions};
use ringfence_tests::{Ground, Site, Stack, StackOptions};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{GATE, NAMESPACE, control_plane, plan, settings};

const PATIENCE: Duration = Duration::from_secs(60);
const CLUSTERS: [&str; 2] = ["east", "west"];

/// A cluster of one node.
struct Small {
    node: Kubelet,
    plane: ControlPlane,
}

impl Small {
    fn start() -> Self {
        let plane = control_plane();
        let options = KubeletOptions {
            with_bmc: true,
            ..KubeletOptions::default()
        };
        let node = Kubelet::start(&plane, "n1", &options).unwrap();
        Self { node, plane }
    }

    fn get(&self, path: &str) -> Value {
        block_in_place(|| self.plane.api().get(path).unwrap())
    }

    /// Neither its node nor its gate shows anything of a fence.
    fn assert_untouched(&self) {
        let node = self.get("/api/v1/nodes/n1");
        assert_ne!(node["spec"]["unschedulable"], true, "{node}");
        assert!(
            !node["spec"]["taints"].to_string().contains("ringfence.io"),
            "{node}"
        );
        let gate = self.get(&gate());
        assert!(gate["data"].is_null(), "{gate}");
    }
}

fn gate() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{GATE}")
}

fn start_both() -> [Small; 2] {
    std::thread::scope(|scope| {
        let started = CLUSTERS.map(|_| scope.spawn(Small::start));
        started.map(|one| one.join().unwrap())
    })
}

async fn watch(clusters: &[Small; 2]) -> Stack {
    let settings = clusters
        .iter()
        .zip(CLUSTERS)
        .map(|(cluster, name)| ClusterSettings {
            name: name.to_owned(),
            ..settings(cluster.plane.kubeconfig())
        });
    let options = StackOptions {
        hosts: 0,
        clusters: settings.collect(),
        observer: ObserverConfig {
            every: Duration::from_secs(1),
            down_after: chrono::TimeDelta::seconds(6),
            adopt: Some("default".to_owned()),
            ..ObserverConfig::default()
        },
        ..StackOptions::default()
    };
    Stack::start_with(Site::new(Ground::Standalone).await, options).await
}

/// The host of a cluster's node; whichever was added last has the cluster's name in its own.
async fn host_of(stack: &Stack, cluster: &str) -> Value {
    let are_both = |list: &Value| list["hosts"].as_array().is_some_and(|hosts| hosts.len() == 2);
    let list = stack.client.until_within("/hosts", PATIENCE, are_both).await;
    let mut hosts = list["hosts"].as_array().unwrap().iter();
    let host = hosts.find(|host| host["cloud"] == cluster).unwrap().clone();
    assert!(
        host["name"] == "n1" || (host["name"] == format!("{cluster}-n1") && host["known_as"] == "n1"),
        "{host}"
    );
    host
}

async fn until_seen(stack: &Stack, host: &Value, state: &str) -> Value {
    let path = format!("/hosts/{}", host["id"].as_str().unwrap());
    stack
        .client
        .until_within(&path, PATIENCE, |host| host["failure_state"] == state)
        .await
}

/// What has happened to a host.
async fn events_of(stack: &Stack, host: &Value) -> Vec<String> {
    let name = host["name"].as_str().unwrap();
    let list = stack
        .client
        .get(&format!("/events?host={name}&limit=100"))
        .await
        .ok(200);
    list["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(Value::to_string)
        .collect()
}

async fn configure(stack: &Stack, hosts: [(&Value, &Small); 2]) {
    let secret = stack.site.dir.path().join("bmc-password");
    std::fs::write(&secret, IpmiBmc::PASSWORD).unwrap();
    let method = json!({
        "name": "bmc", "resource": "power", "driver": "ipmi",
        "parameters": { "address": "127.0.0.1", "username": IpmiBmc::USER, "cipher": "3" },
        "secrets": { "password": format!("file:{}", secret.display()) },
    });
    stack.client.post("/methods", method).await.ok(201);
    stack.client.post("/plans", plan(0)).await.ok(201);
    for (host, cluster) in hosts {
        let port = cluster.node.bmc().unwrap().port().to_string();
        let path = format!("/hosts/{}", host["id"].as_str().unwrap());
        let change = json!({ "parameters": { "bmc": { "port": port } } });
        stack.client.patch(&path, change).await.ok(200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_one_name_in_two_clusters_are_two_hosts_and_neither_cluster_bears_on_the_other() {
    let clusters = block_in_place(start_both);
    let [east, west] = &clusters;
    let stack = watch(&clusters).await;
    let (of_east, of_west) = (host_of(&stack, "east").await, host_of(&stack, "west").await);
    assert_ne!(of_east["name"], of_west["name"]);
    for host in [&of_east, &of_west] {
        until_seen(&stack, host, "UP").await;
    }
    configure(&stack, [(&of_east, east), (&of_west, west)]).await;

    // The API server of one is away: that says nothing of the other's nodes, and of its own only that nothing is known.
    let before = events_of(&stack, &of_east).await;
    block_in_place(|| west.plane.kill(Component::ApiServer));
    until_seen(&stack, &of_west, "UNKNOWN").await;
    until_seen(&stack, &of_east, "UP").await;
    assert_eq!(events_of(&stack, &of_east).await, before);
    block_in_place(|| west.plane.start_again(Component::ApiServer).unwrap());
    until_seen(&stack, &of_west, "UP").await;

    // A node of the other dies and is fenced.
    block_in_place(|| east.node.kill());
    until_seen(&stack, &of_east, "UNREACHABLE").await;
    let fenced = of_east["name"].as_str().unwrap();
    stack.client.fence(fenced).await;
    let is_fenced = |host: &Value| host["fencing_state"] == "FENCED";
    let path = format!("/hosts/{fenced}");
    stack.client.until_within(&path, PATIENCE, is_fenced).await;
    let has_node = |gate: &Value| gate["data"]["n1"].is_string();
    block_in_place(|| {
        east.plane
            .api()
            .until("the node in its gate", &gate(), PATIENCE, has_node)
            .unwrap()
    });
    west.assert_untouched();
    let other = until_seen(&stack, &of_west, "UP").await;
    assert_eq!(
        (&other["fencing_state"], &other["generation"], &other["operation"]),
        (&json!("UNFENCED"), &of_west["generation"], &Value::Null),
        "{other}"
    );
    assert!(west.node.is_running() && !east.node.is_running());
    // The one that is well was never taken for silent.
    let told = events_of(&stack, &of_west).await;
    assert!(told.iter().any(|event| event.contains("UNKNOWN")), "{told:?}");
    assert!(
        told.iter().all(|event| !event.contains("UNREACHABLE")),
        "{told:?}"
    );
    stack.stop().await;
}
