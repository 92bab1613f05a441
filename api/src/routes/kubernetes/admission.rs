//! `POST /kubernetes/admission/{cluster}`: may this request of a cluster's API be carried out? The protocol is that of validating webhooks.
//!
//! An API server sends no token, so that none is asked for. The answer tells whether a node may be evacuated, and nothing else.

use actix_web::{HttpResponse, web};
use ringfence_scheduler_hook::{Hook, HookError, PodToEvict, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::ApiError;
use crate::body::LongBody;
use crate::error::ErrorList;

/// The longest question, in bytes: an object as it is and as it was, each of up to 1.5 MiB, and what JSON adds.
pub(crate) const MAX_BODY_BYTES: usize = 4 * 1024 * 1024;
/// The longest id of a request, in characters.
const MAX_UID_CHARS: usize = 128;
/// The group whose members override the gates.
const BREAK_GLASS: &str = "ringfence:break-glass";
/// The accounts of the cluster's own controller that detaches volumes.
const CONTROLLERS: [&str; 2] = [
    "system:serviceaccount:kube-system:attachdetach-controller",
    "system:kube-controller-manager",
];
const GUARDED: &str = "ringfence.io/guarded";
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
    resource: String,
}

#[derive(Debug, Deserialize)]
struct UserInfo {
    #[serde(default)]
    username: String,
    #[serde(default)]
    groups: Vec<String>,
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

/// What a request needs.
#[derive(Debug, PartialEq, Eq)]
enum Needs {
    /// It removes nothing that may still run.
    Nothing,
    /// The node's workloads may be started elsewhere.
    Fenced { node: String, what: String },
    /// The node has let go of the volume, or can no longer use it.
    Detachable { node: String, what: String },
    /// That depends on a pod.
    Pod {
        namespace: String,
        name: String,
        grace_s: Option<i64>,
    },
    /// It cannot be told.
    Unclear(String),
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
    let uid = &request.uid;
    let refusal = match needs(request) {
        Needs::Nothing => None,
        needs => refusal(hook, cluster, needs).await,
    };
    let Some((code, message)) = refusal else {
        return json!({ "uid": uid, "allowed": true });
    };
    if request.user_info.groups.iter().any(|group| group == BREAK_GLASS) {
        let told = format!("{} has overridden: {message}", request.user_info.username);
        tracing::warn!(
            cluster,
            user = request.user_info.username,
            message,
            "a gate was overridden"
        );
        return json!({ "uid": uid, "allowed": true, "auditAnnotations": { "break-glass": told } });
    }
    json!({ "uid": uid, "allowed": false, "status": { "code": code, "message": message } })
}

/// Why it may not be carried out, with the status that the API server answers.
async fn refusal(hook: &Hook, cluster: &str, needs: Needs) -> Option<(u16, String)> {
    match needs {
        Needs::Nothing => None,
        Needs::Fenced { node, what } => judged(&node, &what, hook.may_evacuate(cluster, &node).await),
        Needs::Detachable { node, what } => judged(&node, &what, hook.may_detach(cluster, &node).await),
        Needs::Pod {
            namespace,
            name,
            grace_s,
        } => match hook.pod_to_evict(cluster, &namespace, &name).await {
            Ok(None) => None,
            Ok(Some(pod)) => {
                let node = node_to_leave(&pod, grace_s)?;
                let what = format!("pod {namespace}/{name} would be removed at once");
                judged(&node, &what, hook.may_evacuate(cluster, &node).await)
            }
            Err(why) => Some((
                503,
                format!("Ringfence cannot tell how pod {namespace}/{name} would end: {why}"),
            )),
        },
        Needs::Unclear(why) => Some((
            403,
            format!("Ringfence cannot tell what the request removes: {why}"),
        )),
    }
}

fn judged(node: &str, what: &str, verdict: Result<Verdict, HookError>) -> Option<(u16, String)> {
    match verdict {
        Ok(verdict) if verdict.allowed => None,
        Ok(verdict) => Some((
            403,
            format!(
                "{what}, and may still be in use on node {node}: {}. Fence the node first: ringfence host fence {node}",
                verdict.reason
            ),
        )),
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

fn needs(request: &AdmissionRequest) -> Needs {
    let resource = &request.resource.resource;
    let sub = request.sub_resource.as_deref().unwrap_or_default();
    match (request.operation.as_str(), resource.as_str(), sub) {
        ("DELETE", "pods", "") => pod_deletion(request),
        ("UPDATE", "pods", "status") => pod_phase(request),
        ("CREATE", "pods", "eviction") => eviction(request),
        ("DELETE", "nodes", "") => node_deletion(&request.old_object),
        ("DELETE", "volumeattachments", "") => detachment(request),
        _ => Needs::Nothing,
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
}

/// A pod of a node, which its kubelet alone may end.
fn pod_on_node(request: &AdmissionRequest) -> Result<String, Needs> {
    let pod = &request.old_object;
    if !pod.is_object() {
        return Err(Needs::Unclear("it shows no pod".to_owned()));
    }
    let Some(node) = text(pod, "/spec/nodeName") else {
        return Err(Needs::Nothing);
    };
    let is_own = request.user_info.username == format!("system:node:{node}");
    if is_own || !is_guarded(pod) || is_finished(pod) {
        return Err(Needs::Nothing);
    }
    Ok(node.to_owned())
}

fn pod_deletion(request: &AdmissionRequest) -> Needs {
    let node = match pod_on_node(request) {
        Ok(node) => node,
        Err(needs) => return needs,
    };
    let own = request.old_object.pointer("/spec/terminationGracePeriodSeconds");
    let grace = request
        .options
        .get("gracePeriodSeconds")
        .filter(|grace| !grace.is_null())
        .or(own);
    if grace.and_then(Value::as_i64).unwrap_or(0) != 0 {
        return Needs::Nothing;
    }
    Needs::Fenced {
        node,
        what: format!("{} would be removed at once", named("pod", &request.old_object)),
    }
}

fn pod_phase(request: &AdmissionRequest) -> Needs {
    match pod_on_node(request) {
        Ok(node) if is_finished(&request.object) => Needs::Fenced {
            node,
            what: format!("{} would be called finished", named("pod", &request.old_object)),
        },
        Ok(_) => Needs::Nothing,
        Err(needs) => needs,
    }
}

fn eviction(request: &AdmissionRequest) -> Needs {
    let name = request
        .name
        .as_deref()
        .or(text(&request.object, "/metadata/name"));
    let (Some(namespace), Some(name)) = (request.namespace.as_deref(), name) else {
        return Needs::Unclear("it names no pod".to_owned());
    };
    let grace = request.object.pointer("/deleteOptions/gracePeriodSeconds");
    Needs::Pod {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        grace_s: grace.and_then(Value::as_i64),
    }
}

fn node_deletion(node: &Value) -> Needs {
    let Some(name) = text(node, "/metadata/name") else {
        return Needs::Unclear("it shows no node".to_owned());
    };
    let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
    let is_ready = |condition: &Value| condition["type"] == "Ready" && condition["status"] == "True";
    if conditions.is_some_and(|conditions| conditions.iter().any(is_ready)) {
        return Needs::Nothing;
    }
    Needs::Fenced {
        node: name.to_owned(),
        what: format!("node {name} is not Ready, and would be deleted with its pods"),
    }
}

fn detachment(request: &AdmissionRequest) -> Needs {
    let Some(node) = text(&request.old_object, "/spec/nodeName") else {
        return Needs::Unclear("it shows no attachment".to_owned());
    };
    let node = node.to_owned();
    let what = format!("{} would be detached", named("attachment", &request.old_object));
    if CONTROLLERS.contains(&request.user_info.username.as_str()) {
        Needs::Detachable { node, what }
    } else {
        Needs::Fenced { node, what }
    }
}

fn named(kind: &str, object: &Value) -> String {
    format!("{kind} {}", text(object, "/metadata/name").unwrap_or_default())
}

fn is_guarded(pod: &Value) -> bool {
    let label = pod
        .pointer("/metadata/labels")
        .and_then(|labels| labels.get(GUARDED));
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array);
    let is_kept =
        |volume: &Value| volume.get("persistentVolumeClaim").is_some() || volume.get("ephemeral").is_some();
    label.is_some_and(|label| label == "true") || volumes.is_some_and(|volumes| volumes.iter().any(is_kept))
}

fn is_finished(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), Some("Failed" | "Succeeded"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(operation: &str, resource: &str, user: &str, old: Value) -> AdmissionRequest {
        let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
        serde_json::from_value(json!({
            "uid": "1", "operation": operation, "resource": { "group": "", "version": "v1", "resource": resource },
            "subResource": sub, "namespace": "default", "name": "db-0",
            "userInfo": { "username": user, "groups": ["system:authenticated"] }, "oldObject": old,
        }))
        .unwrap()
    }

    fn member() -> Value {
        json!({
            "metadata": { "name": "db-0" }, "status": { "phase": "Running" },
            "spec": { "nodeName": "n1", "terminationGracePeriodSeconds": 30,
                "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "data-db-0" } }] },
        })
    }

    fn is_held(request: &AdmissionRequest) -> bool {
        match needs(request) {
            Needs::Fenced { node, .. } => node == "n1",
            Needs::Nothing => false,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_member_is_not_removed_at_once_by_another_than_its_kubelet() {
        let by = |user: &str, grace: Option<i64>| {
            let mut request = request("DELETE", "pods", user, member());
            request.options = json!({ "gracePeriodSeconds": grace });
            is_held(&request)
        };
        assert!(by("admin", Some(0)) && by("system:node:n2", Some(0)));
        assert!(!by("system:node:n1", Some(0)));
        assert!(!by("admin", Some(30)) && !by("admin", None));
        let mut hasty = member();
        hasty["spec"]["terminationGracePeriodSeconds"] = json!(0);
        assert!(is_held(&request("DELETE", "pods", "admin", hasty)));
    }

    #[test]
    fn a_finished_pod_is_removed_and_only_its_kubelet_calls_a_member_finished() {
        let mut finished = member();
        finished["status"]["phase"] = json!("Failed");
        let mut deletion = request("DELETE", "pods", "admin", finished.clone());
        deletion.options = json!({ "gracePeriodSeconds": 0 });
        assert!(!is_held(&deletion));
        let ends = |user: &str| {
            let mut request = request("UPDATE", "pods/status", user, member());
            request.object = finished.clone();
            is_held(&request)
        };
        assert!(ends("admin"));
        assert!(!ends("system:node:n1"));
    }

    #[test]
    fn a_node_that_is_not_ready_is_not_deleted() {
        let node = |ready: &str| json!({ "metadata": { "name": "n1" }, "status": { "conditions": [{ "type": "Ready", "status": ready }] } });
        let is_held_while = |ready| is_held(&request("DELETE", "nodes", "admin", node(ready)));
        assert!(is_held_while("Unknown") && is_held_while("False"));
        assert!(!is_held_while("True"));
    }

    #[test]
    fn an_attachment_is_judged_by_who_deletes_it() {
        let attachment = json!({ "metadata": { "name": "csi-1" }, "spec": { "nodeName": "n1" } });
        assert!(is_held(&request(
            "DELETE",
            "volumeattachments",
            "admin",
            attachment.clone()
        )));
        let own = needs(&request(
            "DELETE",
            "volumeattachments",
            CONTROLLERS[0],
            attachment,
        ));
        assert!(matches!(own, Needs::Detachable { .. }), "{own:?}");
    }

    #[test]
    fn an_eviction_is_judged_by_its_pod() {
        let asked = needs(&request("CREATE", "pods/eviction", "admin", Value::Null));
        let wanted = Needs::Pod {
            namespace: "default".to_owned(),
            name: "db-0".to_owned(),
            grace_s: None,
        };
        assert_eq!(asked, wanted);
        let pod = |grace_s| PodToEvict {
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

    #[test]
    fn what_shows_nothing_is_unclear() {
        for (operation, resource) in [
            ("DELETE", "pods"),
            ("DELETE", "nodes"),
            ("DELETE", "volumeattachments"),
        ] {
            let found = needs(&request(operation, resource, "admin", Value::Null));
            assert!(matches!(found, Needs::Unclear(_)), "{found:?}");
        }
    }
}
