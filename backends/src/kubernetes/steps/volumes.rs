//! The attachments of volumes to a node.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::node::NodeOf;
use crate::BackendError;

/// Attachments in one answer.
const PAGE: u32 = 500;

impl NodeOf<'_> {
    /// The cluster waits six minutes for the word of a node's kubelet that its volumes are not in use any more. A node that is proven to be
    /// cut off cannot give it.
    pub(super) async fn forget_volumes_in_use(&self) -> Result<(), BackendError> {
        let api = self.api().await?;
        let change = Patch::Merge(json!({ "status": { "volumesInUse": [] } }));
        let how = PatchParams::default();
        match self
            .cluster
            .call(api.patch_status(self.name, &how, &change))
            .await
        {
            Ok(_) | Err(BackendError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn attachments(&self) -> Result<Api<VolumeAttachment>, BackendError> {
        Ok(Api::all(self.cluster.client().await?.clone()))
    }

    /// The names of the attachments to the node that no pod needs which stays there.
    pub(super) async fn needless_attachments(&self, staying: &[&Pod]) -> Result<Vec<String>, BackendError> {
        let attached = self.all_attachments().await?;
        if attached.is_empty() {
            return Ok(Vec::new());
        }
        let needed = self.volumes_of(staying).await?;
        let is_needless = |attachment: &VolumeAttachment| {
            let volume = attachment.spec.source.persistent_volume_name.as_ref();
            volume.is_some_and(|volume| !needed.contains(volume))
        };
        let needless = attached.iter().filter(|attachment| is_needless(attachment));
        Ok(needless.map(ResourceExt::name_any).collect())
    }

    async fn all_attachments(&self) -> Result<Vec<VolumeAttachment>, BackendError> {
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
    async fn volumes_of(&self, pods: &[&Pod]) -> Result<BTreeSet<String>, BackendError> {
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

/// The claims that a pod names, and those that are made for the pod.
fn claims_of(pod: &Pod) -> Vec<String> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let claim = |volume: &k8s_openapi::api::core::v1::Volume| {
        let named = volume
            .persistent_volume_claim
            .as_ref()
            .map(|claim| claim.claim_name.clone());
        let made = volume
            .ephemeral
            .as_ref()
            .map(|_| format!("{}-{}", pod.name_any(), volume.name));
        named.or(made)
    };
    volumes.filter_map(claim).collect()
}
