//! The labels that a cluster gives its nodes, and those that an operator gives their hosts.

use std::time::Duration;

use ringfence_backends::kubernetes::ClusterSettings;
use ringfence_engine::ObserverConfig;
use ringfence_tests::{Ground, Site, Stack, StackOptions};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::adopting::make_node;
use super::plant::{CLUSTER, control_plane, settings};

const PATIENCE: Duration = Duration::from_secs(60);
const NODE: &str = "/api/v1/nodes/n1";
const ZONE: &str = "topology.kubernetes.io/zone";
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_has_the_failure_domain_of_its_node_beside_the_labels_of_an_operator() {
    let plane = block_in_place(control_plane);
    let label = |labels: Value| json!({ "metadata": { "labels": labels } });
    block_in_place(|| {
        make_node(plane.api(), "n1");
        let labels = label(json!({ ZONE: "z1", CONTROL_PLANE: "", "app": "db" }));
        plane.api().patch(NODE, &labels).unwrap();
    });
    let every = Duration::from_secs(1);
    let options = StackOptions {
        hosts: 0,
        workers: 0,
        clusters: vec![ClusterSettings {
            down_after: PATIENCE,
            ..settings(plane.kubeconfig())
        }],
        observer: ObserverConfig {
            every,
            down_after: chrono::TimeDelta::seconds(60),
            adopt: Some("default".to_owned()),
            ..ObserverConfig::default()
        },
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Standalone).await, options).await;
    let until = async |labels: Value| {
        let has = |list: &Value| list["hosts"][0]["labels"] == labels;
        stack.client.until_within("/hosts", PATIENCE, has).await;
    };
    until(json!({ ZONE: "z1", CONTROL_PLANE: CLUSTER })).await;
    let own = json!({ "labels": { ZONE: "z1", CONTROL_PLANE: CLUSTER, "rack": "r1" } });
    stack.client.patch("/hosts/n1", own).await.ok(200);
    block_in_place(|| {
        let moved = label(json!({ ZONE: "z2", CONTROL_PLANE: null }));
        plane.api().patch(NODE, &moved).unwrap();
    });
    until(json!({ ZONE: "z2", "rack": "r1" })).await;
    stack.stop().await;
}
