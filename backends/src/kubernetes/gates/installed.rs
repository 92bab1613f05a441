//! Whether a cluster has the gates as they are shipped.

use std::fmt::Debug;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
};
use kube::Api;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::super::{Cluster, faults};
use super::trying;
use crate::{BackendError, GateState, Preflight, SeenGate};

/// The names of the policies, each of which is the name of its binding too.
const GATES: [&str; 7] = [
    "ringfence-pods",
    "ringfence-pod-phases",
    "ringfence-node-deletion",
    "ringfence-out-of-service",
    "ringfence-node-volumes",
    "ringfence-volume-attachments",
    "ringfence-gate-object",
];
/// The name of the webhooks' object.
const WEBHOOKS: &str = "ringfence";
const PAGE: &str = "docs/kubernetes-gates.md";

/// A policy and its binding, as they are shipped.
struct Shipped {
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
    let text = cluster.gate_names(None).await?.policies()?;
    let mut gates = Vec::new();
    for name in GATES {
        let shipped = shipped(cluster, &text, name)?;
        let state = compare(cluster, name, &shipped).await?;
        gates.push(SeenGate { name, state });
    }
    Ok(gates)
}

/// The gates for the checks before they are needed: whether they are there, and whether each holds a request that changes nothing.
pub(in crate::kubernetes) async fn preflight(cluster: &Cluster) -> Result<Vec<Preflight>, BackendError> {
    if !cluster.version().await?.has_policies() {
        return Ok(vec![webhooks(cluster).await?]);
    }
    let gates = installed(cluster).await?;
    let mut found: Vec<Preflight> = gates.iter().map(|gate| tell(cluster, gate)).collect();
    found.extend(trying::all(cluster, &gates).await?);
    Ok(found)
}

fn tell(cluster: &Cluster, gate: &SeenGate) -> Preflight {
    let (of, name) = (&cluster.settings().name, gate.name);
    let apply = format!("ringfence kubernetes gates {of} | kubectl apply -f -; see {PAGE}");
    match &gate.state {
        GateState::Installed => Preflight::Good(format!("{of}: the gate {name} is installed and unchanged")),
        GateState::Missing => Preflight::Warning(
            format!("{of}: the gate {name} is not installed, and holds nothing"),
            apply,
        ),
        GateState::Changed(what) => {
            Preflight::Warning(format!("{of}: the gate {name} was changed: {what}"), apply)
        }
        GateState::NotAvailable => {
            Preflight::Warning(format!("{of}: the gate {name} is not available"), PAGE.to_owned())
        }
    }
}

async fn webhooks(cluster: &Cluster) -> Result<Preflight, BackendError> {
    let of = &cluster.settings().name;
    let is_there = get::<ValidatingWebhookConfiguration>(cluster, WEBHOOKS)
        .await?
        .is_some();
    Ok(if is_there {
        Preflight::Good(format!(
            "{of}: its version has no admission policies; the webhooks hold while the scheduler hook runs"
        ))
    } else {
        Preflight::Warning(
            format!("{of}: its version has no admission policies, and no webhook {WEBHOOKS} is installed"),
            format!(
                "ringfence kubernetes webhooks {of} | kubectl apply -f -; or upgrade to 1.30 or later; see {PAGE}"
            ),
        )
    })
}

fn shipped(cluster: &Cluster, text: &str, name: &str) -> Result<Shipped, BackendError> {
    let unreadable = |why: String| BackendError::Settings {
        platform: faults::label(&cluster.settings().name),
        why,
    };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| unreadable(error.to_string()))?;
    let find = |kind: &str| {
        let is_it = |one: &&Value| one["kind"] == kind && one["metadata"]["name"] == name;
        let found = documents.iter().find(is_it).cloned();
        found.ok_or_else(|| unreadable(format!("the policies have no {kind} {name}")))
    };
    Ok(Shipped {
        policy: find("ValidatingAdmissionPolicy")?,
        binding: find("ValidatingAdmissionPolicyBinding")?,
    })
}

async fn compare(cluster: &Cluster, name: &str, shipped: &Shipped) -> Result<GateState, BackendError> {
    let policy = get::<ValidatingAdmissionPolicy>(cluster, name).await?;
    let binding = get::<ValidatingAdmissionPolicyBinding>(cluster, name).await?;
    let (Some(policy), Some(binding)) = (policy, binding) else {
        return Ok(GateState::Missing);
    };
    let of_policy =
        difference(&policy, &shipped.policy).map(|field| format!("{field} of the policy differs"));
    let of_binding =
        || difference(&binding, &shipped.binding).map(|field| format!("{field} of the binding differs"));
    Ok(of_policy
        .or_else(of_binding)
        .map_or(GateState::Installed, GateState::Changed))
}

/// The first field of what is wanted that differs. What is shipped is read as an object too, so that one spelling of both is compared.
fn difference<K: DeserializeOwned + Serialize>(found: &K, shipped: &Value) -> Option<String> {
    let spec = |object: &K| {
        serde_json::to_value(object)
            .ok()
            .map(|mut value| value["spec"].take())
    };
    let shipped: Option<K> = serde_json::from_value(shipped.clone()).ok();
    let (Some(Value::Object(found)), Some(Value::Object(shipped))) =
        (spec(found), shipped.as_ref().and_then(spec))
    else {
        return Some("spec".to_owned());
    };
    let mut fields = found.keys().chain(shipped.keys());
    fields
        .find(|field| found.get(*field) != shipped.get(*field))
        .map(|field| format!("spec.{field}"))
}

async fn get<K>(cluster: &Cluster, name: &str) -> Result<Option<K>, BackendError>
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
    use crate::kubernetes::{ClusterSettings, GateNames};

    fn cluster() -> Cluster {
        Cluster::new(ClusterSettings {
            name: "east".to_owned(),
            kubeconfig: None,
            context: None,
            namespace: "ringfence".to_owned(),
            gate: "ringfence-gate".to_owned(),
            timeout: std::time::Duration::from_secs(1),
            down_after: std::time::Duration::from_secs(20),
            ready_for: std::time::Duration::ZERO,
        })
    }

    fn text() -> String {
        let names = GateNames {
            cluster: "east".to_owned(),
            namespace: "ringfence".to_owned(),
            gate: "ringfence-gate".to_owned(),
            account: "system:serviceaccount:ringfence:ringfence".to_owned(),
        };
        names.policies().unwrap()
    }

    #[test]
    fn every_gate_is_in_the_file_and_equals_itself() {
        let cluster = cluster();
        assert_eq!(cluster.kind(), Backend::Kubernetes);
        let policies = text().matches("kind: ValidatingAdmissionPolicy\n").count();
        assert_eq!(policies, GATES.len());
        for name in GATES {
            let shipped = shipped(&cluster, &text(), name).unwrap();
            let policy: ValidatingAdmissionPolicy = serde_json::from_value(shipped.policy.clone()).unwrap();
            let binding: ValidatingAdmissionPolicyBinding =
                serde_json::from_value(shipped.binding.clone()).unwrap();
            assert_eq!(difference(&policy, &shipped.policy), None);
            assert_eq!(difference(&binding, &shipped.binding), None);
        }
    }

    #[test]
    fn a_policy_that_holds_less_is_seen() {
        let shipped = shipped(&cluster(), &text(), "ringfence-pods").unwrap();
        let read = |value: Value| -> ValidatingAdmissionPolicy { serde_json::from_value(value).unwrap() };
        for (pointer, value, field) in [
            ("/spec/failurePolicy", "Ignore".into(), "spec.failurePolicy"),
            (
                "/spec/matchConditions/0/expression",
                "false".into(),
                "spec.matchConditions",
            ),
            (
                "/spec/matchConstraints/namespaceSelector",
                serde_json::json!({ "matchLabels": { "a": "b" } }),
                "spec.matchConstraints",
            ),
            (
                "/spec/validations/0/expression",
                "true".into(),
                "spec.validations",
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
        let shipped = shipped(&cluster(), &text(), "ringfence-pods").unwrap();
        let mut changed = shipped.binding.clone();
        changed["spec"]["validationActions"] = serde_json::json!(["Warn"]);
        let binding: ValidatingAdmissionPolicyBinding = serde_json::from_value(changed).unwrap();
        let field = difference(&binding, &shipped.binding);
        assert_eq!(field.as_deref(), Some("spec.validationActions"));
    }
}
