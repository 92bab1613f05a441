//! The pods of a node, and which of them go when the node is FENCED.

use k8s_openapi::api::core::v1::{Pod, Toleration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use ringfence_core::{Finding, MAX_LISTED, MAX_NAME_CHARS, Movable, Workload, WorkloadState};

use super::Done;
use super::marks::FENCED;
use super::node::NodeOf;
use crate::BackendError;

/// Pods in one answer.
const PAGE: u32 = 500;
/// Written by kubelets on the images of their static pods, which no API deletes.
const MIRROR: &str = "kubernetes.io/config.mirror";

impl NodeOf<'_> {
    /// All pods that the cluster has bound to the node.
    pub(super) async fn pods(&self) -> Result<Vec<Pod>, BackendError> {
        let api: Api<Pod> = Api::all(self.cluster.client().await?.clone());
        let fields = format!("spec.nodeName={}", self.name);
        let mut params = ListParams::default().fields(&fields).limit(PAGE);
        let mut pods = Vec::new();
        loop {
            let page = self.cluster.call(api.list(&params)).await?;
            pods.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(pods),
            }
        }
    }

    pub(super) async fn list(&self, metadata_keys: &[String]) -> Result<Done, BackendError> {
        let pods = self.sorted_pods().await?;
        let (leaving, staying) = (pods.leaving.len(), pods.staying.len());
        let mut detail = format!(
            "{leaving} of {} pods on {} have to go",
            leaving + staying,
            self.name
        );
        if pods.held_back > 0 {
            let only = match self.movable {
                Movable::All => "",
                Movable::OnFencedStorage => "from the storage of the other pods",
                Movable::WithoutVolumes => "from the network",
            };
            detail.push_str(&format!(
                "; {} stay, since the host is cut off {only} alone",
                pods.held_back
            ));
        }
        let workloads = pods.leaving.iter().take(MAX_LISTED);
        let workloads = workloads.map(|pod| workload(pod, metadata_keys)).collect();
        Ok(Done::Found(detail, Finding::Workloads(workloads)))
    }
}

/// Whether the pod goes with its node: it is to run elsewhere, or is being removed already, and its node's kubelet will not end it.
pub(super) fn goes(pod: &Pod) -> bool {
    let is_going = pod.metadata.deletion_timestamp.is_some();
    let may_stay = is_of_daemon_set(pod) || tolerates(pod);
    !is_over(pod) && !pod.annotations().contains_key(MIRROR) && (is_going || !may_stay)
}

/// Finished pods hold nothing.
fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Its controller would make it again, for this node.
fn is_of_daemon_set(pod: &Pod) -> bool {
    controller(pod).is_some_and(|owner| owner.kind == "DaemonSet")
}

/// Whether it may stay on a node with our taint for ever.
fn tolerates(pod: &Pod) -> bool {
    let is_forever = |toleration: &Toleration| toleration.toleration_seconds.is_none();
    let fits = |toleration: &Toleration| {
        let is_any = toleration.operator.as_deref() == Some("Exists");
        let is_key = match toleration.key.as_deref().filter(|key| !key.is_empty()) {
            Some(key) => {
                key == FENCED && (is_any || toleration.value.as_deref().unwrap_or_default().is_empty())
            }
            None => is_any,
        };
        let effect = toleration.effect.as_deref().unwrap_or_default();
        is_key && matches!(effect, "" | "NoExecute") && is_forever(toleration)
    };
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.tolerations.as_ref())
        .is_some_and(|all| all.iter().any(fits))
}

pub(super) fn workload(pod: &Pod, keys: &[String]) -> Workload {
    let (labels, annotations) = (pod.labels(), pod.annotations());
    let value = |key: &String| labels.get(key).or_else(|| annotations.get(key));
    let metadata = keys
        .iter()
        .filter_map(|key| Some((key.clone(), value(key)?.clone())));
    Workload {
        id: pod.uid().unwrap_or_default(),
        name: format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any()),
        owner: owner(pod),
        state: WorkloadState::Running,
        metadata: metadata.collect(),
    }
}

/// Its controller, which makes the next pod.
fn owner(pod: &Pod) -> Option<String> {
    let controller = controller(pod)?;
    let told = format!("{}/{}", controller.kind, controller.name);
    Some(told.chars().take(MAX_NAME_CHARS).collect())
}

pub(super) fn controller(pod: &Pod) -> Option<&OwnerReference> {
    let mut owners = pod.owner_references().iter();
    owners.find(|owner| owner.controller == Some(true))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{PodSpec, PodStatus};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff;

    use super::*;

    fn tolerating(toleration: Toleration) -> Pod {
        let spec = PodSpec {
            tolerations: Some(vec![toleration]),
            ..PodSpec::default()
        };
        Pod {
            spec: Some(spec),
            ..Pod::default()
        }
    }

    fn exists(key: Option<&str>, effect: Option<&str>, seconds: Option<i64>) -> Toleration {
        Toleration {
            key: key.map(str::to_owned),
            operator: Some("Exists".to_owned()),
            effect: effect.map(str::to_owned),
            toleration_seconds: seconds,
            value: None,
        }
    }

    #[test]
    fn a_pod_that_tolerates_our_taint_for_ever_stays() {
        for (toleration, goes_) in [
            (exists(None, None, None), false),
            (exists(Some(FENCED), Some("NoExecute"), None), false),
            (exists(Some(FENCED), None, Some(300)), true),
            (exists(Some(FENCED), Some("NoSchedule"), None), true),
            (
                exists(Some("node.kubernetes.io/unreachable"), Some("NoExecute"), None),
                true,
            ),
        ] {
            let told = format!("{toleration:?}");
            assert_eq!(goes(&tolerating(toleration)), goes_, "{told}");
        }
    }

    #[test]
    fn mirror_pods_those_of_daemon_sets_and_finished_ones_stay() {
        let mut mirror = Pod::default();
        mirror.annotations_mut().insert(MIRROR.to_owned(), "x".to_owned());
        let mut daemon = Pod::default();
        daemon.owner_references_mut().push(OwnerReference {
            kind: "DaemonSet".to_owned(),
            controller: Some(true),
            ..OwnerReference::default()
        });
        let status = PodStatus {
            phase: Some("Failed".to_owned()),
            ..PodStatus::default()
        };
        let failed = Pod {
            status: Some(status),
            ..Pod::default()
        };
        let pods = [mirror, daemon, failed, Pod::default()];
        assert_eq!(pods.each_ref().map(goes), [false, false, false, true]);
        let going = pods.map(|mut pod| {
            pod.metadata.deletion_timestamp = Some(Time(jiff::Timestamp::UNIX_EPOCH));
            pod
        });
        assert_eq!(going.each_ref().map(goes), [false, true, false, true]);
    }
}
