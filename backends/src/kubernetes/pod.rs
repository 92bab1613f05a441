//! One pod, as far as it tells what its eviction removes.

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use ringfence_core::PodToEvict;

use super::Cluster;
use crate::BackendError;

/// The label of pods that are guarded although they have no claim.
const GUARDED: &str = "ringfence.io/guarded";

impl Cluster {
    /// The pod of this name, if the cluster has it.
    ///
    /// # Errors
    /// The cluster does not answer, or refuses.
    pub async fn pod_to_evict(
        &self,
        namespace: &str,
        name: &str,
    ) -> Result<Option<PodToEvict>, BackendError> {
        let api: Api<Pod> = Api::namespaced(self.client().await?.clone(), namespace);
        Ok(self.call(api.get_opt(name)).await?.map(|pod| seen(&pod)))
    }
}

fn seen(pod: &Pod) -> PodToEvict {
    let spec = pod.spec.as_ref();
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let mut volumes = spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let label = pod
        .metadata
        .labels
        .as_ref()
        .and_then(|labels| labels.get(GUARDED));
    PodToEvict {
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        node: spec.and_then(|spec| spec.node_name.clone()),
        // The cluster, too, takes none for 0.
        grace_s: spec
            .and_then(|spec| spec.termination_grace_period_seconds)
            .unwrap_or(0),
        is_guarded: label.is_some_and(|label| label == "true")
            || volumes.any(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some()),
        is_finished: matches!(phase, Some("Failed" | "Succeeded")),
    }
}
