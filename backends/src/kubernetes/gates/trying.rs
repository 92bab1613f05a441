//! Trying gates with requests that change nothing: the API server is told to carry none of them out (`dryRun=All`).
//!
//! Only requests that Ringfence may make anyway are tried, on objects that are there. A gate that is not named here cannot be tried so.

use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::{Api, ResourceExt};
use serde_json::json;

use super::super::{Cluster, node_fences};
use super::installed::{self, ATTACHMENTS, NODE_VOLUMES, OUT_OF_SERVICE};
use super::verdict::{Gate, Sort, Tried};
use super::{object, webhooks, words};
use crate::{BackendError, GateState, Preflight, SeenGate};

/// Objects of one kind that are looked at for one that a request can be tried with.
const SEEN: u32 = 500;
/// No cluster has a user of this name.
const NO_USER: &str = "ringfence:doctor";

/// The gates that can be tried.
const TRIED: [&str; 8] = [
    installed::PODS,
    OUT_OF_SERVICE,
    NODE_VOLUMES,
    ATTACHMENTS,
    words::POLICY,
    webhooks::PODS,
    webhooks::ATTACHMENTS,
    webhooks::CONFIRMATIONS,
];

/// Tries the policies that are installed.
pub(super) async fn policies(cluster: &Cluster, gates: &[SeenGate]) -> Vec<Preflight> {
    let installed = gates.iter().filter(|gate| gate.state == GateState::Installed);
    let gates: Vec<Gate<'_>> = installed.map(|gate| Gate::of(Sort::Policy, gate.name)).collect();
    all(cluster, &gates).await
}

/// Tries these webhooks, which are installed.
pub(super) async fn webhooks(cluster: &Cluster, installed: &[String]) -> Vec<Preflight> {
    let gates: Vec<Gate<'_>> = installed
        .iter()
        .map(|name| Gate::of(Sort::Webhook, name))
        .collect();
    all(cluster, &gates).await
}

/// A gate that cannot be tried, such as for want of a right, does not hide what is found of the others.
async fn all(cluster: &Cluster, gates: &[Gate<'_>]) -> Vec<Preflight> {
    let of = &cluster.settings().name;
    let open = match object::open_nodes(cluster).await {
        Ok(open) => open,
        Err(error) => {
            let tried = gates.iter().filter(|gate| TRIED.contains(&gate.name));
            return tried.map(|gate| gate.untried(of, &error)).collect();
        }
    };
    let trial = Trial {
        cluster,
        is_closed: &|node| !open.contains(node),
    };
    let mut found = Vec::new();
    for gate in gates {
        match trial.of(gate).await {
            Ok(tried) => found.extend(tried.map(|tried| gate.judge(of, tried))),
            Err(error) => found.push(gate.untried(of, &error)),
        }
    }
    found
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

fn dry_delete(uid: Option<String>) -> DeleteParams {
    DeleteParams {
        dry_run: true,
        preconditions: Some(Preconditions {
            uid,
            resource_version: None,
        }),
        ..DeleteParams::default()
    }
}

fn is_labelled(pod: &Pod) -> bool {
    pod.labels()
        .get("ringfence.io/guarded")
        .is_some_and(|value| value == "true")
}

fn has_claim(pod: &Pod) -> bool {
    let mut volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.any(|volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some())
}

impl Trial<'_> {
    /// `None` for a gate that cannot be tried.
    async fn of(&self, gate: &Gate<'_>) -> Result<Option<Tried>, BackendError> {
        Ok(Some(match gate.name {
            installed::PODS => {
                let is_guarded = |pod: &Pod| is_labelled(pod) || has_claim(pod);
                self.pods(
                    is_guarded,
                    "no pod with a volume claim or the label ringfence.io/guarded runs",
                )
                .await?
            }
            webhooks::PODS => {
                self.pods(is_labelled, "no pod with the label ringfence.io/guarded runs")
                    .await?
            }
            OUT_OF_SERVICE => self.out_of_service().await?,
            NODE_VOLUMES => self.node_volumes().await?,
            ATTACHMENTS | webhooks::ATTACHMENTS => self.attachments().await?,
            words::POLICY | webhooks::CONFIRMATIONS => return self.confirmations().await,
            _ => return Ok(None),
        }))
    }

    async fn pods(
        &self,
        is_guarded: impl Fn(&Pod) -> bool,
        none: &'static str,
    ) -> Result<Tried, BackendError> {
        let api: Api<Pod> = Api::all(self.cluster.client().await?.clone());
        let pods = self.cluster.call(api.list(&few())).await?;
        let mut pods = pods.items.into_iter();
        let Some(pod) = pods.find(|pod| is_guarded(pod) && self.is_running(pod)) else {
            return Ok(Tried::Nothing(none));
        };
        let api: Api<Pod> = Api::namespaced(
            self.cluster.client().await?.clone(),
            &pod.namespace().unwrap_or_default(),
        );
        let how = DeleteParams {
            grace_period_seconds: Some(0),
            ..dry_delete(pod.uid())
        };
        let done = self.cluster.call(api.delete(&pod.name_any(), &how)).await;
        let what = format!("the deletion of pod {} by force", pod.name_any());
        Ok(Tried::on_node(what, done.map(drop)))
    }

    /// On a node that the gates are closed for.
    fn is_running(&self, pod: &Pod) -> bool {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        phase == Some("Running") && node.is_some_and(self.is_closed)
    }

    async fn out_of_service(&self) -> Result<Tried, BackendError> {
        let api: Api<Node> = Api::all(self.cluster.client().await?.clone());
        let nodes = self.cluster.call(api.list(&few())).await?;
        let is_bare = |node: &&Node| {
            let mut taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
            (self.is_closed)(&node.name_any()) && taints.next().is_none()
        };
        let Some(node) = nodes.items.iter().find(is_bare) else {
            return Ok(Tried::Nothing("every node that is not FENCED has a taint"));
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
        Ok(Tried::on_node(what, done.map(drop)))
    }

    async fn node_volumes(&self) -> Result<Tried, BackendError> {
        let api: Api<Node> = Api::all(self.cluster.client().await?.clone());
        let nodes = self.cluster.call(api.list(&few())).await?;
        let uses = |node: &&Node| {
            let status = node.status.iter();
            let mut used = status.flat_map(|status| status.volumes_in_use.iter().flatten());
            (self.is_closed)(&node.name_any()) && used.next().is_some()
        };
        let Some(node) = nodes.items.iter().find(uses) else {
            return Ok(Tried::Nothing("no node that is not FENCED uses a volume"));
        };
        let change = Patch::Merge(json!({ "status": { "volumesInUse": [] } }));
        let done = self
            .cluster
            .call(api.patch_status(&node.name_any(), &dry_patch(), &change))
            .await;
        let what = format!("that node {} uses no volume", node.name_any());
        Ok(Tried::on_node(what, done.map(drop)))
    }

    async fn attachments(&self) -> Result<Tried, BackendError> {
        let api: Api<VolumeAttachment> = Api::all(self.cluster.client().await?.clone());
        let attached = self.cluster.call(api.list(&few())).await?;
        let is_held = |one: &&VolumeAttachment| (self.is_closed)(&one.spec.node_name);
        let Some(one) = attached.items.iter().find(is_held) else {
            return Ok(Tried::Nothing(
                "no volume is attached to a node that is not FENCED",
            ));
        };
        let done = self
            .cluster
            .call(api.delete(&one.name_any(), &dry_delete(one.uid())))
            .await;
        let what = format!("the deletion of attachment {}", one.name_any());
        Ok(Tried::on_node(what, done.map(drop)))
    }

    /// A word under the name of another user. Ringfence may change a `NodeFence` only where objects are served.
    async fn confirmations(&self) -> Result<Option<Tried>, BackendError> {
        if !self.cluster.settings().uses.has_operator {
            return Ok(None);
        }
        let api = node_fences::api(self.cluster).await?;
        let fences = match self.cluster.call(api.list(&ListParams::default().limit(1))).await {
            // They are not defined, which is told elsewhere.
            Err(BackendError::NotFound { .. }) => Vec::new(),
            fences => fences?.items,
        };
        let Some(fence) = fences.first() else {
            return Ok(Some(Tried::Nothing("there is no NodeFence")));
        };
        let word = json!({ "generation": 0, "reason": "tried by ringfence doctor", "confirmedBy": NO_USER });
        let change = Patch::Merge(json!({ "spec": { "confirmation": word } }));
        let done = self
            .cluster
            .call(api.patch(&fence.name_any(), &dry_patch(), &change))
            .await;
        let what = format!(
            "a word under the name {NO_USER} in NodeFence {}",
            fence.name_any()
        );
        Ok(Some(Tried::word(what, done.map(drop))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_tried_is_not_carried_out() {
        let how = DeleteParams {
            grace_period_seconds: Some(0),
            ..dry_delete(None)
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
