//! The end of the removal of a node's pods: nothing ties a volume to the node any more.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::Api;
use kube::api::DeleteParams;
use tokio::time::Instant;

use super::Done;
use super::listing::goes;
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
    /// Waits until no pod that has to go is there, and no volume is attached for one; removes attachments that the cluster leaves.
    pub(super) async fn empty(&self) -> Result<Done, BackendError> {
        let begun = Instant::now();
        let acts = self.cluster.version().await?.has_out_of_service();
        let patience = if acts {
            CLUSTER_DETACHES_WITHIN
        } else {
            Duration::ZERO
        };
        loop {
            let left = self.left(goes).await?;
            let Some(told) = left.told() else {
                return Ok(Done::So(format!("no pod and no volume is left on {}", self.name)));
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
            let left = self.left(|pod| pod.metadata.deletion_timestamp.is_some()).await?;
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

    async fn left(&self, has_to_go: impl Fn(&Pod) -> bool) -> Result<Left, BackendError> {
        let pods = self.pods().await?;
        let (going, staying): (Vec<&Pod>, Vec<&Pod>) = pods.iter().partition(|pod| has_to_go(pod));
        Ok(Left {
            pods: going.len(),
            attachments: self.needless_attachments(&staying).await?,
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
