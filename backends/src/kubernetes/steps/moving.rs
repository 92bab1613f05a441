//! Removing one pod of a FENCED node, so that its controller makes it again elsewhere.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt};
use ringfence_core::{Finding, MoveReport, MoveStep, WorkloadState};

use super::Done;
use super::node::NodeOf;
use crate::BackendError;

impl NodeOf<'_> {
    /// The pod is gone when no pod of its name has its UID: a pod of that name which was made since is another one.
    pub(super) async fn move_away(&self, step: &MoveStep) -> Result<Done, BackendError> {
        let Some((namespace, name)) = step.workload.name.split_once('/') else {
            let why = format!("{:?} is no namespace and name of a pod", step.workload.name);
            return Ok(Done::NotYet(why, None));
        };
        let api: Api<Pod> = Api::namespaced(self.cluster.client().await?.clone(), namespace);
        let mut is_asked = step.only_look;
        loop {
            let pod = self.cluster.call(api.get_opt(name)).await?;
            let Some(pod) = pod
                .as_ref()
                .filter(|pod| pod.uid().as_ref() == Some(&step.workload.id))
            else {
                return Ok(gone(name, pod));
            };
            if !is_asked {
                // A kubelet that returns at this moment starts nothing that does not tolerate the taint.
                self.isolate().await?;
                self.delete(&api, pod).await?;
                is_asked = true;
                continue;
            }
            if !self.has_time() {
                return Ok(Done::NotYet(stays(pod), None));
            }
            self.pause().await;
        }
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

fn gone(name: &str, successor: Option<Pod>) -> Done {
    let spec = successor.and_then(|pod| pod.spec);
    let to = spec.and_then(|spec| spec.node_name);
    let detail = match &to {
        Some(node) => format!("it is gone; {name} is bound to {node} now"),
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
