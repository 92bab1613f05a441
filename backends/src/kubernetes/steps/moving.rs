//! Removing one pod of a FENCED node, so that its controller makes it again elsewhere.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt};
use ringfence_core::{Finding, MoveReport, MoveStep, WorkloadState};
use tokio::time::Instant;

use super::Done;
use super::listing::controller;
use super::marks::{hold, lets_pods_start};
use super::node::NodeOf;
use crate::BackendError;
use crate::kubernetes::objects::{NodeObject, Ready, ready};

/// Where a pod of its name is made, it is mostly bound within such a time, and the move can say where. No longer, since volumes are detached
/// after the moves: a set that makes its members one after the other makes this one when those before are ready, and a cluster without room
/// binds none.
const NEXT_IS_BOUND_WITHIN: Duration = Duration::from_millis(300);
/// Between two tries at a pod that stays for now.
const STAYS_PAUSE: Duration = Duration::from_secs(2);

impl NodeOf<'_> {
    /// The pod is gone when no pod of its name has its UID: a pod of that name which was made since is another one.
    pub(super) async fn move_away(&self, step: &MoveStep) -> Result<Done, BackendError> {
        let Some((namespace, name)) = step.workload.name.split_once('/') else {
            let why = format!("{:?} is no namespace and name of a pod", step.workload.name);
            return Ok(Done::NotYet(why, None));
        };
        let api: Api<Pod> = Api::namespaced(self.cluster.client().await?.clone(), namespace);
        let mut is_asked = step.only_look;
        let mut keeps_name = false;
        loop {
            let pod = self.cluster.call(api.get_opt(name)).await?;
            let Some(pod) = pod.as_ref().filter(|pod| is_it(pod, step)) else {
                let next = match keeps_name {
                    true => self.next(&api, name, pod).await?,
                    false => pod,
                };
                return Ok(gone(name, next));
            };
            if !is_asked && !self.may_leave(pod).await? {
                let why = "less is proven of its node than when the pods were listed";
                return Ok(Done::NotYet(why.to_owned(), None));
            }
            if !is_asked && let Some(why) = self.kept_by_volumes(pod).await? {
                if !self.pause_for(self.cluster.settings().volumes.poll).await {
                    return Ok(Done::NotYet(format!("it stays: {why}"), None));
                }
                continue;
            }
            if !is_asked {
                if let Some(why) = self.remove(&api, pod, step.disruption_budgets).await? {
                    if !self.pause_for(STAYS_PAUSE).await {
                        return Ok(Done::NotYet(format!("it stays: {why}"), None));
                    }
                    continue;
                }
                keeps_name = controller(pod).is_some_and(|owner| owner.kind == "StatefulSet");
                is_asked = true;
                continue;
            }
            if !self.has_time() {
                return Ok(Done::NotYet(stays(pod), None));
            }
            self.pause().await;
        }
    }

    /// The pod that was made in place of one that is gone; bound to a node, if it is so in time.
    async fn next(
        &self,
        api: &Api<Pod>,
        name: &str,
        mut next: Option<Pod>,
    ) -> Result<Option<Pod>, BackendError> {
        let begun = Instant::now();
        while next.as_ref().and_then(node).is_none()
            && begun.elapsed() < NEXT_IS_BOUND_WITHIN
            && self.has_time()
        {
            self.pause().await;
            next = self.cluster.call(api.get_opt(name)).await?;
        }
        Ok(next)
    }

    /// Returns why it stays for now. No budget applies to a pod that is being deleted already.
    async fn remove(
        &self,
        api: &Api<Pod>,
        pod: &Pod,
        by_budgets: bool,
    ) -> Result<Option<String>, BackendError> {
        // A kubelet that returns at this moment starts nothing that does not tolerate the taint, if the taint has the effect for that.
        let node = self.mark(hold).await?;
        if let Some(node) = node.filter(lets_pods_start)
            && let Some(why) = self.may_be_back(&node, pod).await?
        {
            return Ok(Some(why.to_owned()));
        }
        if by_budgets && pod.metadata.deletion_timestamp.is_none() {
            return self.evict(pod).await;
        }
        self.delete(api, pod).await?;
        Ok(None)
    }

    /// Why the kubelet may have started the pod again: it has written its state, or the gate has closed since the move was begun.
    async fn may_be_back(&self, node: &NodeObject, pod: &Pod) -> Result<Option<&'static str>, BackendError> {
        if ready(node) != Ready::Unknown {
            return Ok(Some("the condition Ready of its node is not Unknown"));
        }
        let lets_go = self.gate().lets_go(&pod.uid().unwrap_or_default()).await?;
        Ok((!lets_go).then_some("the gate of its node is closed"))
    }

    /// By force, and only this very pod. A refusal because the pod has changed is seen at the next look.
    async fn delete(&self, api: &Api<Pod>, pod: &Pod) -> Result<(), BackendError> {
        let how = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: pod.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match self.cluster.call(api.delete(&pod.name_any(), &how)).await {
            Ok(_) | Err(BackendError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn is_it(pod: &Pod, step: &MoveStep) -> bool {
    pod.uid().as_ref() == Some(&step.workload.id)
}

fn node(pod: &Pod) -> Option<String> {
    pod.spec.as_ref()?.node_name.clone()
}

fn gone(name: &str, next: Option<Pod>) -> Done {
    let to = next.as_ref().and_then(node);
    let detail = match &to {
        Some(node) => format!("it is gone; the next {name} is bound to {node}"),
        None => "it is gone".to_owned(),
    };
    let report = MoveReport {
        state_after: to.as_ref().map(|_| WorkloadState::Running),
        to,
        ..MoveReport::default()
    };
    Done::Found(detail, Finding::Move(report))
}

fn stays(pod: &Pod) -> String {
    match pod.finalizers() {
        [] => "it was deleted by force, and the cluster still has it".to_owned(),
        held => format!(
            "it was deleted by force, and is held by its finalizers: {}",
            held.join(", ")
        ),
    }
}
