//! Whether a node has left its cluster for good. All is read from the cluster now, and nothing from a watch.

use kube::ResourceExt;
use ringfence_core::{Generation, Movable};

use super::node::NodeOf;
use crate::kubernetes::Cluster;
use crate::kubernetes::node_fences::{self, MADE_BY};
use crate::{BackendError, Departure, TimeGiven};

pub(in crate::kubernetes) async fn departure(
    cluster: &Cluster,
    host: &str,
) -> Result<Departure, BackendError> {
    let node = NodeOf {
        cluster,
        name: host,
        generation: Generation::default(),
        movable: Movable::All,
        time: TimeGiven::of(cluster.settings().timeout),
    };
    let remains = match node.read().await? {
        Some(_) => Some("its Node is there".to_owned()),
        None => node.left_behind().await?,
    };
    Ok(remains.map_or(Departure::Gone, Departure::Remains))
}

impl NodeOf<'_> {
    /// What still names a node that is not there.
    async fn left_behind(&self) -> Result<Option<String>, BackendError> {
        if let Some(pod) = self.pods().await?.first() {
            let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
            return Ok(Some(format!("pod {name} is bound to its Node")));
        }
        if let Some(attachment) = self.all_attachments().await?.first() {
            let name = attachment.name_any();
            return Ok(Some(format!("VolumeAttachment {name} is to its Node")));
        }
        Ok(self.is_named_by_hand().await?.then(|| {
            let name = self.name;
            format!("NodeFence {name}, which a person has made, names its Node")
        }))
    }

    async fn is_named_by_hand(&self) -> Result<bool, BackendError> {
        let uses = self.cluster.settings().uses;
        if !uses.has_operator && !uses.has_records {
            return Ok(false);
        }
        let api = node_fences::api(self.cluster).await?;
        let fence = self.cluster.call(api.get_opt(self.name)).await?;
        Ok(fence.is_some_and(|fence| !fence.labels().contains_key(MADE_BY)))
    }
}
