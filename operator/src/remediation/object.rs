//! The object, as `deploy/helm/ringfence/crds/ringfenceremediations.yaml` defines it.

use kube::api::ApiResource;
use kube::core::{Object, ObjectMeta};
use kube::{Api, Client};
use serde::{Deserialize, Serialize};

use crate::condition::Condition;
use crate::door::resource;
use crate::marks::has_annotation;
use crate::shown_operation::ShownOperation;

/// A `RingfenceRemediation`.
pub(crate) type Remediation = Object<Spec, Status>;

/// The Node Health Check operator has waited for long enough, and goes on to another remediation.
const TIMED_OUT: &str = "remediation.medik8s.io/nhc-timed-out";

/// What is done with a node once it is FENCED and its pods are gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Strategy {
    /// It is taken back.
    #[default]
    Reboot,
    /// It is left off until the remediation is deleted.
    PowerOff,
    /// It is left off, and its machine is left to the machine's owner.
    Replace,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Spec {
    pub strategy: Strategy,
    pub reason: Option<String>,
}

/// What the database says. `null` removes a field in a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Status {
    pub cluster: Option<String>,
    pub node: Option<String>,
    pub operation: Option<ShownOperation>,
    pub conditions: Option<Vec<Condition>>,
}

/// How remediations are asked for.
pub(crate) fn kind() -> ApiResource {
    resource("RingfenceRemediation", "ringfenceremediations")
}

/// The remediations of a namespace.
pub(super) fn api(client: &Client, namespace: &str) -> Api<Remediation> {
    Api::namespaced_with(client.clone(), namespace, &kind())
}

/// All remediations of a cluster.
pub(super) fn all(client: &Client) -> Api<Remediation> {
    Api::all_with(client.clone(), &kind())
}

/// Whether it is to stop: who has made it does not wait any more.
pub(super) fn is_timed_out(of: &ObjectMeta) -> bool {
    has_annotation(of, TIMED_OUT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema_fields::{defined, written};

    const DEFINITION: &str = include_str!("../../../deploy/helm/ringfence/crds/ringfenceremediations.yaml");
    const TEMPLATE: &str =
        include_str!("../../../deploy/helm/ringfence/crds/ringfenceremediationtemplates.yaml");

    #[test]
    fn the_definition_names_each_field_of_the_object_and_no_other() {
        let status = Status {
            operation: Some(ShownOperation::default()),
            conditions: Some(vec![Condition::default()]),
            ..Status::default()
        };
        let object = json!({ "spec": Spec::default(), "status": status });
        assert_eq!(defined(DEFINITION), written(&object));
    }

    #[test]
    fn the_definitions_know_each_strategy() {
        let words = json!([Strategy::Reboot, Strategy::PowerOff, Strategy::Replace]);
        for definition in [DEFINITION, TEMPLATE] {
            let definition: serde_json::Value = serde_saphyr::from_str(definition).unwrap();
            let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            let spec = &schema["properties"]["spec"]["properties"];
            let of_template = &spec["template"]["properties"]["spec"]["properties"]["strategy"];
            let found = [&spec["strategy"], of_template].map(|field| &field["enum"]);
            assert!(found.contains(&&words), "{found:?}");
        }
    }

    #[test]
    fn a_template_holds_what_a_remediation_has() {
        let template = json!({ "spec": { "template": { "spec": Spec::default() } } });
        assert_eq!(defined(TEMPLATE), written(&template));
    }
}
