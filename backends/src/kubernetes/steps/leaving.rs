//! Which pods leave a FENCED node, by what was proven of it.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use kube::{Api, ResourceExt};
use ringfence_core::{EvacuationPolicy, Movable};

use super::listing::{goes, workload};
use super::node::NodeOf;
use super::volumes::claim_of;
use crate::BackendError;
use crate::kubernetes::volume_health::UsedVolume;

/// The pods of a node.
pub(super) struct Pods {
    /// They are to run elsewhere.
    pub leaving: Vec<Pod>,
    /// They stay bound to the node.
    pub staying: Vec<Pod>,
    /// How many stay although they would go with a node that had stopped.
    pub held_back: usize,
}

impl NodeOf<'_> {
    pub(super) async fn sorted_pods(&self) -> Result<Pods, BackendError> {
        let (going, mut staying): (Vec<Pod>, Vec<Pod>) = self.pods().await?.into_iter().partition(goes);
        let mut leaving = Vec::new();
        let stayed = staying.len();
        for pod in going {
            if self.may_leave(&pod).await? {
                leaving.push(pod);
            } else {
                staying.push(pod);
            }
        }
        let held_back = staying.len() - stayed;
        Ok(Pods {
            leaving,
            staying,
            held_back,
        })
    }

    pub(super) async fn may_leave(&self, pod: &Pod) -> Result<bool, BackendError> {
        match self.movable {
            Movable::All => Ok(true),
            Movable::WithoutVolumes => Ok(shares_nothing(pod)),
            Movable::OnFencedStorage => self.is_on_fenced_storage(pod).await,
        }
    }

    /// A pod without a claim is kept from nothing by a storage that its node is cut off from.
    async fn is_on_fenced_storage(&self, pod: &Pod) -> Result<bool, BackendError> {
        let mut has_claim = false;
        for volume in volumes(pod) {
            if ends_with_its_pod(volume) {
                continue;
            }
            has_claim = true;
            if !self.is_fenced(pod, volume).await? {
                return Ok(false);
            }
        }
        Ok(has_claim)
    }

    /// What cannot be read, or is bound to nothing, is not known to be fenced.
    async fn is_fenced(&self, pod: &Pod, volume: &Volume) -> Result<bool, BackendError> {
        let bound = self.bound(pod, volume).await?;
        let csi = bound.and_then(|bound| bound.spec?.csi);
        Ok(csi.is_some_and(|csi| self.cluster.settings().fenced_storage.contains(&csi.driver)))
    }

    /// Why a pod stays for now that may leave by what is proven: it has opted in, and a volume of it is not known to be usable elsewhere.
    pub(super) async fn kept_by_volumes(&self, pod: &Pod) -> Result<Option<String>, BackendError> {
        if !self.cluster.has_opted_in(pod) {
            return Ok(None);
        }
        for volume in volumes(pod).filter(|volume| !ends_with_its_pod(volume)) {
            let bound = self.bound(pod, volume).await?;
            let used = bound.and_then(|bound| self.used(pod, bound));
            let Some(used) = used else {
                let name = &volume.name;
                return Ok(Some(format!(
                    "volume {name} is no claim on a volume of a CSI driver"
                )));
            };
            if let Err(why) = self.cluster.health_of(&used).await {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    /// Whether a pod stays by the segment's policy, or is kept by its volumes. The cluster would let go of it with all others.
    pub(super) async fn keeps_some(&self, policy: &EvacuationPolicy) -> Result<bool, BackendError> {
        let keys = std::slice::from_ref(&policy.metadata_key);
        for pod in self.pods().await?.iter().filter(|pod| goes(pod)) {
            let stays = policy.leaves(&workload(pod, keys)).is_some();
            if stays || self.kept_by_volumes(pod).await?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn used(&self, pod: &Pod, bound: PersistentVolume) -> Option<UsedVolume> {
        let name = bound.name_any();
        let csi = bound.spec?.csi?;
        Some(UsedVolume {
            name,
            namespace: pod.namespace().unwrap_or_default(),
            driver: csi.driver,
            handle: csi.volume_handle,
            node: self.name.to_owned(),
        })
    }

    /// What is behind a volume of the pod, if that is a claim which is bound.
    async fn bound(&self, pod: &Pod, volume: &Volume) -> Result<Option<PersistentVolume>, BackendError> {
        let Some(claim) = claim_of(pod, volume) else {
            return Ok(None);
        };
        let client = self.cluster.client().await?;
        let claims: Api<PersistentVolumeClaim> =
            Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
        let claim = self.cluster.call(claims.get_opt(&claim)).await?;
        let Some(name) = claim.and_then(|claim| claim.spec?.volume_name) else {
            return Ok(None);
        };
        let all: Api<PersistentVolume> = Api::all(client.clone());
        self.cluster.call(all.get_opt(&name)).await
    }
}

/// Whether its successor elsewhere has nothing in common with a pod that goes on: no volume, and no name.
fn shares_nothing(pod: &Pod) -> bool {
    volumes(pod).all(ends_with_its_pod) && !is_of_stateful_set(pod)
}

fn volumes(pod: &Pod) -> impl Iterator<Item = &Volume> {
    pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten())
}

/// Nothing of it outlives the pod, and no other node sees it.
fn ends_with_its_pod(volume: &Volume) -> bool {
    volume.empty_dir.is_some()
        || volume.config_map.is_some()
        || volume.secret.is_some()
        || volume.projected.is_some()
        || volume.downward_api.is_some()
}

/// Its name is one member's alone, which must not run twice.
fn is_of_stateful_set(pod: &Pod) -> bool {
    let mut owners = pod.owner_references().iter();
    owners.any(|owner| owner.kind == "StatefulSet")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(volumes: &Value, owner: &str) -> Pod {
        let pod = json!({
            "metadata": { "name": "p", "ownerReferences": [
                { "apiVersion": "apps/v1", "kind": owner, "name": "o", "uid": "u", "controller": true },
            ] },
            "spec": { "containers": [], "volumes": volumes },
        });
        serde_json::from_value(pod).unwrap()
    }

    #[test]
    fn a_node_that_is_cut_off_from_the_network_alone_loses_pods_that_share_nothing() {
        let own = json!([
            { "name": "a", "emptyDir": {} },
            { "name": "b", "configMap": { "name": "c" } },
            { "name": "c", "secret": { "secretName": "c" } },
            { "name": "d", "projected": { "sources": [] } },
            { "name": "e", "downwardAPI": {} },
        ]);
        assert!(shares_nothing(&pod(&own, "ReplicaSet")));
        assert!(shares_nothing(&pod(&json!([]), "ReplicaSet")));
        assert!(
            !shares_nothing(&pod(&own, "StatefulSet")),
            "its name is one member's"
        );
        for volume in [
            json!({ "name": "v", "persistentVolumeClaim": { "claimName": "data" } }),
            json!({ "name": "v", "hostPath": { "path": "/srv" } }),
            json!({ "name": "v", "nfs": { "server": "s", "path": "/" } }),
            json!({ "name": "v", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } }),
            json!({ "name": "v", "csi": { "driver": "d" } }),
        ] {
            assert!(!shares_nothing(&pod(&json!([volume]), "ReplicaSet")), "{volume}");
        }
    }
}
