//! Nodes without kubelets: objects, whose leases this process renews, and pods that are bound to them and run nowhere.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use parking_lot::Mutex;
use serde_json::json;
use tokio::task::JoinSet;

use crate::clock::now;
use crate::error::BenchError;

/// The namespace of the pods.
const PODS: &str = "default";
const LEASES: &str = "kube-node-lease";
/// Calls at a time by which objects are made.
const MADE_AT_ONCE: usize = 16;
/// Calls at a time by which leases are renewed.
const RENEWERS: usize = 16;

/// Nodes whose leases are renewed until they fall silent.
pub struct Crowd {
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

struct Shared {
    leases: Api<Lease>,
    /// When each node that is not silent was last renewed.
    renewed_at: Mutex<HashMap<String, Instant>>,
    renewals: AtomicU64,
    failures: AtomicU64,
}

impl Crowd {
    /// Makes the nodes and their leases, and renews each lease so often.
    pub async fn make(client: &Client, names: &[String], every: Duration) -> Result<Self, BenchError> {
        let nodes: Api<Node> = Api::all(client.clone());
        let leases: Api<Lease> = Api::namespaced(client.clone(), LEASES);
        at_once(names, MADE_AT_ONCE, |name| {
            let (nodes, leases) = (&nodes, &leases);
            async move {
                let how = PostParams::default();
                nodes.create(&how, &node(name)?).await?;
                leases.create(&how, &lease(name)?).await?;
                Ok(())
            }
        })
        .await?;
        let begun = Instant::now();
        let shared = Arc::new(Shared {
            leases,
            renewed_at: Mutex::new(names.iter().map(|name| (name.clone(), begun)).collect()),
            renewals: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        });
        let mut tasks = JoinSet::new();
        for first in 0..RENEWERS {
            let share: Vec<String> = names.iter().skip(first).step_by(RENEWERS).cloned().collect();
            if !share.is_empty() {
                tasks.spawn(renew(Arc::clone(&shared), share, every));
            }
        }
        Ok(Self {
            shared,
            _tasks: tasks,
        })
    }

    /// Renews the lease of this node no more. Returns when it was last renewed.
    pub fn silence(&self, name: &str) -> Option<Instant> {
        self.shared.renewed_at.lock().remove(name)
    }

    /// Renewals that the cluster has taken, and those that it has not.
    pub fn renewals(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.shared.renewals), read(&self.shared.failures))
    }
}

/// Renews a share of the leases, evenly spread over the time.
async fn renew(shared: Arc<Shared>, names: Vec<String>, every: Duration) {
    let pause = every / u32::try_from(names.len()).unwrap_or(u32::MAX);
    let mut due = tokio::time::interval(pause);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Burst);
    for name in names.iter().cycle() {
        due.tick().await;
        let is_silent = !shared.renewed_at.lock().contains_key(name);
        if !is_silent {
            shared.renew(name).await;
        }
    }
}

impl Shared {
    async fn renew(&self, name: &str) {
        let change = json!({ "spec": { "renewTime": micro_time() } });
        let done = self
            .leases
            .patch(name, &PatchParams::default(), &Patch::Merge(change))
            .await;
        match done {
            Ok(_) => {
                self.renewals.fetch_add(1, Ordering::Relaxed);
                if let Some(at) = self.renewed_at.lock().get_mut(name) {
                    *at = Instant::now();
                }
            }
            Err(_) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// So many pods for each of these nodes. Returns them as the cluster has them.
pub async fn bind_pods(client: &Client, nodes: &[String], each: usize) -> Result<Vec<Pod>, BenchError> {
    let api: Api<Pod> = Api::namespaced(client.clone(), PODS);
    let wanted: Vec<(&String, usize)> = nodes
        .iter()
        .flat_map(|node| (0..each).map(move |number| (node, number)))
        .collect();
    let made = stream::iter(wanted).map(|(node, number)| {
        let api = &api;
        async move {
            let pod = pod(node, number)?;
            Ok::<_, BenchError>(api.create(&PostParams::default(), &pod).await?)
        }
    });
    made.buffer_unordered(MADE_AT_ONCE).try_collect().await
}

/// Deletes pods by force, each if it still is the one with this UID, so many at once: the floor.
pub async fn delete_pods(client: &Client, pods: &[Pod], limit: usize) -> Result<(), BenchError> {
    let api: Api<Pod> = Api::namespaced(client.clone(), PODS);
    at_once(pods, limit, |pod| {
        let api = &api;
        async move {
            api.delete(&pod.name_any(), &by_force(pod)).await?;
            Ok(())
        }
    })
    .await
}

/// As Ringfence deletes.
pub fn by_force(pod: &Pod) -> DeleteParams {
    DeleteParams {
        grace_period_seconds: Some(0),
        preconditions: Some(Preconditions {
            uid: pod.uid(),
            resource_version: None,
        }),
        ..DeleteParams::default()
    }
}

/// Does one thing to each, so many at once.
pub async fn at_once<'a, T, F>(
    all: &'a [T],
    limit: usize,
    each: impl Fn(&'a T) -> F,
) -> Result<(), BenchError>
where
    F: Future<Output = Result<(), BenchError>>,
{
    let done = stream::iter(all).map(each).buffer_unordered(limit);
    done.try_collect().await
}

fn node(name: &str) -> Result<Node, BenchError> {
    let room = json!({ "cpu": "64", "memory": "256Gi", "pods": "1000" });
    let ready = json!({ "type": "Ready", "status": "True", "reason": "KubeletReady" });
    read(json!({
        "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
        "status": {
            "capacity": room, "allocatable": room, "conditions": [ready],
            "nodeInfo": {
                "bootID": name, "machineID": "", "systemUUID": "", "kernelVersion": "6.1", "osImage": "none",
                "containerRuntimeVersion": "none://0", "kubeletVersion": "v1.20.2", "kubeProxyVersion": "v1.20.2",
                "operatingSystem": "linux", "architecture": "amd64",
            },
        },
    }))
}

fn lease(name: &str) -> Result<Lease, BenchError> {
    read(json!({
        "metadata": { "name": name },
        "spec": { "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": micro_time() },
    }))
}

fn pod(node: &str, number: usize) -> Result<Pod, BenchError> {
    read(json!({
        "metadata": { "name": format!("{node}-{number}"), "labels": { "of": "bench" } },
        "spec": {
            "nodeName": node,
            "automountServiceAccountToken": false,
            "containers": [{ "name": "main", "image": "none" }],
        },
    }))
}

fn read<T: serde::de::DeserializeOwned>(object: serde_json::Value) -> Result<T, BenchError> {
    serde_json::from_value(object).map_err(BenchError::from)
}

/// As kubelets write it.
fn micro_time() -> String {
    now().format("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}
