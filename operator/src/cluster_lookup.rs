//! How a scheduler hook asks clusters.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use ringfence_backends::Platform;
use ringfence_backends::kubernetes::Cluster;
use ringfence_core::{ClusterUser, NamedToGo, PodToEvict, error_chain};
use ringfence_scheduler_hook::{Clusters, Told};

/// Clusters by their names, as a scheduler hook asks them.
#[derive(Debug)]
pub struct HookClusters(BTreeMap<String, Arc<Cluster>>);

impl HookClusters {
    /// These clusters, by their names in the configuration. No call is made yet.
    #[must_use]
    pub fn new(clusters: Vec<Arc<Cluster>>) -> Self {
        let by_name = |cluster: Arc<Cluster>| (cluster.name().to_owned(), cluster);
        Self(clusters.into_iter().map(by_name).collect())
    }

    fn of(&self, cluster: &str) -> Told<&Cluster> {
        let found = self.0.get(cluster).map(|cluster| &**cluster);
        found.ok_or_else(|| format!("{cluster} is none of kubernetes.clusters"))
    }
}

#[async_trait]
impl Clusters for HookClusters {
    async fn pod(&self, cluster: &str, namespace: &str, name: &str) -> Told<Option<PodToEvict>> {
        let pod = self.of(cluster)?.pod_to_evict(namespace, name).await;
        pod.map_err(|error| error_chain(&error))
    }

    async fn named_to_go(&self, cluster: &str, node: &str) -> Told<Option<NamedToGo>> {
        let named = self.of(cluster)?.named_to_go(node).await;
        named.map_err(|error| error_chain(&error))
    }

    async fn volume(&self, cluster: &str, persistent_volume: &str) -> Told<Option<String>> {
        let volume = self.of(cluster)?.volume_on_nodes(persistent_volume).await;
        volume.map_err(|error| error_chain(&error))
    }

    async fn may_confirm(&self, cluster: &str, user: &ClusterUser, node: &str) -> Told<bool> {
        let may = self.of(cluster)?.may_confirm(user.clone(), node).await;
        may.map_err(|error| error_chain(&error))
    }
}
