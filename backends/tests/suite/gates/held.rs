//! What is held while the node is not in the gate object, and let through once the node is.

use serde_json::{Value, json};

use super::policies::{RINGFENCE, judge};
use super::requests::{
    VOLUME, attachment, breaking_glass, delete, member, node, out_of_service, plain, request, update, with,
};

const COLLECTOR: &str = "system:serviceaccount:kube-system:pod-garbage-collector";
const CONTROLLER: &str = "system:serviceaccount:kube-system:attachdetach-controller";

/// The request is held by this gate alone: while another node is FENCED, and without a gate object. It passes once the node is FENCED,
/// for every user, and for those who may override, with a line in the audit log.
#[track_caller]
fn assert_held(request: &Value, by: &str) {
    let closed = judge(request, Some(&json!({ "n2": "7" })));
    assert_eq!(closed.held_by(), [by], "{closed:?}");
    assert!(
        closed.denials[0].1.contains("ringfence host fence n1"),
        "{closed:?}"
    );
    assert!(closed.audit.is_empty());
    assert_eq!(judge(request, None).held_by(), [by], "without a gate object");
    assert_eq!(
        judge(request, Some(&Value::Null)).denials.len(),
        1,
        "with an empty gate object"
    );
    let open = judge(request, Some(&json!({ "n1": "5" })));
    assert!(open.is_let_through(), "{open:?}");
    let broken = judge(&breaking_glass(request.clone()), Some(&json!({})));
    assert!(broken.is_let_through(), "{broken:?}");
    assert_eq!(broken.audit.len(), 1, "{broken:?}");
    assert!(broken.audit[0].contains("n1"), "{broken:?}");
}

#[test]
fn the_forced_deletion_of_a_member_is_held_for_every_user() {
    for user in ["admin", COLLECTOR, RINGFENCE, "system:node:n2"] {
        assert_held(&delete(user, "pods", &member(), Some(0)), "ringfence-pods");
    }
}

#[test]
fn the_plain_deletion_of_a_member_without_a_grace_period_of_its_own_is_held() {
    let hasty = with(member(), "/spec/terminationGracePeriodSeconds", json!(0));
    assert_held(&delete("admin", "pods", &hasty, None), "ringfence-pods");
    assert_held(&delete("admin", "pods", &hasty, Some(0)), "ringfence-pods");
}

/// One of the requests that the deletion of a collection comes to: it names no object but the one that was there.
#[test]
fn the_forced_deletion_of_all_pods_of_a_namespace_is_held() {
    let mut one = delete("admin", "pods", &member(), Some(0));
    one["name"] = json!("");
    assert_held(&one, "ringfence-pods");
}

#[test]
fn the_forced_deletion_of_a_pod_with_a_volume_of_its_own_or_our_label_is_held() {
    let claim = json!([{ "name": "scratch", "ephemeral": { "volumeClaimTemplate": {} } }]);
    let own = with(plain(), "/spec/volumes", claim);
    assert_held(&delete("admin", "pods", &own, Some(0)), "ringfence-pods");
    let labelled = with(
        plain(),
        "/metadata/labels",
        json!({ "ringfence.io/guarded": "true" }),
    );
    assert_held(&delete("admin", "pods", &labelled, Some(0)), "ringfence-pods");
    let without_volumes = with(labelled, "/spec", json!({ "nodeName": "n1" }));
    assert_held(
        &delete("admin", "pods", &without_volumes, Some(0)),
        "ringfence-pods",
    );
}

#[test]
fn a_member_is_not_called_finished_by_another_than_its_kubelet() {
    for phase in ["Failed", "Succeeded"] {
        let request = update(
            COLLECTOR,
            "pods/status",
            &member(),
            &[("/status/phase", json!(phase))],
        );
        assert_held(&request, "ringfence-pod-phases");
    }
}

#[test]
fn the_deletion_of_a_node_that_is_not_ready_is_held() {
    for node in [
        node("Unknown"),
        node("False"),
        with(node("True"), "/status", json!({})),
    ] {
        assert_held(&delete("admin", "nodes", &node, None), "ringfence-node-deletion");
    }
}

#[test]
fn the_out_of_service_taint_is_held() {
    for user in ["admin", RINGFENCE] {
        let request = update(
            user,
            "nodes",
            &node("Unknown"),
            &[("/spec/taints", out_of_service())],
        );
        assert_held(&request, "ringfence-out-of-service");
    }
    let other_effect = json!([{ "key": "node.kubernetes.io/out-of-service", "effect": "NoSchedule" }]);
    let request = update("admin", "nodes", &node("True"), &[("/spec/taints", other_effect)]);
    assert_held(&request, "ringfence-out-of-service");
}

#[test]
fn a_node_is_not_made_with_the_out_of_service_taint() {
    let tainted = with(node("Unknown"), "/spec/taints", out_of_service());
    let create = super::requests::request("system:node:n1", "CREATE", "nodes", [Value::Null, tainted]);
    assert_held(&create, "ringfence-out-of-service");
}

#[test]
fn the_forced_detachment_of_a_volume_in_use_is_held() {
    for ready in ["Unknown", "True"] {
        let request = update(
            CONTROLLER,
            "nodes/status",
            &node(ready),
            &[("/status/volumesAttached", json!([]))],
        );
        assert_held(&request, "ringfence-node-volumes");
    }
    let mut gone = node("Unknown");
    gone["status"].as_object_mut().unwrap().remove("volumesAttached");
    let request = request(CONTROLLER, "UPDATE", "nodes/status", [node("Unknown"), gone]);
    assert_held(&request, "ringfence-node-volumes");
}

#[test]
fn only_the_kubelet_says_that_a_volume_is_in_use_no_more() {
    for user in ["admin", CONTROLLER, RINGFENCE] {
        let request = update(
            user,
            "nodes/status",
            &node("Unknown"),
            &[("/status/volumesInUse", json!([]))],
        );
        assert_held(&request, "ringfence-node-volumes");
    }
}

#[test]
fn the_deletion_of_an_attachment_is_held_unless_the_clusters_own_controller_asks() {
    for user in [
        "admin",
        RINGFENCE,
        "system:serviceaccount:longhorn-system:longhorn",
    ] {
        assert_held(
            &delete(user, "volumeattachments", &attachment(), None),
            "ringfence-volume-attachments",
        );
    }
}

#[test]
fn the_gate_object_is_written_by_ringfence_alone() {
    let gate =
        json!({ "metadata": { "name": "ringfence-gate", "namespace": "ringfence" }, "data": { "n2": "1" } });
    let forged = [("/data/n1", json!("5"))];
    let open = json!({ "n1": "5" });
    for user in ["admin", "system:node:n1", "system:serviceaccount:ringfence:other"] {
        let change = update(user, "configmaps", &gate, &forged);
        assert_eq!(judge(&change, Some(&open)).held_by(), ["ringfence-gate-object"]);
        let make = request(user, "CREATE", "configmaps", [Value::Null, gate.clone()]);
        assert_eq!(judge(&make, None).held_by(), ["ringfence-gate-object"]);
    }
    let broken = judge(
        &breaking_glass(update("admin", "configmaps", &gate, &forged)),
        None,
    );
    assert!(broken.is_let_through() && broken.audit.len() == 1, "{broken:?}");
    let own = judge(&update(RINGFENCE, "configmaps", &gate, &forged), None);
    assert!(own.is_let_through() && own.audit.is_empty(), "{own:?}");
}

#[test]
fn a_volume_in_use_is_held_among_others() {
    let mut node = node("Unknown");
    node["status"]["volumesAttached"] = json!([{ "name": "other" }, { "name": VOLUME }]);
    let request = update(
        CONTROLLER,
        "nodes/status",
        &node,
        &[("/status/volumesAttached", json!([{ "name": "other" }]))],
    );
    assert_held(&request, "ringfence-node-volumes");
}
