//! What a cluster asks about a node that is cut off from its storage alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use ringfence_core::{ClusterUser, Generation, Movable, NamedToGo, PodToEvict, Resource};
use ringfence_scheduler_hook::{ClusterLookup, Clusters, HookConfig, Told};
use ringfence_tests::{Client, Ground};
use serde_json::{Value, json};

use super::stack;

crate::on_both_grounds!(only_what_the_gate_object_names_leaves_a_node_that_is_cut_off_from_its_storage_alone,);

const CONTROLLER: &str = "system:serviceaccount:kube-system:attachdetach-controller";
const VOLUME: &str = "kubernetes.io/csi/csi.lab^v1";

/// A cluster whose gate object is as a test sets it.
#[derive(Clone)]
struct East(Arc<Mutex<Told<Option<NamedToGo>>>>);

#[async_trait]
impl Clusters for East {
    async fn pod(&self, _: &str, _: &str, name: &str) -> Told<Option<PodToEvict>> {
        Ok(Some(PodToEvict {
            uid: format!("uid-of-{name}"),
            node: Some("h1".to_owned()),
            grace_s: 0,
            is_guarded: true,
            is_finished: false,
        }))
    }

    async fn named_to_go(&self, _: &str, node: &str) -> Told<Option<NamedToGo>> {
        assert_eq!(node, "h1");
        self.0.lock().clone()
    }

    async fn volume(&self, _: &str, persistent_volume: &str) -> Told<Option<String>> {
        Ok((persistent_volume == "pv1").then(|| VOLUME.to_owned()))
    }

    async fn may_confirm(&self, _: &str, _: &ClusterUser, _: &str) -> Told<bool> {
        Ok(false)
    }
}

impl East {
    fn names(&self, generation: u32, names: &[&str]) {
        let names: BTreeSet<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let list = NamedToGo {
            generation: Generation(generation),
            movable: Movable::OnFencedStorage,
            names,
        };
        *self.0.lock() = Ok(Some(list));
    }
}

fn pod() -> Value {
    json!({
        "operation": "DELETE", "resource": { "group": "", "version": "v1", "resource": "pods" },
        "options": { "gracePeriodSeconds": 0 },
        "oldObject": {
            "metadata": { "name": "db-0", "uid": "uid-of-db-0", "labels": { "ringfence.io/guarded": "true" } },
            "spec": { "nodeName": "h1" }, "status": { "phase": "Running" },
        },
    })
}

fn eviction() -> Value {
    json!({
        "operation": "CREATE", "resource": { "group": "", "version": "v1", "resource": "pods" },
        "subResource": "eviction", "namespace": "default", "name": "db-0", "object": {},
    })
}

fn attachment() -> Value {
    json!({
        "operation": "DELETE",
        "resource": { "group": "storage.k8s.io", "version": "v1", "resource": "volumeattachments" },
        "oldObject": {
            "metadata": { "name": "csi-1", "uid": "a1" },
            "spec": { "nodeName": "h1", "source": { "persistentVolumeName": "pv1" } },
        },
    })
}

/// `None` if the request is let through, and else the words.
async fn held(client: &Client, user: &str, mut request: Value) -> Option<String> {
    request["uid"] = json!("1");
    request["userInfo"] = json!({ "username": user, "groups": ["system:authenticated"] });
    let review =
        json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request });
    let answer = client.post("/kubernetes/admission/east", review).await.ok(200);
    let response = &answer["response"];
    let told = response["status"]["message"].as_str().map(str::to_owned);
    assert_eq!(response["allowed"], told.is_none(), "{answer}");
    told
}

async fn only_what_the_gate_object_names_leaves_a_node_that_is_cut_off_from_its_storage_alone(
    ground: Ground,
) {
    let east = East(Arc::new(Mutex::new(Err("it is away".to_owned()))));
    let config = HookConfig {
        lookup: ClusterLookup::new(east.clone()),
        ..HookConfig::default()
    };
    let stack = stack(ground, config).await;
    let client = &stack.client;
    let change = json!({ "backend": "kubernetes", "cloud": "east" });
    client.patch("/hosts/h1", change).await.ok(200);
    client.seen("h1", "UP").await.ok(200);
    stack.method_on("array", Resource::Storage, "h1").await;
    let levels = json!([{ "level": 1, "methods": ["array"] }]);
    let plan = json!({
        "name": "cut-off", "scope": { "kind": "host", "value": "h1" }, "stages": [{ "tasks": [{ "kind": "storage.fence", "levels": levels }] }],
        "sufficient_sets": [["storage.fence"]],
    });
    client.post("/plans", plan).await.ok(201);
    east.names(1, &["uid-of-db-0", "a1", VOLUME]);
    let before = held(client, "admin", pod()).await.unwrap();
    assert!(before.contains("ringfence host fence h1"), "{before}");

    client.seen("h1", "UNREACHABLE").await.ok(200);
    client.fence("h1").await;
    client.until_fenced("h1").await;
    *east.0.lock() = Err("it is away".to_owned());
    for request in [pod(), eviction(), attachment()] {
        let told = held(client, "admin", request).await.unwrap();
        assert!(
            told.contains("the gate object cannot be read") && told.contains("it is away"),
            "{told}"
        );
    }
    *east.0.lock() = Ok(None);
    let told = held(client, "admin", pod()).await.unwrap();
    assert!(told.contains("nothing was named yet"), "{told}");
    east.names(0, &["uid-of-db-0"]);
    let told = held(client, "admin", pod()).await.unwrap();
    assert!(told.contains("for another fence"), "{told}");
    east.names(1, &["uid-of-db-1", VOLUME]);
    for request in [pod(), eviction(), attachment()] {
        let told = held(client, "admin", request).await.unwrap();
        assert!(told.contains("this was not named"), "{told}");
    }
    assert_eq!(
        held(client, CONTROLLER, attachment()).await,
        None,
        "by its volume"
    );
    east.names(1, &["uid-of-db-0", "a1"]);
    for request in [pod(), eviction(), attachment()] {
        assert_eq!(held(client, "admin", request).await, None);
    }
    assert_eq!(held(client, CONTROLLER, attachment()).await, None, "by its UID");
    let node = json!({
        "operation": "DELETE", "resource": { "group": "", "version": "v1", "resource": "nodes" },
        "oldObject": { "metadata": { "name": "h1" } },
    });
    assert!(held(client, "admin", node).await.is_some());

    // The host is back, and the gate object still names its pod.
    client.seen("h1", "UP").await.ok(200);
    assert!(held(client, "admin", pod()).await.is_some());
    assert!(held(client, "admin", attachment()).await.is_some());
    assert_eq!(held(client, CONTROLLER, attachment()).await, None, "it is UP");
    stack.stop().await;
}
