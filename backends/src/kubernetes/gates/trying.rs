//! Trying gates with requests that change nothing: the API server is told to carry none of them out (`dryRun=All`).
//!
//! Only requests that Ringfence may make anyway are tried, on objects that are there. A gate that is not named here cannot be tried so.

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::super::Cluster;
use super::object;
use crate::{BackendError, GateState, Preflight, SeenGate};

/// Objects of one kind that are looked at for one that a request can be tried with.
const SEEN: u32 = 500;

/// Tries the gates that are installed.
pub(super) async fn all(cluster: &Cluster, gates: &[SeenGate]) -> Result<Vec<Preflight>, BackendError> {
    let open = object::open_nodes(cluster).await?;
    let trial = Trial {
        cluster,
        is_closed: &|node| !open.contains(node),
    };
    let is_there = |name: &str| {
        let mut gates = gates.iter();
        gates.any(|gate| gate.name == name && gate.state == GateState::Installed)
    };
    let mut found = Vec::new();
    if is_there("ringfence-pods") {
        found.push(trial.pods().await?);
    }
    if is_there("ringfence-out-of-service") {
        found.push(trial.out_of_service().await?);
    }
    if is_there("ringfence-node-volumes") {
        found.push(trial.node_volumes().await?);
    }
    if is_there("ringfence-volume-attachments") {
        found.push(trial.attachments().await?);
    }
    Ok(found)
}

struct Trial<'a> {
    cluster: &'a Cluster,
    /// Whether the gates are closed for a node.
    is_closed: &'a (dyn Fn(&str) -> bool + Sync),
}

fn few() -> ListParams {
    ListParams::default().limit(SEEN)
}

fn dry_patch() -> PatchParams {
    PatchParams {
        dry_run: true,
        ..PatchParams::default()
    }
}

impl Trial<'_> {
    async fn pods(&self) -> Result<Preflight, BackendError> {
        let api: Api<Pod> = Api::all(self.cluster.client().await?.clone());
        let pods = self.cluster.call(api.list(&few())).await?;
        let Some(pod) = pods.items.into_iter().find(|pod| self.is_held(pod)) else {
            return Ok(self.nothing("ringfence-pods", "no pod with a volume claim runs"));
        };
        let api: Api<Pod> = Api::namespaced(
            self.cluster.client().await?.clone(),
            &pod.namespace().unwrap_or_default(),
        );
        let how = DeleteParams {
            dry_run: true,
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: pod.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let done = self.cluster.call(api.delete(&pod.name_any(), &how)).await;
        let what = format!("the deletion of pod {} by force", pod.name_any());
        Ok(self.judge("ringfence-pods", &what, done.map(drop)))
    }

    fn is_held(&self, pod: &Pod) -> bool {
        let Some(spec) = &pod.spec else {
            return false;
        };
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let mut volumes = spec.volumes.iter().flatten();
        spec.node_name.as_deref().is_some_and(self.is_closed)
            && phase == Some("Running")
            && volumes.any(|volume| volume.persistent_volume_claim.is_some())
    }

    async fn out_of_service(&self) -> Result<Preflight, BackendError> {
        let api: Api<Node> = Api::all(self.cluster.client().await?.clone());
        let nodes = self.cluster.call(api.list(&few())).await?;
        let is_bare = |node: &&Node| {
            let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
            (self.is_closed)(&node.name_any()) && taints.next().is_none()
        };
        let Some(node) = nodes.items.iter().find(is_bare) else {
            return Ok(self.nothing("ringfence-out-of-service", "every node has a taint"));
        };
        let taint = json!({ "key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute" });
        let change = Patch::Merge(json!({
            "metadata": { "resourceVersion": node.metadata.resource_version },
            "spec": { "taints": [taint] },
        }));
        let done = self
            .cluster
            .call(api.patch(&node.name_any(), &dry_patch(), &change))
            .await;
        let what = format!("the out-of-service taint on node {}", node.name_any());
        Ok(self.judge("ringfence-out-of-service", &what, done.map(drop)))
    }

    async fn node_volumes(&self) -> Result<Preflight, BackendError> {
        let api: Api<Node> = Api::all(self.cluster.client().await?.clone());
        let nodes = self.cluster.call(api.list(&few())).await?;
        let uses = |node: &&Node| {
            let status = node.status.iter();
            let mut used = status.flat_map(|status| status.volumes_in_use.iter().flatten());
            (self.is_closed)(&node.name_any()) && used.next().is_some()
        };
        let Some(node) = nodes.items.iter().find(uses) else {
            return Ok(self.nothing("ringfence-node-volumes", "no node uses a volume"));
        };
        let change = Patch::Merge(json!({ "status": { "volumesInUse": [] } }));
        let done = self
            .cluster
            .call(api.patch_status(&node.name_any(), &dry_patch(), &change))
            .await;
        let what = format!("that node {} uses no volume", node.name_any());
        Ok(self.judge("ringfence-node-volumes", &what, done.map(drop)))
    }

    async fn attachments(&self) -> Result<Preflight, BackendError> {
        let api: Api<VolumeAttachment> = Api::all(self.cluster.client().await?.clone());
        let attached = self.cluster.call(api.list(&few())).await?;
        let is_held = |one: &&VolumeAttachment| (self.is_closed)(&one.spec.node_name);
        let Some(one) = attached.items.iter().find(is_held) else {
            return Ok(self.nothing("ringfence-volume-attachments", "no volume is attached"));
        };
        let how = DeleteParams {
            dry_run: true,
            ..DeleteParams::default()
        };
        let done = self.cluster.call(api.delete(&one.name_any(), &how)).await;
        let what = format!("the deletion of attachment {}", one.name_any());
        Ok(self.judge("ringfence-volume-attachments", &what, done.map(drop)))
    }

    /// A gate names itself in what it says.
    fn judge(&self, gate: &str, what: &str, done: Result<(), BackendError>) -> Preflight {
        let of = &self.cluster.settings().name;
        match done {
            Err(BackendError::Refused { why, .. } | BackendError::Denied { why, .. }) if why.contains(gate) => {
                Preflight::Good(format!("{of}: the gate {gate} has refused {what}, which was tried without effect"))
            }
            Ok(()) => Preflight::Warning(
                format!("{of}: the gate {gate} has let through {what}, which was tried without effect; its node is not FENCED"),
                "look whether the API server has the admission plugin ValidatingAdmissionPolicy, and whether Ringfence's account is in \
                 the group ringfence:break-glass"
                    .to_owned(),
            ),
            Err(error) => Preflight::Warning(
                format!("{of}: the gate {gate} could not be tried by {what}: {error}"),
                "look at the API server's log".to_owned(),
            ),
        }
    }

    fn nothing(&self, gate: &str, why: &str) -> Preflight {
        let of = &self.cluster.settings().name;
        Preflight::Good(format!("{of}: the gate {gate} was not tried, since {why}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_is_not_carried_out() {
        let how = DeleteParams {
            dry_run: true,
            grace_period_seconds: Some(0),
            ..DeleteParams::default()
        };
        assert_eq!(serde_json::to_value(&how).unwrap()["dryRun"], json!(["All"]));
        let request = kube::core::Request::new("/api/v1/nodes");
        let request = request
            .patch("n1", &dry_patch(), &Patch::Merge(json!({})))
            .unwrap();
        assert!(
            request.uri().to_string().contains("dryRun=All"),
            "{}",
            request.uri()
        );
    }
}
