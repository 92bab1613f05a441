//! The object, as `deploy/helm/ringfence/crds/nodefences.yaml` defines it.

use kube::api::ApiResource;
use kube::core::Object;
use kube::{Api, Client};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::automaton::{Stands, Step};
use crate::condition::Condition;
use crate::door::resource;
use crate::shown_operation::ShownOperation;

/// A `NodeFence`.
pub(crate) type NodeFence = Object<Spec, Status>;

/// On a `NodeFence` that Ringfence has made. Ringfence removes it when the host is UNFENCED.
pub(super) const MADE_BY: &str = "ringfence.io/made-by";

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    pub node_name: Option<String>,
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    pub suspend: bool,
    /// RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend_until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmation: Option<Confirmation>,
}

/// A person's word.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Confirmation {
    pub generation: u32,
    pub reason: String,
    /// The name that the cluster has authenticated, which a policy or a webhook makes certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed_by: Option<String>,
}

/// What the database says. `null` removes a field in a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    pub step: Option<Step>,
    pub status: Option<Stands>,
    pub retries: Option<u32>,
    pub generation: Option<u32>,
    pub fencing_state: Option<String>,
    pub failure_state: Option<String>,
    pub operation: Option<ShownOperation>,
    pub proofs: Option<Vec<ShownProof>>,
    pub attempts: Option<Vec<ShownAttempt>>,
    pub conditions: Option<Vec<Condition>>,
    /// When the suspension ends or has ended that `spec` asks for.
    pub suspended_until: Option<String>,
    /// The word of `spec` that was heard.
    pub confirmation: Option<Confirmation>,
    /// The record of the host, where it is kept here. It is written elsewhere.
    #[serde(skip_serializing)]
    pub record: Option<Value>,
}

impl Status {
    /// What it shows before anything is done: what came of an earlier fence is not shown.
    pub fn begin_anew(&mut self) {
        (self.step, self.status) = (Some(Step::Isolation), Some(Stands::New));
        (self.operation, self.attempts, self.retries) = (None, None, None);
    }
}

/// A proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ShownProof {
    pub kind: String,
    pub source: String,
    pub observed_at: String,
    pub ended: bool,
}

/// An attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ShownAttempt {
    pub task: String,
    pub method: String,
    pub outcome: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// How `NodeFence` objects are asked for.
pub(crate) fn kind() -> ApiResource {
    resource("NodeFence", "nodefences")
}

/// The `NodeFence` objects of a cluster.
pub(crate) fn api(client: &Client) -> Api<NodeFence> {
    Api::all_with(client.clone(), &kind())
}

/// Whether Ringfence has made it.
pub(super) fn is_own(object: &NodeFence) -> bool {
    let labels = object.metadata.labels.as_ref();
    labels.is_some_and(|labels| labels.contains_key(MADE_BY))
}

/// Whether it holds the record of its host, which outlives the fence.
pub(super) fn has_record(object: &NodeFence) -> bool {
    object
        .status
        .as_ref()
        .is_some_and(|status| status.record.is_some())
}

/// Whether it is being deleted.
pub(super) fn is_deleted(object: &NodeFence) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::schema_fields::{defined, written};

    const DEFINITION: &str = include_str!("../../../deploy/helm/ringfence/crds/nodefences.yaml");

    #[test]
    fn the_definition_names_each_field_of_the_object_and_no_other() {
        let word = || Confirmation {
            confirmed_by: Some("alice".to_owned()),
            ..Confirmation::default()
        };
        let spec = Spec {
            plan: Some("p".to_owned()),
            suspend_until: Some("2026-11-28T22:00:00Z".to_owned()),
            confirmation: Some(word()),
            ..Spec::default()
        };
        let attempt = ShownAttempt {
            detail: Some("off".to_owned()),
            ..ShownAttempt::default()
        };
        let status = Status {
            operation: Some(ShownOperation::default()),
            proofs: Some(vec![ShownProof::default()]),
            attempts: Some(vec![attempt]),
            conditions: Some(vec![Condition::default()]),
            confirmation: Some(word()),
            ..Status::default()
        };
        let mut written = written(&json!({ "spec": spec, "status": status }));
        // It is written and read elsewhere.
        written.insert(".status.record".to_owned());
        assert_eq!(defined(DEFINITION), written);
    }

    #[test]
    fn the_definition_knows_each_word_of_a_step_and_a_status() {
        let definition: Value = serde_saphyr::from_str(DEFINITION).unwrap();
        let status = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
            ["properties"];
        assert_eq!(status["step"]["enum"], json!(Step::ALL));
        assert_eq!(status["status"]["enum"], json!(Stands::ALL));
    }
}
