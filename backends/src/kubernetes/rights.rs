//! Whether Ringfence may do in a cluster what it will have to do. The cluster is asked, and nothing is changed.

use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::{Cluster, ClusterUses, gates};
use crate::BackendError;

/// Questions at a time.
const AT_ONCE: usize = 8;

/// One thing to be allowed.
pub(super) struct Right {
    pub group: &'static str,
    pub resource: &'static str,
    pub verb: &'static str,
    place: Place,
    /// What fails without it.
    pub needed_for: &'static str,
}

/// Where it has to be allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In all namespaces, or it is of no namespace.
    Everywhere,
    /// In Ringfence's own namespace.
    Own,
    /// In this one.
    In(&'static str),
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
        place: Place::Everywhere,
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
        place: Place::Own,
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

const SERVE: &str = "to serve NodeFence and RingfenceRemediation objects";
const TELL: &str = "to tell of each step in an Event";
const SECRETS: &str = "to read the secrets that methods name";
const RECORD: &str = "to write down what must outlive this process before anything acts";
const LEAD: &str = "to lead alone";

const ASK_FOR_OTHERS: &str = "to check whether a user may confirm a fence in a NodeFence";

const OWN_GROUP: &str = "ringfence.io";
const GATES: &str = "admissionregistration.k8s.io";

/// What is needed in every cluster.
const RIGHTS: &[Right] = &[
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

/// What is needed where objects are served.
const OPERATOR_RIGHTS: &[Right] = &[
    right(OWN_GROUP, "nodefences", "get", SERVE),
    right(OWN_GROUP, "nodefences", "list", SERVE),
    right(OWN_GROUP, "nodefences", "watch", SERVE),
    right(OWN_GROUP, "nodefences", "create", SERVE),
    right(OWN_GROUP, "nodefences", "patch", SERVE),
    right(OWN_GROUP, "nodefences", "delete", SERVE),
    right(OWN_GROUP, "nodefences/status", "patch", SERVE),
    right(OWN_GROUP, "ringfenceremediations", "get", SERVE),
    right(OWN_GROUP, "ringfenceremediations", "list", SERVE),
    right(OWN_GROUP, "ringfenceremediations", "watch", SERVE),
    right(OWN_GROUP, "ringfenceremediations", "patch", SERVE),
    right(OWN_GROUP, "ringfenceremediations/status", "patch", SERVE),
    Right {
        place: Place::In("kube-system"),
        ..right("events.k8s.io", "events", "create", TELL)
    },
    own("", "secrets", "get", SECRETS),
    own("events.k8s.io", "events", "create", TELL),
];

/// What is needed where objects are served, and the webhook is installed that checks who confirms.
const WEBHOOK_RIGHTS: &[Right] = &[right(
    "authorization.k8s.io",
    "subjectaccessreviews",
    "create",
    ASK_FOR_OTHERS,
)];

/// What is needed where the cluster keeps the records.
const RECORD_RIGHTS: &[Right] = &[
    right(OWN_GROUP, "nodefences", "get", RECORD),
    right(OWN_GROUP, "nodefences", "list", RECORD),
    right(OWN_GROUP, "nodefences", "create", RECORD),
    right(OWN_GROUP, "nodefences/status", "patch", RECORD),
    own("coordination.k8s.io", "leases", "get", LEAD),
    own("coordination.k8s.io", "leases", "create", LEAD),
    own("coordination.k8s.io", "leases", "patch", LEAD),
];

/// What is needed where a segment asks for disruption budgets.
pub(super) const EVICT: &Right = &right(
    "",
    "pods/eviction",
    "create",
    "to remove the pods of a FENCED node as disruption budgets allow",
);

/// All that is needed where the cluster is used so, each once.
fn needed(uses: ClusterUses, has_word_webhook: bool) -> Vec<&'static Right> {
    let operator = OPERATOR_RIGHTS.iter().filter(|_| uses.has_operator);
    let webhook = WEBHOOK_RIGHTS
        .iter()
        .filter(|_| uses.has_operator && has_word_webhook);
    let records = RECORD_RIGHTS.iter().filter(|_| uses.has_records);
    let mut needed: Vec<&'static Right> = Vec::new();
    for right in RIGHTS.iter().chain(operator).chain(webhook).chain(records) {
        if !needed.iter().any(|known| known.is(right)) {
            needed.push(right);
        }
    }
    needed
}

impl Right {
    /// In the words of `kubectl auth can-i`.
    pub fn told(&self, own_namespace: &str) -> String {
        let resource = match self.group {
            "" => self.resource.to_owned(),
            group => format!("{}.{group}", self.resource),
        };
        match self.namespace(own_namespace) {
            Some(namespace) => format!("{} {resource} -n {namespace}", self.verb),
            None => format!("{} {resource}", self.verb),
        }
    }

    fn is(&self, other: &Self) -> bool {
        (self.group, self.resource, self.verb, self.place)
            == (other.group, other.resource, other.verb, other.place)
    }

    fn namespace<'a>(&self, own: &'a str) -> Option<&'a str> {
        match self.place {
            Place::Everywhere => None,
            Place::Own => Some(own),
            Place::In(namespace) => Some(namespace),
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
                    namespace: self.namespace(namespace).map(str::to_owned),
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
    let has_word_webhook = gates::has_word_webhook(cluster).await;
    let asked: Vec<_> = needed(cluster.settings().uses, has_word_webhook)
        .into_iter()
        .map(|right| is_missing(cluster, &reviews, right))
        .collect();
    let missing: Vec<Option<&'static Right>> = stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
    Ok(missing.into_iter().flatten().collect())
}

/// Whether pods may be evicted.
pub(super) async fn may_evict(cluster: &Cluster) -> Result<bool, BackendError> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(cluster.client().await?.clone());
    Ok(is_missing(cluster, &reviews, EVICT).await?.is_none())
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
