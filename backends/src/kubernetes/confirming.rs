//! Whether a user of the cluster may confirm the fence of a node.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use ringfence_core::ClusterUser;

use super::Cluster;
use crate::BackendError;

/// The verb that a user needs who confirms.
const CONFIRM: &str = "confirm";
const GROUP: &str = "ringfence.io";
const FENCES: &str = "nodefences";

impl Cluster {
    /// Whether a user may confirm the fence of a node: has the verb `confirm` on the `NodeFence` of that name.
    ///
    /// # Errors
    /// The cluster does not answer, or refuses.
    pub async fn may_confirm(&self, user: ClusterUser, node: &str) -> Result<bool, BackendError> {
        let reviews: Api<SubjectAccessReview> = Api::all(self.client().await?.clone());
        let (how, question) = (PostParams::default(), question(user, node));
        let answer = self.call(reviews.create(&how, &question)).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

fn question(user: ClusterUser, node: &str) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(user.name),
            uid: Some(user.uid).filter(|uid| !uid.is_empty()),
            groups: Some(user.groups),
            extra: Some(user.extra),
            resource_attributes: Some(ResourceAttributes {
                group: Some(GROUP.to_owned()),
                resource: Some(FENCES.to_owned()),
                name: Some(node.to_owned()),
                verb: Some(CONFIRM.to_owned()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}
