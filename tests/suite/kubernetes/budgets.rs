//! Applications with disruption budgets, one of whose nodes dies.

use std::time::Duration;

use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{PODS, Plant};
use super::told::{FENCED, taint};

const PATIENCE: Duration = Duration::from_secs(60);
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const BUDGETS: &str = "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets";

/// An application with so many pods, each on a node of its own, of which so many have to be healthy.
pub fn deploy(plant: &Plant, name: &str, replicas: u32, min: u32) {
    let labels = json!({ "app": name });
    let apart =
        json!({ "labelSelector": { "matchLabels": labels }, "topologyKey": "kubernetes.io/hostname" });
    let deployment = json!({
        "metadata": { "name": name },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [apart] } },
                    "containers": [{ "name": "main", "image": "none" }],
                },
            },
        },
    });
    plant.api().post(DEPLOYMENTS, &deployment).unwrap();
    let selector = json!({ "matchLabels": labels });
    let budget =
        json!({ "metadata": { "name": name }, "spec": { "minAvailable": min, "selector": selector } });
    plant.api().post(BUDGETS, &budget).unwrap();
}

/// Waits until the cluster counts so many healthy pods of the application.
pub fn until_healthy(plant: &Plant, app: &str, count: u32) {
    let path = format!("{BUDGETS}/{app}");
    let is_so = |budget: &Value| budget["status"]["currentHealthy"] == count;
    block_in_place(|| plant.api().until("healthy pods", &path, PATIENCE, is_so).unwrap());
}

/// The pods of the application on a node.
pub fn on_node(plant: &Plant, app: &str, node: &str) -> Vec<Value> {
    let list = block_in_place(|| {
        plant
            .api()
            .get(&format!("{PODS}?labelSelector=app={app}"))
            .unwrap()
    });
    let mut pods = list["items"].as_array().unwrap().clone();
    pods.retain(|pod| pod["spec"]["nodeName"] == node);
    pods
}

fn effect(plant: &Plant, node: &str) -> Value {
    let node = block_in_place(|| plant.api().get(&format!("/api/v1/nodes/{node}")).unwrap());
    taint(&node, FENCED).unwrap()["effect"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_go_as_their_budgets_allow_and_one_that_never_does_asks_for_a_person() {
    let evacuation = json!({ "automatic": true, "disruption_budgets": true, "timeout_s": 10, "retries": 0 });
    let plant = Plant::start(Ground::Standalone, json!({ "evacuation": evacuation })).await;
    for (name, min) in [("web", 1), ("all", 2)] {
        block_in_place(|| deploy(&plant, name, 2, min));
    }
    for name in ["web", "all"] {
        until_healthy(&plant, name, 2);
    }
    // Of three nodes, two have a pod of the one and two a pod of the other.
    let has_both = |node: &str| {
        ["web", "all"]
            .iter()
            .all(|app| !on_node(&plant, app, node).is_empty())
    };
    let dead = plant.nodes.iter().find(|node| has_both(node.name())).unwrap();
    let name = dead.name();

    block_in_place(|| dead.kill());
    plant.until_seen(name, "UNREACHABLE").await;
    plant.stack.client.fence(name).await;
    let evacuation = plant.until_ended(name, "evacuation").await;
    assert_eq!(evacuation["status"], "needs_operator", "{evacuation}");
    let detail = evacuation["detail"].as_str().unwrap();
    let needs = "it stays: The disruption budget all needs 2 healthy pods and has 1 currently)";
    assert!(
        detail.contains(needs) && !detail.contains("default/web"),
        "{detail}"
    );
    until_healthy(&plant, "web", 2);
    assert_eq!(on_node(&plant, "web", name), [] as [Value; 0]);
    let left = on_node(&plant, "all", name);
    assert!(
        left.len() == 1 && left[0]["metadata"]["deletionTimestamp"].is_null(),
        "{left:?}"
    );
    assert_eq!(effect(&plant, name), "NoSchedule");

    // The application is healthy enough without the pod once it has another one.
    let scaled = json!({ "spec": { "replicas": 3 } });
    block_in_place(|| plant.api().patch(&format!("{DEPLOYMENTS}/all"), &scaled).unwrap());
    until_healthy(&plant, "all", 2);
    let path = format!("/operations/{}/retry", evacuation["id"].as_str().unwrap());
    let reason = json!({ "reason": "the application has one more pod" });
    let retried = plant.stack.client.post(&path, reason).await;
    assert!((200..300).contains(&retried.status), "{retried:?}");
    let evacuation = plant.until_ended(name, "evacuation").await;
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    assert_eq!(on_node(&plant, "all", name), [] as [Value; 0]);
    assert_eq!(effect(&plant, name), "NoExecute", "no pod is left to go");
    plant.stack.stop().await;
}
