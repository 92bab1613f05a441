//! Keeping pods off a node, and telling the cluster that the node is down.

use kube::ResourceExt;
use ringfence_core::{EvacuationPolicy, MAX_LISTED, Movable};

use super::Done;
use super::marks::{FENCED, hold, hold_all, hold_one_by_one, take_out};
use super::node::{Marks, NodeOf};
use crate::BackendError;
use crate::kubernetes::objects::NodeObject;

impl NodeOf<'_> {
    pub(super) fn no_node(&self) -> Done {
        Done::So(format!(
            "{} has no node {}",
            self.cluster.settings().name,
            self.name
        ))
    }

    /// Before anything is proven, and after it, where it is not chosen yet whether pods go one by one.
    pub(super) async fn isolate(&self, one_by_one: bool) -> Result<Done, BackendError> {
        let how = match one_by_one {
            true => hold_one_by_one,
            false => hold_all,
        };
        self.isolate_by(how).await
    }

    async fn isolate_by(&self, how: fn(&NodeObject, &mut Marks)) -> Result<Done, BackendError> {
        let Some(_) = self.mark(how).await? else {
            return Ok(self.no_node());
        };
        Ok(Done::So(format!(
            "{} is cordoned and has the taint {FENCED}",
            self.name
        )))
    }

    /// After FENCED. The cluster's gates are opened first: they hold the taint, and what the cluster does because of it. A cluster that does
    /// not act on the taint is not given it, nor one that would remove a pod because of it that has to stay. Before an evacuation all have to,
    /// and all that go one by one.
    pub(super) async fn mark_down(
        &self,
        evacuation: Option<&EvacuationPolicy>,
    ) -> Result<Done, BackendError> {
        let how = match evacuation {
            None => hold,
            Some(policy) if policy.moves_one_by_one() => hold_one_by_one,
            Some(_) => hold_all,
        };
        if self.movable != Movable::All {
            // The cluster lets go of all pods of a node, or of none, and its gates of those that are named.
            let names = self.names_of_going().await?;
            self.gate().open_for(self.movable, names).await?;
            self.forget_volumes_in_use().await?;
            return self.isolate_by(how).await;
        }
        self.gate().open().await?;
        let acts = self.cluster.version().await?.has_out_of_service();
        let leaves_all = match evacuation {
            Some(policy) if acts && policy.lets_go_together() => !self.keeps_some(policy).await?,
            _ => false,
        };
        if !leaves_all {
            let done = self.isolate_by(how).await?;
            self.forget_volumes_in_use().await?;
            return Ok(done);
        }
        let Some(_) = self.mark(take_out).await? else {
            return Ok(self.no_node());
        };
        Ok(Done::So(format!("{} is out of service", self.name)))
    }

    /// What may go while the node is cut off from some of its storage alone, as the gates know it.
    async fn names_of_going(&self) -> Result<impl Iterator<Item = String> + use<>, BackendError> {
        let pods = self.sorted_pods().await?;
        let attachments = self.needless_attachments(&pods.staying).await?;
        let volumes = self.volumes_without_use().await?;
        let pods = pods.leaving.into_iter().filter_map(|pod| pod.uid());
        let attachments = attachments.into_iter().filter_map(|one| one.uid());
        Ok(pods
            .take(MAX_LISTED)
            .chain(attachments.take(MAX_LISTED))
            .chain(volumes.into_iter().take(MAX_LISTED)))
    }
}
