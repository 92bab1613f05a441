//! The attachments of volumes to a node.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod, Volume};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use ringfence_core::Movable;
use serde_json::json;

use super::node::NodeOf;
use crate::BackendError;
use crate::kubernetes::Cluster;

/// What nodes call a volume of a CSI driver begins so; `DRIVER^HANDLE` follows.
const CSI: &str = "kubernetes.io/csi/";
/// Attachments in one answer.
const PAGE: u32 = 500;

impl NodeOf<'_> {
    /// The cluster waits six minutes for the word of a node's kubelet that its volumes are not in use any more. A node that is proven to be
    /// cut off from them cannot give it.
    pub(super) async fn forget_volumes_in_use(&self) -> Result<(), BackendError> {
        let api: Api<Node> = Api::all(self.cluster.client().await?.clone());
        let Some(node) = self.cluster.call(api.get_opt(self.name)).await? else {
            return Ok(());
        };
        let in_use = in_use(&node);
        let (cut_off, kept): (Vec<String>, Vec<String>) =
            in_use.into_iter().partition(|volume| self.is_cut_off(volume));
        if cut_off.is_empty() {
            return Ok(());
        }
        // A kubelet that is back has written since: its word counts.
        let version = node.metadata.resource_version;
        let change =
            json!({ "metadata": { "resourceVersion": version }, "status": { "volumesInUse": kept } });
        let how = PatchParams::default();
        match self
            .cluster
            .call(api.patch_status(self.name, &how, &Patch::Merge(change)))
            .await
        {
            Ok(_) | Err(BackendError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The volumes that the node's kubelet has said to use, and that the node is cut off from.
    pub(super) async fn volumes_without_use(&self) -> Result<Vec<String>, BackendError> {
        let api: Api<Node> = Api::all(self.cluster.client().await?.clone());
        let node = self.cluster.call(api.get_opt(self.name)).await?;
        let in_use = node.as_ref().map(in_use).unwrap_or_default();
        Ok(in_use
            .into_iter()
            .filter(|volume| self.is_cut_off(volume))
            .collect())
    }

    /// By the cluster's own name of a volume of a CSI driver: `kubernetes.io/csi/DRIVER^HANDLE`.
    fn is_cut_off(&self, volume: &str) -> bool {
        let driver = volume.strip_prefix(CSI);
        let driver = driver
            .and_then(|rest| rest.split_once('^'))
            .map(|(driver, _)| driver);
        self.is_cut_off_from(driver.unwrap_or_default())
    }

    /// Whether nothing on the node can write to the storage of this CSI driver. A pod whose object is gone may still run there.
    fn is_cut_off_from(&self, driver: &str) -> bool {
        match self.movable {
            Movable::All => true,
            Movable::OnFencedStorage => {
                let mut fenced = self.cluster.settings().fenced_storage.iter();
                fenced.any(|one| one == driver)
            }
            Movable::WithoutVolumes => false,
        }
    }

    pub(super) async fn attachments(&self) -> Result<Api<VolumeAttachment>, BackendError> {
        Ok(Api::all(self.cluster.client().await?.clone()))
    }

    /// The attachments to the node that no pod needs which stays there.
    pub(super) async fn needless_attachments(
        &self,
        staying: &[Pod],
    ) -> Result<Vec<VolumeAttachment>, BackendError> {
        let attached = self.all_attachments().await?;
        if attached.is_empty() {
            return Ok(Vec::new());
        }
        let needed = self.volumes_of(staying).await?;
        let is_needless = |attachment: &VolumeAttachment| {
            let volume = attachment.spec.source.persistent_volume_name.as_ref();
            let is_cut_off = self.is_cut_off_from(&attachment.spec.attacher);
            is_cut_off && volume.is_some_and(|volume| !needed.contains(volume))
        };
        Ok(attached.into_iter().filter(is_needless).collect())
    }

    /// All attachments to the node.
    pub(super) async fn all_attachments(&self) -> Result<Vec<VolumeAttachment>, BackendError> {
        let api = self.attachments().await?;
        let mut params = ListParams::default().limit(PAGE);
        let mut attached = Vec::new();
        loop {
            let page = self.cluster.call(api.list(&params)).await?;
            let mine = page
                .items
                .into_iter()
                .filter(|one| one.spec.node_name == self.name);
            attached.extend(mine);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(attached),
            }
        }
    }

    /// The volumes that these pods have claimed.
    async fn volumes_of(&self, pods: &[Pod]) -> Result<BTreeSet<String>, BackendError> {
        let client = self.cluster.client().await?;
        let mut volumes = BTreeSet::new();
        for pod in pods {
            let claims: Api<PersistentVolumeClaim> =
                Api::namespaced(client.clone(), &pod.namespace().unwrap_or_default());
            for claim in claims_of(pod) {
                let claim = self.cluster.call(claims.get_opt(&claim)).await?;
                let spec = claim.and_then(|claim| claim.spec);
                volumes.extend(spec.and_then(|spec| spec.volume_name));
            }
        }
        Ok(volumes)
    }
}

impl Cluster {
    /// What nodes call the volume of this persistent volume; `None` if there is none, or it is of no CSI driver.
    ///
    /// # Errors
    /// The cluster does not answer, or refuses.
    pub async fn volume_on_nodes(&self, persistent_volume: &str) -> Result<Option<String>, BackendError> {
        let api: Api<PersistentVolume> = Api::all(self.client().await?.clone());
        let volume = self.call(api.get_opt(persistent_volume)).await?;
        let csi = volume.and_then(|volume| volume.spec?.csi);
        Ok(csi.map(|csi| format!("{CSI}{}^{}", csi.driver, csi.volume_handle)))
    }
}

fn in_use(node: &Node) -> Vec<String> {
    let status = node.status.as_ref();
    let volumes = status.and_then(|status| status.volumes_in_use.as_ref());
    volumes.cloned().unwrap_or_default()
}

/// The claims that a pod names, and those that are made for the pod.
fn claims_of(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| claim_of(pod, volume)).collect()
}

/// The claim behind a volume of the pod, where there is one.
pub(super) fn claim_of(pod: &Pod, volume: &Volume) -> Option<String> {
    let named = volume.persistent_volume_claim.as_ref();
    let named = named.map(|claim| claim.claim_name.clone());
    let made = volume.ephemeral.as_ref();
    named.or_else(|| made.map(|_| format!("{}-{}", pod.name_any(), volume.name)))
}
