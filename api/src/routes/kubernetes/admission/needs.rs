//! What a request needs before it may be carried out.

use serde_json::Value;

use super::AdmissionRequest;

/// The accounts of the cluster's own controller that detaches volumes.
const CONTROLLERS: [&str; 2] = [
    "system:serviceaccount:kube-system:attachdetach-controller",
    "system:kube-controller-manager",
];
const GUARDED: &str = "ringfence.io/guarded";

/// What a request needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// It removes nothing that may still run.
    Nothing,
    /// All of the node's workloads may be started elsewhere.
    Fenced { node: String, what: String },
    /// This may leave the node: a pod, or an attachment with its volume. The cluster's own controller also detaches what the node has let go of.
    ToLeave {
        node: String,
        what: String,
        uid: String,
        volume: Option<String>,
        by_controller: bool,
    },
    /// That depends on a pod.
    Pod {
        namespace: String,
        name: String,
        grace_s: Option<i64>,
    },
    /// A person's word is written.
    Word(Word),
    /// It cannot be told.
    Unclear(String),
}

/// A person's word in a `NodeFence`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub node: String,
    pub confirmed_by: Option<String>,
}

pub(super) fn needs(request: &AdmissionRequest) -> Needs {
    let resource = &request.resource.resource;
    let sub = request.sub_resource.as_deref().unwrap_or_default();
    if request.resource.group == "ringfence.io" {
        return match (request.operation.as_str(), resource.as_str(), sub) {
            ("CREATE" | "UPDATE", "nodefences", "") => word(request),
            _ => Needs::Nothing,
        };
    }
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
    Needs::ToLeave {
        node,
        what: format!("{} would be removed at once", named("pod", &request.old_object)),
        uid: uid(&request.old_object),
        volume: None,
        by_controller: false,
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
    let volume = text(&request.old_object, "/spec/source/persistentVolumeName");
    Needs::ToLeave {
        node: node.to_owned(),
        what: format!("{} would be detached", named("attachment", &request.old_object)),
        uid: uid(&request.old_object),
        volume: volume.map(str::to_owned),
        by_controller: CONTROLLERS.contains(&request.user_info.username.as_str()),
    }
}

/// A word that is new or changed. Others who change the object leave it as it is, or take it away.
fn word(request: &AdmissionRequest) -> Needs {
    let of = |object: &Value| object.pointer("/spec/confirmation").cloned().unwrap_or_default();
    let (word, known) = (of(&request.object), of(&request.old_object));
    if word.is_null() || word == known {
        return Needs::Nothing;
    }
    let Some(node) = text(&request.object, "/metadata/name") else {
        return Needs::Unclear("it shows no NodeFence with a name".to_owned());
    };
    Needs::Word(Word {
        node: node.to_owned(),
        confirmed_by: text(&word, "/confirmedBy").map(str::to_owned),
    })
}

fn uid(object: &Value) -> String {
    text(object, "/metadata/uid").unwrap_or_default().to_owned()
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
    use serde_json::json;

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
            Needs::Fenced { node, .. } | Needs::ToLeave { node, .. } => node == "n1",
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
    fn an_attachment_is_judged_by_its_uid_and_its_volume_and_by_who_deletes_it() {
        let attachment = json!({
            "metadata": { "name": "csi-1", "uid": "a1" },
            "spec": { "nodeName": "n1", "source": { "persistentVolumeName": "pv1" } },
        });
        for (user, is_controller) in [("admin", false), (CONTROLLERS[0], true)] {
            let found = needs(&request("DELETE", "volumeattachments", user, attachment.clone()));
            let wanted = Needs::ToLeave {
                node: "n1".to_owned(),
                what: "attachment csi-1 would be detached".to_owned(),
                uid: "a1".to_owned(),
                volume: Some("pv1".to_owned()),
                by_controller: is_controller,
            };
            assert_eq!(found, wanted);
        }
    }

    #[test]
    fn what_the_gate_object_cannot_name_needs_the_whole_node() {
        let node = json!({ "metadata": { "name": "n1" } });
        let mut phase = request("UPDATE", "pods/status", "admin", member());
        phase.object = json!({ "status": { "phase": "Failed" } });
        for request in [request("DELETE", "nodes", "admin", node), phase] {
            let found = needs(&request);
            assert!(matches!(found, Needs::Fenced { .. }), "{found:?}");
        }
    }

    #[test]
    fn a_word_is_one_that_is_new_or_changed() {
        let fence = |confirmation: Value| json!({ "metadata": { "name": "n1" }, "spec": { "reason": "dead", "confirmation": confirmation } });
        let asked = |operation: &str, old: Value, new: Value| {
            let mut request = request(operation, "nodefences", "alice", old);
            request.resource.group = "ringfence.io".to_owned();
            request.object = new;
            needs(&request)
        };
        let word = json!({ "generation": 1, "reason": "I pulled its plug", "confirmedBy": "alice" });
        let wanted = |by: Option<&str>| {
            Needs::Word(Word {
                node: "n1".to_owned(),
                confirmed_by: by.map(str::to_owned),
            })
        };
        let made = asked("CREATE", Value::Null, fence(word.clone()));
        assert_eq!(made, wanted(Some("alice")));
        let mut changed = word.clone();
        changed["reason"] = json!("I looked");
        let changed = asked("UPDATE", fence(word.clone()), fence(changed));
        assert_eq!(changed, wanted(Some("alice")));
        let mut unsigned = word.clone();
        unsigned.as_object_mut().unwrap().remove("confirmedBy");
        let unsigned = asked("UPDATE", fence(Value::Null), fence(unsigned));
        assert_eq!(unsigned, wanted(None));

        let mut other = fence(word.clone());
        other["spec"]["suspend"] = json!(true);
        assert_eq!(asked("UPDATE", fence(word.clone()), other), Needs::Nothing);
        let removed = asked("UPDATE", fence(word), fence(Value::Null));
        assert_eq!(removed, Needs::Nothing);
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
