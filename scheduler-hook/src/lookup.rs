//! What a cluster is asked for, where its question does not show it.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use ringfence_core::{ClusterUser, NamedToGo, PodToEvict};

/// What a cluster says, or why it does not.
pub type Told<T> = Result<T, String>;

/// Asks clusters of the configuration, each by its name. No answer is remembered.
#[async_trait]
pub trait Clusters: Send + Sync {
    /// The pod of this name; `None` if there is none.
    async fn pod(&self, cluster: &str, namespace: &str, name: &str) -> Told<Option<PodToEvict>>;

    /// What the gate object names of a node of which only some may go; `None` if it names nothing.
    async fn named_to_go(&self, cluster: &str, node: &str) -> Told<Option<NamedToGo>>;

    /// What nodes call the volume of this persistent volume; `None` if there is none, or it is of no CSI driver.
    async fn volume(&self, cluster: &str, persistent_volume: &str) -> Told<Option<String>>;

    /// Whether a user may confirm the fence of a node: the verb `confirm` on the `NodeFence` of its name.
    async fn may_confirm(&self, cluster: &str, user: &ClusterUser, node: &str) -> Told<bool>;
}

/// Who asks the clusters.
#[derive(Clone)]
pub struct ClusterLookup(Arc<dyn Clusters>);

impl ClusterLookup {
    /// Asks by this.
    pub fn new(clusters: impl Clusters + 'static) -> Self {
        Self(Arc::new(clusters))
    }

    pub(crate) fn clusters(&self) -> &dyn Clusters {
        &*self.0
    }
}

impl Default for ClusterLookup {
    fn default() -> Self {
        Self::new(NoClusters)
    }
}

impl fmt::Debug for ClusterLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterLookup").finish_non_exhaustive()
    }
}

/// A configuration without clusters.
struct NoClusters;

fn unknown<T>(cluster: &str) -> Told<T> {
    Err(format!("{cluster} is none of kubernetes.clusters"))
}

#[async_trait]
impl Clusters for NoClusters {
    async fn pod(&self, cluster: &str, _: &str, _: &str) -> Told<Option<PodToEvict>> {
        unknown(cluster)
    }

    async fn named_to_go(&self, cluster: &str, _: &str) -> Told<Option<NamedToGo>> {
        unknown(cluster)
    }

    async fn volume(&self, cluster: &str, _: &str) -> Told<Option<String>> {
        unknown(cluster)
    }

    async fn may_confirm(&self, cluster: &str, _: &ClusterUser, _: &str) -> Told<bool> {
        unknown(cluster)
    }
}
