//! The end of the removal of a node's pods: nothing ties a volume to the node any more.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use ringfence_core::{Finding, MAX_LISTED};
use tokio::time::Instant;

use super::Done;
use super::listing::workload;
use super::marks::close;
use super::node::NodeOf;
use crate::BackendError;

/// A cluster that acts on the out-of-service taint detaches by itself within such a time.
const CLUSTER_DETACHES_WITHIN: Duration = Duration::from_secs(3);

/// What is left on a node.
struct Left {
    /// Pods that have to go and are still there.
    pods: usize,
    /// Attachments that no pod needs.
    attachments: Vec<String>,
}

impl Left {
    fn told(&self) -> Option<String> {
        match (self.pods, self.attachments.len()) {
            (0, 0) => None,
            (pods, 0) => Some(format!("{pods} pods are still there")),
            (0, attached) => Some(format!(
                "{attached} volumes are still attached: {}",
                self.attachments.join(", ")
            )),
            (pods, attached) => Some(format!(
                "{pods} pods are still there, and {attached} volumes are attached"
            )),
        }
    }
}

impl NodeOf<'_> {
    /// Waits until no volume is attached that no pod of the node needs; removes attachments that the cluster leaves. Names the pods that have to
    /// go and are there: those that have come since the last listing, beside those that stay by the segment's policy.
    pub(super) async fn empty(&self) -> Result<Done, BackendError> {
        let begun = Instant::now();
        let acts = self.cluster.version().await?.has_out_of_service();
        let patience = if acts {
            CLUSTER_DETACHES_WITHIN
        } else {
            Duration::ZERO
        };
        loop {
            let pods = self.sorted_pods().await?;
            let has_all_gone = pods.leaving.is_empty() && pods.held_back == 0;
            let here = pods.leaving.iter().take(MAX_LISTED);
            let here = here.map(|pod| workload(pod, &[])).collect();
            let bound: Vec<Pod> = pods.leaving.into_iter().chain(pods.staying).collect();
            let left = self.left(&[], &bound).await?;
            let Some(told) = left.told() else {
                if has_all_gone {
                    self.mark(close).await?;
                }
                let detail = format!("no volume is attached to {} that no pod there needs", self.name);
                return Ok(Done::Found(detail, Finding::Workloads(here)));
            };
            if !self.has_time() {
                return Ok(Done::NotYet(told, None));
            }
            if begun.elapsed() >= patience {
                self.detach(&left.attachments).await?;
            }
            self.pause().await;
        }
    }

    /// Waits until a host that has returned has nothing of before: no pod that is being removed, and no volume attached for one.
    pub(super) async fn is_clean(&self) -> Result<Done, BackendError> {
        loop {
            let is_going = |pod: &Pod| pod.metadata.deletion_timestamp.is_some();
            let (going, staying): (Vec<Pod>, Vec<Pod>) = self.pods().await?.into_iter().partition(is_going);
            let left = self.left(&going, &staying).await?;
            let Some(told) = left.told() else {
                return Ok(Done::So(format!(
                    "no pod of before and no volume is left on {}",
                    self.name
                )));
            };
            if !self.has_time() {
                return Ok(Done::NotYet(told, None));
            }
            self.pause().await;
        }
    }

    async fn left(&self, going: &[Pod], staying: &[Pod]) -> Result<Left, BackendError> {
        let attachments = self.needless_attachments(staying).await?;
        Ok(Left {
            pods: going.len(),
            attachments: attachments.iter().map(ResourceExt::name_any).collect(),
        })
    }

    async fn detach(&self, attachments: &[String]) -> Result<(), BackendError> {
        let api: Api<VolumeAttachment> = self.attachments().await?;
        for name in attachments {
            match self
                .cluster
                .call(api.delete(name, &DeleteParams::default()))
                .await
            {
                Ok(_) | Err(BackendError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
