//! A control plane of its own for a measurement, and a client without Ringfence.

use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use ringfence_lab::{ControlPlane, ControlPlaneOptions, KubernetesPrograms};
use serde_json::json;
use tokio::task::block_in_place;

use crate::error::BenchError;
use crate::plant::{Plant, Settings};

/// The cluster's name in the configuration.
pub const CLUSTER: &str = "lab";
/// The namespace of Ringfence's own objects: the default.
const NAMESPACE: &str = "ringfence";

/// A cluster.
pub struct Cluster {
    pub plane: ControlPlane,
    /// Without a limit of its own, as Ringfence's.
    pub client: kube::Client,
}

impl Cluster {
    /// Whether the programs are there.
    pub fn is_possible() -> bool {
        KubernetesPrograms::from_environment().is_some()
    }

    /// Starts a control plane without nodes.
    pub async fn start(options: ControlPlaneOptions) -> Result<Self, BenchError> {
        let programs = KubernetesPrograms::from_environment();
        let programs = programs.ok_or(BenchError::Unset(ringfence_lab::KUBERNETES))?;
        let plane = block_in_place(|| {
            let plane = ControlPlane::start(&programs, options)?;
            let namespace = json!({ "metadata": { "name": NAMESPACE } });
            plane.api().post("/api/v1/namespaces", &namespace)?;
            Ok::<_, BenchError>(plane)
        })?;
        let kubeconfig = Kubeconfig::read_from(plane.kubeconfig())?;
        let current = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &current).await?;
        let client = kube::Client::try_from(config)?;
        Ok(Self { plane, client })
    }

    /// Settings by which Ringfence watches the cluster.
    pub fn settings(&self, down_after: Duration) -> Settings {
        let kubeconfig = self.plane.kubeconfig().display().to_string();
        Settings::default()
            .with("RINGFENCE_KUBERNETES_CLUSTERS", CLUSTER)
            .with("RINGFENCE_KUBERNETES_KUBECONFIG", kubeconfig)
            .with(
                "RINGFENCE_KUBERNETES_DOWN_AFTER_S",
                down_after.as_secs().to_string(),
            )
            .with("RINGFENCE_KUBERNETES_READY_FOR_S", "2")
    }
}

/// Adds a node as a host.
pub async fn add_host(plant: &Plant, node: &str, parameters: serde_json::Value) {
    let host = json!({ "name": node, "backend": "kubernetes", "cloud": CLUSTER, "parameters": parameters });
    plant.client.post("/hosts", host).await.ok(201);
}

/// Waits until a host's failure state is this one.
pub async fn until_seen(plant: &Plant, host: &str, state: &str) {
    let path = format!("/hosts/{host}");
    let is_it = |host: &serde_json::Value| host["failure_state"] == state;
    plant
        .client
        .until_within(&path, Duration::from_secs(120), is_it)
        .await;
}
