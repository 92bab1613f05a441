//! Whether a cluster has the gates as they are shipped.

use std::fmt::Debug;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::Api;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::super::{Cluster, GateNames, faults};
use super::words;
use crate::{BackendError, GateState, SeenGate};

/// The names of the policies, each of which is the name of its binding too.
const GATES: [&str; 8] = [
    PODS,
    "ringfence-pod-phases",
    "ringfence-node-deletion",
    OUT_OF_SERVICE,
    NODE_VOLUMES,
    ATTACHMENTS,
    "ringfence-gate-object",
    words::POLICY,
];
pub(super) const PODS: &str = "ringfence-pods";
pub(super) const OUT_OF_SERVICE: &str = "ringfence-out-of-service";
/// The gate of what the attach-detach controller does by force.
pub(super) const NODE_VOLUMES: &str = "ringfence-node-volumes";
pub(super) const ATTACHMENTS: &str = "ringfence-volume-attachments";

/// A policy and its binding, as they are shipped.
pub(super) struct Shipped {
    policy: Value,
    binding: Value,
}

/// The gates as the cluster has them.
pub(in crate::kubernetes) async fn installed(cluster: &Cluster) -> Result<Vec<SeenGate>, BackendError> {
    let is_available = cluster.version().await?.has_policies();
    let all_are = |state: GateState| {
        let one = |name| SeenGate {
            name,
            state: state.clone(),
        };
        GATES.map(one).to_vec()
    };
    if !is_available {
        return Ok(all_are(GateState::NotAvailable));
    }
    let documents = documents(&cluster.gate_names(None).await?)?;
    let mut gates = Vec::new();
    for name in GATES {
        let shipped = shipped(cluster, &documents, name)?;
        let state = compare(cluster, name, &shipped).await?;
        gates.push(SeenGate { name, state });
    }
    Ok(gates)
}

/// The policies and bindings as they are shipped.
pub(super) fn documents(names: &GateNames) -> Result<Vec<Value>, BackendError> {
    serde_saphyr::from_multiple(&names.policies()?).map_err(|error| BackendError::Settings {
        platform: faults::label(&names.cluster),
        why: format!("the policies that are shipped cannot be read: {error}"),
    })
}

pub(super) fn shipped(cluster: &Cluster, documents: &[Value], name: &str) -> Result<Shipped, BackendError> {
    let find = |kind: &str| {
        let is_it = |one: &&Value| one["kind"] == kind && one["metadata"]["name"] == name;
        let found = documents.iter().find(is_it).cloned();
        found.ok_or_else(|| BackendError::Settings {
            platform: faults::label(&cluster.settings().name),
            why: format!("the policies that are shipped have no {kind} {name}"),
        })
    };
    Ok(Shipped {
        policy: find("ValidatingAdmissionPolicy")?,
        binding: find("ValidatingAdmissionPolicyBinding")?,
    })
}

pub(super) async fn compare(
    cluster: &Cluster,
    name: &str,
    shipped: &Shipped,
) -> Result<GateState, BackendError> {
    let policy = get::<ValidatingAdmissionPolicy>(cluster, name).await?;
    let binding = get::<ValidatingAdmissionPolicyBinding>(cluster, name).await?;
    let Some(policy) = policy else {
        return Ok(GateState::Missing);
    };
    let Some(binding) = binding else {
        return Ok(GateState::Changed(
            "it has no binding, and holds nothing".to_owned(),
        ));
    };
    let of_policy =
        difference(&policy, &shipped.policy).map(|field| format!("{field} of the policy differs"));
    let of_binding =
        || difference(&binding, &shipped.binding).map(|field| format!("{field} of the binding differs"));
    Ok(of_policy
        .or_else(of_binding)
        .map_or(GateState::Installed, GateState::Changed))
}

/// The first field that differs. What is shipped is read as an object too, so that one spelling of both is compared.
fn difference<K: DeserializeOwned + Serialize>(found: &K, shipped: &Value) -> Option<String> {
    let spec = |object: &K| {
        serde_json::to_value(object)
            .ok()
            .map(|mut value| value["spec"].take())
    };
    let shipped: Option<K> = serde_json::from_value(shipped.clone()).ok();
    let (Some(found), Some(shipped)) = (spec(found), shipped.as_ref().and_then(spec)) else {
        return Some("spec".to_owned());
    };
    first_difference(&found, &shipped, "spec")
}

/// The path of the first value that differs. Lists of different lengths differ as a whole.
fn first_difference(found: &Value, shipped: &Value, at: &str) -> Option<String> {
    match (found, shipped) {
        (Value::Object(found), Value::Object(shipped)) => {
            let mut fields = found.keys().chain(shipped.keys());
            let of = |all: &Map<String, Value>, field| all.get(field).cloned().unwrap_or_default();
            fields.find_map(|field| {
                first_difference(&of(found, field), &of(shipped, field), &format!("{at}.{field}"))
            })
        }
        (Value::Array(found), Value::Array(shipped)) if found.len() == shipped.len() => {
            let mut pairs = found.iter().zip(shipped).enumerate();
            pairs.find_map(|(number, (found, shipped))| {
                first_difference(found, shipped, &format!("{at}[{number}]"))
            })
        }
        _ => (found != shipped).then(|| at.to_owned()),
    }
}

pub(super) async fn get<K>(cluster: &Cluster, name: &str) -> Result<Option<K>, BackendError>
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + DeserializeOwned
        + Debug,
{
    let api: Api<K> = Api::all(cluster.client().await?.clone());
    cluster.call(api.get_opt(name)).await
}

#[cfg(test)]
mod tests {
    use ringfence_core::Backend;

    use super::*;
    use crate::Platform;
    use crate::kubernetes::{ClusterSettings, ClusterUses};

    fn cluster() -> Cluster {
        Cluster::new(ClusterSettings {
            name: "east".to_owned(),
            kubeconfig: None,
            context: None,
            namespace: "ringfence".to_owned(),
            fenced_storage: Vec::new(),
            volumes: crate::kubernetes::VolumeSettings::default(),
            gate: "ringfence-gate".to_owned(),
            timeout: std::time::Duration::from_secs(1),
            down_after: std::time::Duration::from_secs(20),
            ready_for: std::time::Duration::ZERO,
            uses: ClusterUses::default(),
        })
    }

    fn names() -> GateNames {
        GateNames {
            cluster: "east".to_owned(),
            namespace: "ringfence".to_owned(),
            gate: "ringfence-gate".to_owned(),
            account: "system:serviceaccount:ringfence:ringfence".to_owned(),
        }
    }

    #[test]
    fn every_gate_is_in_the_file_and_equals_itself() {
        let cluster = cluster();
        assert_eq!(cluster.kind(), Backend::Kubernetes);
        let policies = names().policies().unwrap();
        let policies = policies.matches("kind: ValidatingAdmissionPolicy\n").count();
        assert_eq!(policies, GATES.len());
        for name in GATES {
            let shipped = shipped(&cluster, &documents(&names()).unwrap(), name).unwrap();
            let policy: ValidatingAdmissionPolicy = serde_json::from_value(shipped.policy.clone()).unwrap();
            let binding: ValidatingAdmissionPolicyBinding =
                serde_json::from_value(shipped.binding.clone()).unwrap();
            assert_eq!(difference(&policy, &shipped.policy), None);
            assert_eq!(difference(&binding, &shipped.binding), None);
        }
    }

    #[test]
    fn a_policy_that_holds_less_is_seen() {
        let shipped = shipped(&cluster(), &documents(&names()).unwrap(), "ringfence-pods").unwrap();
        let read = |value: Value| -> ValidatingAdmissionPolicy { serde_json::from_value(value).unwrap() };
        for (pointer, value, field) in [
            ("/spec/failurePolicy", "Ignore".into(), "spec.failurePolicy"),
            (
                "/spec/matchConditions/0/expression",
                "false".into(),
                "spec.matchConditions[0].expression",
            ),
            (
                "/spec/matchConstraints/namespaceSelector",
                serde_json::json!({ "matchLabels": { "a": "b" } }),
                "spec.matchConstraints.namespaceSelector.matchLabels",
            ),
            (
                "/spec/validations/0/expression",
                "true".into(),
                "spec.validations[0].expression",
            ),
        ] {
            let mut changed = shipped.policy.clone();
            *changed.pointer_mut(pointer).unwrap() = value;
            assert_eq!(
                difference(&read(changed), &shipped.policy).as_deref(),
                Some(field)
            );
        }
        let mut excluded = shipped.policy.clone();
        excluded["spec"]["matchConstraints"]["excludeResourceRules"] = serde_json::json!([{ "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"] }]);
        assert!(difference(&read(excluded), &shipped.policy).is_some());
    }

    #[test]
    fn a_binding_that_only_warns_is_seen() {
        let shipped = shipped(&cluster(), &documents(&names()).unwrap(), "ringfence-pods").unwrap();
        let mut changed = shipped.binding.clone();
        changed["spec"]["validationActions"] = serde_json::json!(["Warn"]);
        let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(changed).unwrap();
        let field = difference(&binding, &shipped.binding);
        assert_eq!(field.as_deref(), Some("spec.validationActions[0]"));
    }
}
