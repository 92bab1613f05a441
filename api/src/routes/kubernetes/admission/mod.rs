//! `POST /kubernetes/admission/{cluster}`: may this request of a cluster's API be carried out? The protocol is that of validating webhooks.
//!
//! An API server sends no token, so that none is asked for. The answer tells whether a node may be evacuated, and nothing else.

mod needs;

use std::collections::BTreeMap;
use std::time::Duration;

use actix_web::{HttpResponse, web};
use ringfence_core::{ClusterUser, PodToEvict};
use ringfence_scheduler_hook::{Hook, HookError, Leaving, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::timeout;
use utoipa::ToSchema;

use self::needs::{Needs, Word, needs};
use crate::ApiError;
use crate::body::LongBody;
use crate::error::ErrorList;

/// The longest question, in bytes: an object as it is and as it was, each of up to 1.5 MiB, and what JSON adds.
pub(crate) const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
/// The time limit of an answer. A webhook waits for five seconds.
const ANSWER_WITHIN: Duration = Duration::from_millis(4500);
/// The longest id of a request, in characters.
const MAX_UID_CHARS: usize = 128;
/// The group whose members override the gates.
const BREAK_GLASS: &str = "ringfence:break-glass";
const VERSION: &str = "admission.k8s.io/v1";

/// An API server's question.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdmissionReview {
    /// `admission.k8s.io/v1`
    #[schema(max_length = 255)]
    api_version: String,
    /// What is asked of the API server
    #[schema(value_type = Object)]
    request: AdmissionRequest,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdmissionRequest {
    uid: String,
    operation: String,
    resource: Resource,
    #[serde(default)]
    sub_resource: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    namespace: Option<String>,
    user_info: UserInfo,
    #[serde(default)]
    object: Value,
    #[serde(default)]
    old_object: Value,
    #[serde(default)]
    options: Value,
}

#[derive(Debug, Deserialize)]
struct Resource {
    #[serde(default)]
    group: String,
    resource: String,
}

#[derive(Debug, Deserialize)]
struct UserInfo {
    #[serde(default)]
    username: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    extra: BTreeMap<String, Vec<String>>,
}

/// The answer to an API server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdmissionReviewAnswer {
    api_version: &'static str,
    kind: &'static str,
    /// `uid` of the question, `allowed`, and the reason in `status` where it is not
    #[schema(value_type = Object)]
    response: Value,
}

/// May this request be carried out?
///
/// An API server of Kubernetes asks it as its validating webhook; no token is needed. Served by `ringfence scheduler-hook` and `ringfence
/// standalone`. Read from the database. What cannot be told is refused.
#[utoipa::path(post, path = "/kubernetes/admission/{cluster}", operation_id = "admit", tag = "scheduler hook", security(()),
    params(("cluster" = String, Path, description = "The cluster's name in `kubernetes.clusters`", max_length = 255)),
    request_body = AdmissionReview,
    responses((status = 200, body = AdmissionReviewAnswer), (status = 400, body = ErrorList), (status = 413, body = ErrorList),
        (status = 415, body = ErrorList)))]
pub(crate) async fn admit(
    hook: web::Data<Hook>,
    cluster: web::Path<String>,
    body: LongBody<MAX_BODY_BYTES>,
) -> Result<HttpResponse, ApiError> {
    let review: AdmissionReview = body.parse()?;
    let request = review.request;
    if review.api_version != VERSION {
        let why = format!("is {:?}; {VERSION} is allowed", review.api_version);
        return Err(ApiError::bad("apiVersion", why));
    }
    if request.uid.is_empty() || request.uid.len() > MAX_UID_CHARS {
        let why = format!("is empty or too long; 1 to {MAX_UID_CHARS} characters are allowed");
        return Err(ApiError::bad("request.uid", why));
    }
    let response = respond(&hook, &cluster, &request).await;
    Ok(HttpResponse::Ok()
        .insert_header(("Cache-Control", "no-store"))
        .json(AdmissionReviewAnswer {
            api_version: VERSION,
            kind: "AdmissionReview",
            response,
        }))
}

async fn respond(hook: &Hook, cluster: &str, request: &AdmissionRequest) -> Value {
    let (uid, user) = (&request.uid, &request.user_info);
    let needed = needs(request);
    let is_word = matches!(needed, Needs::Word(_));
    let judged = timeout(ANSWER_WITHIN, refusal(hook, cluster, user, needed)).await;
    let Some((code, message)) = judged.unwrap_or_else(|_| Some(late())) else {
        return json!({ "uid": uid, "allowed": true });
    };
    // A word under another name would be no word of the person.
    if !is_word && user.groups.iter().any(|group| group == BREAK_GLASS) {
        let told = format!("{} has overridden: {message}", user.username);
        tracing::warn!(cluster, user = user.username, message, "a gate was overridden");
        return json!({ "uid": uid, "allowed": true, "auditAnnotations": { "break-glass": told } });
    }
    json!({ "uid": uid, "allowed": false, "status": { "code": code, "message": message } })
}

/// Why a request may not be carried out, with the status that the API server answers.
type Refusal = (u16, String);

fn late() -> Refusal {
    let within = ANSWER_WITHIN.as_millis();
    (503, format!("Ringfence has found no answer within {within} ms"))
}

async fn refusal(hook: &Hook, cluster: &str, user: &UserInfo, needs: Needs) -> Option<Refusal> {
    match needs {
        Needs::Nothing => None,
        Needs::Fenced { node, what } => judged(&node, &what, hook.may_evacuate(cluster, &node).await),
        Needs::ToLeave {
            node,
            what,
            uid,
            volume,
            by_controller,
        } => {
            let leaving = Leaving {
                uid: &uid,
                volume: volume.as_deref(),
                is_detached_by_cluster: by_controller,
            };
            judged(&node, &what, hook.may_leave(cluster, &node, leaving).await)
        }
        Needs::Pod {
            namespace,
            name,
            grace_s,
        } => of_eviction(hook, cluster, &namespace, &name, grace_s).await,
        Needs::Word(word) => of_word(hook, cluster, user, &word).await,
        Needs::Unclear(why) => Some((
            403,
            format!("Ringfence cannot tell what the request removes: {why}"),
        )),
    }
}

async fn of_eviction(
    hook: &Hook,
    cluster: &str,
    namespace: &str,
    name: &str,
    grace_s: Option<i64>,
) -> Option<Refusal> {
    match hook.pod_to_evict(cluster, namespace, name).await {
        Ok(None) => None,
        Ok(Some(pod)) => {
            let node = node_to_leave(&pod, grace_s)?;
            let what = format!("pod {namespace}/{name} would be removed at once");
            let leaving = Leaving {
                uid: &pod.uid,
                volume: None,
                is_detached_by_cluster: false,
            };
            judged(&node, &what, hook.may_leave(cluster, &node, leaving).await)
        }
        Err(why) => Some((
            503,
            format!("Ringfence cannot tell how pod {namespace}/{name} would end: {why}"),
        )),
    }
}

fn judged(node: &str, what: &str, verdict: Result<Verdict, HookError>) -> Option<Refusal> {
    match verdict {
        Ok(verdict) if verdict.allowed => None,
        Ok(verdict) => Some((
            403,
            format!(
                "{what}, and may still be in use on node {node}: {}. Fence the node first: ringfence host fence {node}",
                verdict.reason
            ),
        )),
        Err(error @ HookError::Unnamed(_)) => {
            Some((503, format!("{what}, and not all may leave node {node}: {error}")))
        }
        Err(error) => Some((
            503,
            format!("Ringfence cannot tell whether node {node} is FENCED: {error}"),
        )),
    }
}

/// The node that a pod leaves at once, if it runs there.
fn node_to_leave(pod: &PodToEvict, asked_s: Option<i64>) -> Option<String> {
    let is_at_once = asked_s.unwrap_or(pod.grace_s) == 0;
    let holds_something = pod.is_guarded && !pod.is_finished;
    pod.node.clone().filter(|_| is_at_once && holds_something)
}

/// A person's word is written by the person, who has to have the right.
async fn of_word(hook: &Hook, cluster: &str, user: &UserInfo, word: &Word) -> Option<Refusal> {
    let (node, name) = (&word.node, &user.username);
    if word.confirmed_by.as_deref() != Some(name) {
        let found = word.confirmed_by.as_deref().unwrap_or_default();
        let why = format!(
            "spec.confirmation.confirmedBy of NodeFence {node} is {found:?}, and {name:?} asks; your own name is allowed"
        );
        return Some((403, why));
    }
    let user = ClusterUser {
        name: name.clone(),
        uid: user.uid.clone(),
        groups: user.groups.clone(),
        extra: user.extra.clone(),
    };
    match hook.may_confirm(cluster, &user, node).await {
        Ok(true) => None,
        Ok(false) => Some((
            403,
            format!(
                "{name:?} may not confirm the fence of node {node}: the verb confirm on nodefences.ringfence.io is missing"
            ),
        )),
        Err(why) => Some((
            503,
            format!("Ringfence cannot tell whether {name:?} may confirm the fence of node {node}: {why}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_leaves_at_once_by_the_grace_of_the_request_or_its_own() {
        let pod = |grace_s| PodToEvict {
            uid: "u1".to_owned(),
            node: Some("n1".to_owned()),
            grace_s,
            is_guarded: true,
            is_finished: false,
        };
        assert_eq!(node_to_leave(&pod(0), None).as_deref(), Some("n1"));
        assert_eq!(node_to_leave(&pod(30), Some(0)).as_deref(), Some("n1"));
        assert_eq!(node_to_leave(&pod(30), None), None);
        assert_eq!(node_to_leave(&pod(0), Some(10)), None);
    }
}
