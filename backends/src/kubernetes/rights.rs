//! Whether Ringfence may do in a cluster what it will have to do. The cluster is asked, and nothing is changed.

use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::Cluster;
use crate::BackendError;

/// Questions at a time.
const AT_ONCE: usize = 8;

/// One thing to be allowed.
pub(super) struct Right {
    pub group: &'static str,
    pub resource: &'static str,
    pub verb: &'static str,
    /// Whether only Ringfence's own namespace is meant.
    pub own_namespace: bool,
    /// What fails without it.
    pub needed_for: &'static str,
}

const fn right(
    group: &'static str,
    resource: &'static str,
    verb: &'static str,
    needed_for: &'static str,
) -> Right {
    Right {
        group,
        resource,
        verb,
        own_namespace: false,
        needed_for,
    }
}

const fn own(
    group: &'static str,
    resource: &'static str,
    verb: &'static str,
    needed_for: &'static str,
) -> Right {
    Right {
        own_namespace: true,
        ..right(group, resource, verb, needed_for)
    }
}

const WATCH: &str = "to see which nodes are silent";
const BEAT: &str = "to notice a silent node within a second";
const ISOLATE: &str = "to keep pods from starting on a node whose fence has begun, and to give the node back";
const EMPTY: &str = "to remove the pods of a FENCED node";
const DETACH: &str = "to detach the volumes of a FENCED node";
const GATE: &str = "to tell the cluster's gates which nodes are FENCED";
const SEE_GATES: &str = "to see whether the cluster's gates are installed and unchanged";
const VOLUMES: &str = "to find out on which storage a pod's volumes are";

const GATES: &str = "admissionregistration.k8s.io";

/// All that is needed.
pub(super) const RIGHTS: &[Right] = &[
    right("", "nodes", "list", WATCH),
    right("", "nodes", "watch", WATCH),
    right("coordination.k8s.io", "leases", "list", WATCH),
    right("coordination.k8s.io", "leases", "watch", WATCH),
    own("coordination.k8s.io", "leases", "create", BEAT),
    own("coordination.k8s.io", "leases", "patch", BEAT),
    own("", "configmaps", "get", GATE),
    own("", "configmaps", "list", GATE),
    own("", "configmaps", "watch", GATE),
    own("", "configmaps", "create", GATE),
    own("", "configmaps", "patch", GATE),
    right(GATES, "validatingadmissionpolicies", "get", SEE_GATES),
    right(GATES, "validatingadmissionpolicybindings", "get", SEE_GATES),
    right(GATES, "validatingwebhookconfigurations", "get", SEE_GATES),
    right("", "nodes", "get", ISOLATE),
    right("", "nodes", "patch", ISOLATE),
    right("", "nodes/status", "patch", DETACH),
    right("", "pods", "list", EMPTY),
    right("", "pods", "get", EMPTY),
    right("", "pods", "delete", EMPTY),
    right("storage.k8s.io", "volumeattachments", "list", DETACH),
    right("storage.k8s.io", "volumeattachments", "delete", DETACH),
    right("", "persistentvolumeclaims", "get", VOLUMES),
    right("", "persistentvolumes", "get", VOLUMES),
];

impl Right {
    /// In the words of `kubectl auth can-i`.
    pub fn told(&self) -> String {
        match self.group {
            "" => format!("{} {}", self.verb, self.resource),
            group => format!("{} {}.{group}", self.verb, self.resource),
        }
    }

    fn question(&self, namespace: &str) -> SelfSubjectAccessReview {
        let (resource, subresource) = match self.resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource)),
            None => (self.resource, None),
        };
        SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    group: Some(self.group.to_owned()),
                    resource: Some(resource.to_owned()),
                    subresource: subresource.map(str::to_owned),
                    verb: Some(self.verb.to_owned()),
                    namespace: self.own_namespace.then(|| namespace.to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        }
    }
}

/// The rights that the cluster refuses.
pub(super) async fn missing(cluster: &Cluster) -> Result<Vec<&'static Right>, BackendError> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(cluster.client().await?.clone());
    let asked: Vec<_> = RIGHTS
        .iter()
        .map(|right| is_missing(cluster, &reviews, right))
        .collect();
    let missing: Vec<Option<&'static Right>> = stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
    Ok(missing.into_iter().flatten().collect())
}

async fn is_missing(
    cluster: &Cluster,
    reviews: &Api<SelfSubjectAccessReview>,
    right: &'static Right,
) -> Result<Option<&'static Right>, BackendError> {
    let question = right.question(&cluster.settings().namespace);
    let answer = cluster
        .call(reviews.create(&PostParams::default(), &question))
        .await?;
    let is_allowed = answer.status.is_some_and(|status| status.allowed);
    Ok((!is_allowed).then_some(right))
}
