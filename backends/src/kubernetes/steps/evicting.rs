//! The eviction of a pod of a FENCED node: the API server itself applies the cluster's disruption budgets.

use k8s_openapi::api::core::v1::Pod;
use kube::api::PostParams;
use kube::core::Status;
use kube::{Api, ResourceExt};
use serde_json::json;

use super::node::NodeOf;
use crate::BackendError;
use crate::error::one_line;

/// Why a budget refuses, as the API server marks it.
const BUDGET: &str = "DisruptionBudget";
/// The API server evicts no pod that several budgets select.
const SEVERAL: &str = "more than one PodDisruptionBudget";

impl NodeOf<'_> {
    /// By force once the budgets allow it, and only this very pod. Returns why it stays for now.
    pub(super) async fn evict(&self, pod: &Pod) -> Result<Option<String>, BackendError> {
        let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
        let evictions = self.cluster.evictions().await?;
        let api: Api<Pod> = Api::namespaced(evictions.client.clone(), &namespace);
        let eviction = json!({
            "apiVersion": evictions.version,
            "kind": "Eviction",
            "metadata": { "name": name, "namespace": namespace },
            "deleteOptions": { "gracePeriodSeconds": 0, "preconditions": { "uid": pod.uid() } },
        });
        let ask = async {
            let how = PostParams::default();
            let answer = api.create_subresource("eviction", &name, &how, &eviction).await;
            // Some refusals come as a success that holds a failure.
            let status: Status = match answer {
                Err(kube::Error::Api(status)) => *status,
                other => other?,
            };
            match stays(&status) {
                None if status.is_failure() => Err(kube::Error::Api(status.boxed())),
                why => Ok(why),
            }
        };
        match self.cluster.call(ask).await {
            Err(BackendError::NotFound { .. }) => Ok(None),
            done => done,
        }
    }
}

/// Why the pod stays, if the answer is that it may go later.
fn stays(status: &Status) -> Option<String> {
    match status.code {
        // A budget, or an API server that has too much to do; and a budget that too many evictions have changed at one time.
        429 | 504 if status.is_failure() => Some(words(status)),
        500 if status.message.contains(SEVERAL) => Some(
            "more than one PodDisruptionBudget selects it, and the API server evicts no such pod; let one budget alone select it"
                .to_owned(),
        ),
        _ => None,
    }
}

/// A budget is named in the causes alone.
fn words(status: &Status) -> String {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    match causes.find(|cause| cause.reason == BUDGET) {
        Some(cause) => one_line(&cause.message),
        None => format!("the API server says: {}", one_line(&status.message)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of(code: u16, message: &str, details: &Value) -> Option<String> {
        let status = json!({ "kind": "Status", "status": "Failure", "message": message, "code": code, "details": details });
        stays(&serde_json::from_value(status).unwrap())
    }

    /// As API servers of 1.20 and 1.36 answer.
    #[test]
    fn a_pod_that_may_go_later_stays_with_the_words_of_its_budget() {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let needs = "The disruption budget web needs 2 healthy pods and has 1 currently";
        let details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": needs }] });
        assert_eq!(of(429, message, &details).as_deref(), Some(needs));
        let busy = of(429, "too many requests, please try again later", &json!({}));
        assert_eq!(
            busy.as_deref(),
            Some("the API server says: too many requests, please try again later")
        );
        let conflicts = "Timeout: couldn't update PodDisruptionBudget \"web\" due to conflicts";
        assert!(
            of(504, conflicts, &json!({ "retryAfterSeconds": 10 }))
                .unwrap()
                .contains("\"web\"")
        );
    }

    #[test]
    fn a_pod_of_several_budgets_is_told_from_an_api_server_that_fails() {
        let several = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        assert!(
            of(500, several, &Value::Null)
                .unwrap()
                .contains("let one budget alone select it")
        );
        assert_eq!(of(500, "Internal error occurred", &Value::Null), None);
        assert_eq!(of(403, "pods \"web\" is forbidden", &Value::Null), None);
    }
}
