//! Pods that a cluster is asked for, where a question does not show the pod.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

/// A pod, as far as it tells what its eviction removes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodToEvict {
    /// The node that it is bound to.
    pub node: Option<String>,
    /// Its own grace period, in seconds.
    pub grace_s: i64,
    /// Whether it has a volume claim, or the label of guarded pods.
    pub is_guarded: bool,
    /// Whether its kubelet has called it finished.
    pub is_finished: bool,
}

/// A pod that was looked up: none if the cluster has none of the name, or why that is not known.
pub type FoundPod = Result<Option<PodToEvict>, String>;
type Look = dyn Fn(&str, &str, &str) -> Looking + Send + Sync;
type Looking = Pin<Box<dyn Future<Output = FoundPod> + Send>>;

/// Looks up pods by cluster, namespace and name.
#[derive(Clone)]
pub struct PodLookup(Arc<Look>);

impl PodLookup {
    /// Looks up by this.
    pub fn new(look: impl Fn(&str, &str, &str) -> Looking + Send + Sync + 'static) -> Self {
        Self(Arc::new(look))
    }

    pub(crate) async fn look(&self, cluster: &str, namespace: &str, name: &str) -> FoundPod {
        (self.0)(cluster, namespace, name).await
    }
}

impl Default for PodLookup {
    fn default() -> Self {
        Self::new(|cluster, _, _| {
            let why = format!("{cluster} is none of kubernetes.clusters");
            Box::pin(async move { Err(why) })
        })
    }
}

impl fmt::Debug for PodLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PodLookup").finish_non_exhaustive()
    }
}
