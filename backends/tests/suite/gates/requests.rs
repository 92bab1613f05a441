//! Requests as an API server shows them to its policies, cut down to the fields that matter. The node is `n1`.

use serde_json::{Value, json};

/// A request: who asks for what.
pub fn request(user: &str, operation: &str, resource: &str, objects: [Value; 2]) -> Value {
    let [old, new] = objects;
    let (resource, sub) = match resource.split_once('/') {
        Some((resource, sub)) => (resource, json!(sub)),
        None => (resource, Value::Null),
    };
    let (group, namespace) = match resource {
        "nodefences" => ("ringfence.io", ""),
        "volumeattachments" => ("storage.k8s.io", ""),
        "nodes" => ("", ""),
        "configmaps" => ("", "ringfence"),
        _ => ("", "default"),
    };
    let mut request = json!({
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "resource": { "group": group, "version": "v1", "resource": resource },
        "namespace": namespace,
        "operation": operation,
        "userInfo": { "username": user, "groups": groups(user) },
        "options": { "kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1" },
        "dryRun": false,
        "oldObject": old,
        "object": new,
    });
    if !sub.is_null() {
        request["subResource"] = sub;
    }
    request
}

fn groups(user: &str) -> Value {
    match user {
        "admin" => json!(["system:masters", "system:authenticated"]),
        node if node.starts_with("system:node:") => json!(["system:nodes", "system:authenticated"]),
        _ => json!(["system:serviceaccounts", "system:authenticated"]),
    }
}

/// A request for a deletion with this grace, if any.
pub fn delete(user: &str, resource: &str, old: &Value, grace: Option<i64>) -> Value {
    let mut request = request(user, "DELETE", resource, [old.clone(), Value::Null]);
    if let Some(grace) = grace {
        request["options"]["gracePeriodSeconds"] = grace.into();
    }
    request
}

/// A change of an object.
pub fn update(user: &str, resource: &str, old: &Value, change: &[(&str, Value)]) -> Value {
    let mut new = old.clone();
    for (pointer, value) in change {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        new.pointer_mut(parent).unwrap()[field] = value.clone();
    }
    request(user, "UPDATE", resource, [old.clone(), new])
}

/// A member of a set, with a volume.
pub fn member() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "db-0", "namespace": "default", "uid": "u1-0c", "labels": { "app": "db" } },
        "spec": {
            "nodeName": "n1", "terminationGracePeriodSeconds": 30,
            "volumes": [
                { "name": "data", "persistentVolumeClaim": { "claimName": "data-db-0" } },
                { "name": "kube-api-access", "projected": { "defaultMode": 420 } },
            ],
            "containers": [{ "name": "main", "image": "db" }],
        },
        "status": { "phase": "Running" },
    })
}

/// A pod without a volume.
pub fn plain() -> Value {
    let mut pod = member();
    pod["spec"]["volumes"] = json!([{ "name": "kube-api-access", "projected": { "defaultMode": 420 } }]);
    pod
}

/// With one field set.
pub fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value;
    object
}

/// The volume as the lists of nodes name it.
pub const VOLUME: &str = "kubernetes.io/csi/csi.lab^v1";

/// The node, with one volume attached and in use.
pub fn node(ready: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "n1", "labels": { "kubernetes.io/hostname": "n1" } },
        "spec": { "podCIDR": "10.244.1.0/24" },
        "status": {
            "conditions": [
                { "type": "MemoryPressure", "status": "Unknown" },
                { "type": "Ready", "status": ready, "reason": "NodeStatusUnknown" },
            ],
            "volumesInUse": [VOLUME],
            "volumesAttached": [{ "name": VOLUME, "devicePath": "" }],
        },
    })
}

pub fn attachment() -> Value {
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
        "metadata": { "name": "csi-1", "uid": "a1-7f", "finalizers": ["external-attacher/csi-lab"] },
        "spec": { "attacher": "csi.lab", "nodeName": "n1", "source": { "persistentVolumeName": "pv1" } },
        "status": { "attached": true },
    })
}

pub fn out_of_service() -> Value {
    json!([{ "key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute" }])
}

/// A request made by a member of the group that may override.
pub fn breaking_glass(mut request: Value) -> Value {
    request["userInfo"]["groups"]
        .as_array_mut()
        .unwrap()
        .push(json!("ringfence:break-glass"));
    request
}
