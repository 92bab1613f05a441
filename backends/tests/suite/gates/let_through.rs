//! What a cluster does every day, which no gate holds although no node is FENCED.

use serde_json::{Value, json};

use super::policies::{RINGFENCE, judge, policies};
use super::requests::{
    VOLUME, attachment, delete, member, node, out_of_service, plain, request, update, with,
};

const CONTROLLER: &str = "system:serviceaccount:kube-system:attachdetach-controller";
const NODE_CONTROLLER: &str = "system:serviceaccount:kube-system:node-controller";

#[track_caller]
fn assert_let_through(request: &Value) {
    for gate in [Some(&json!({})), None] {
        let verdict = judge(request, gate);
        assert!(verdict.is_let_through(), "{verdict:?}");
        assert!(verdict.audit.is_empty(), "{verdict:?}");
    }
}

#[test]
fn the_kubelet_ends_its_pods() {
    assert_let_through(&delete("system:node:n1", "pods", &member(), Some(0)));
    let failed = [("/status/phase", json!("Failed"))];
    assert_let_through(&update("system:node:n1", "pods/status", &member(), &failed));
}

#[test]
fn pods_are_deleted_with_their_grace_period() {
    for user in [
        "admin",
        "system:serviceaccount:kube-system:statefulset-controller",
        NODE_CONTROLLER,
    ] {
        assert_let_through(&delete(user, "pods", &member(), None));
        assert_let_through(&delete(user, "pods", &member(), Some(30)));
        assert_let_through(&delete(user, "pods", &member(), Some(1)));
    }
}

/// A drain asks for evictions, and no policy sees what follows from them.
#[test]
fn a_node_is_drained() {
    let eviction = json!({ "metadata": { "name": "db-0" }, "deleteOptions": { "gracePeriodSeconds": 30 } });
    assert_let_through(&request(
        "admin",
        "CREATE",
        "pods/eviction",
        [Value::Null, eviction],
    ));
    let cordon = [("/spec/unschedulable", json!(true))];
    assert_let_through(&update("admin", "nodes", &node("True"), &cordon));
}

#[test]
fn finished_pods_pods_that_were_never_bound_and_pods_without_a_volume_are_deleted_by_force() {
    for phase in ["Failed", "Succeeded"] {
        assert_let_through(&delete(
            "admin",
            "pods",
            &with(member(), "/status/phase", json!(phase)),
            Some(0),
        ));
    }
    let mut unbound = member();
    unbound["spec"].as_object_mut().unwrap().remove("nodeName");
    assert_let_through(&delete("admin", "pods", &unbound, Some(0)));
    assert_let_through(&delete("admin", "pods", &plain(), Some(0)));
    let mut bare = plain();
    bare["metadata"].as_object_mut().unwrap().remove("labels");
    bare["spec"].as_object_mut().unwrap().remove("volumes");
    assert_let_through(&delete("admin", "pods", &bare, Some(0)));
}

#[test]
fn a_node_that_is_ready_is_deleted() {
    assert_let_through(&delete("admin", "nodes", &node("True"), None));
}

#[test]
fn nodes_are_changed_by_kubelets_and_controllers() {
    let not_ready = json!([{ "key": "node.kubernetes.io/unreachable", "effect": "NoExecute" }]);
    assert_let_through(&update(
        NODE_CONTROLLER,
        "nodes",
        &node("Unknown"),
        &[("/spec/taints", not_ready)],
    ));
    let unknown = json!([{ "type": "Ready", "status": "Unknown" }]);
    assert_let_through(&update(
        NODE_CONTROLLER,
        "nodes/status",
        &node("True"),
        &[("/status/conditions", unknown)],
    ));
    let unused = [("/status/volumesInUse", json!([]))];
    assert_let_through(&update("system:node:n1", "nodes/status", &node("True"), &unused));
    let create = request("system:node:n1", "CREATE", "nodes", [Value::Null, node("True")]);
    assert_let_through(&create);
}

/// The taint is taken away, and other fields of a node that has it change.
#[test]
fn the_out_of_service_taint_goes() {
    let tainted = with(node("Unknown"), "/spec/taints", out_of_service());
    assert_let_through(&update(
        "admin",
        "nodes",
        &tainted,
        &[("/spec/taints", json!([]))],
    ));
    assert_let_through(&update(
        "admin",
        "nodes",
        &tainted,
        &[("/spec/unschedulable", json!(true))],
    ));
}

/// The kubelet has said that it uses the volume no more; or it never used it.
#[test]
fn the_controller_detaches_what_is_not_in_use() {
    for in_use in [json!([]), json!(["kubernetes.io/csi/csi.lab^other"])] {
        let node = with(node("True"), "/status/volumesInUse", in_use);
        let request = update(
            CONTROLLER,
            "nodes/status",
            &node,
            &[("/status/volumesAttached", json!([]))],
        );
        assert_let_through(&request);
    }
    let more = json!([{ "name": VOLUME }, { "name": "other" }]);
    assert_let_through(&update(
        CONTROLLER,
        "nodes/status",
        &node("True"),
        &[("/status/volumesAttached", more)],
    ));
    for user in [CONTROLLER, "system:kube-controller-manager"] {
        assert_let_through(&delete(user, "volumeattachments", &attachment(), None));
    }
}

#[test]
fn other_config_maps_and_config_maps_of_its_name_elsewhere_are_written() {
    let other = json!({ "metadata": { "name": "kube-root-ca.crt", "namespace": "ringfence" } });
    let gate = json!({ "metadata": { "name": "ringfence-gate", "namespace": "default" } });
    assert_let_through(&request("admin", "CREATE", "configmaps", [Value::Null, other]));
    let mut elsewhere = request("admin", "CREATE", "configmaps", [Value::Null, gate]);
    elsewhere["namespace"] = json!("default");
    assert_let_through(&elsewhere);
}

/// Words that a cluster refuses, or that stand for another rule there.
#[test]
fn every_policy_is_bound_and_none_has_a_word_that_the_cluster_would_fill_in() {
    let policies = policies();
    assert_eq!(policies.len(), 8);
    for (policy, binding) in policies {
        let actions = binding.spec.unwrap().validation_actions.unwrap();
        assert_eq!(actions, ["Deny"]);
        let spec = policy.spec.unwrap();
        let constraints = spec.match_constraints.unwrap();
        assert_eq!(constraints.match_policy.as_deref(), Some("Equivalent"));
        assert!(constraints.object_selector.is_some() && constraints.namespace_selector.is_some());
        for rule in constraints.resource_rules.unwrap() {
            assert_eq!(rule.scope.as_deref(), Some("*"));
            assert_eq!(
                rule.resource_names, None,
                "the deletion of a collection names no object"
            );
        }
        for validation in spec.validations.unwrap() {
            assert!(!validation.message.unwrap().contains('\n') && validation.reason.is_some());
        }
    }
}

/// What the gate object says of a node that is cut off from some of its storage alone.
fn only(names: &[&str]) -> Value {
    json!({ "n1_only": format!("\n{}\n", names.join("\n")) })
}

fn uid(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap().to_owned()
}

#[test]
fn of_a_node_that_is_cut_off_from_some_storage_only_the_named_pods_and_attachments_go() {
    let requests = [
        (
            member(),
            delete(RINGFENCE, "pods", &member(), Some(0)),
            "ringfence-pods",
        ),
        (
            attachment(),
            delete(RINGFENCE, "volumeattachments", &attachment(), None),
            "ringfence-volume-attachments",
        ),
    ];
    for (object, request, gate) in requests {
        let named = uid(&object);
        let passes = judge(&request, Some(&only(&["other", &named])));
        assert!(passes.is_let_through(), "{passes:?}");
        for not_named in [vec![], vec!["other"], vec![&named[1..]], vec![VOLUME]] {
            let held = judge(&request, Some(&only(&not_named)));
            assert_eq!(held.held_by(), [gate], "{not_named:?}");
            assert!(
                held.denials[0].1.contains("is cut off from other storage"),
                "{held:?}"
            );
        }
    }
}

#[test]
fn of_a_node_that_is_cut_off_from_some_storage_only_the_named_volumes_are_in_use_no_more() {
    let mut node = node("Unknown");
    node["status"]["volumesInUse"] = json!([VOLUME, "other"]);
    let forget = |kept: Value| {
        update(
            RINGFENCE,
            "nodes/status",
            &node,
            &[("/status/volumesInUse", kept)],
        )
    };
    let one = judge(&forget(json!(["other"])), Some(&only(&[VOLUME])));
    assert!(one.is_let_through(), "{one:?}");
    let both = judge(&forget(json!([])), Some(&only(&[VOLUME])));
    assert_eq!(both.held_by(), ["ringfence-node-volumes"]);
    let part = judge(&forget(json!(["other"])), Some(&only(&[&VOLUME[1..]])));
    assert_eq!(part.held_by(), ["ringfence-node-volumes"]);
}

#[test]
fn a_node_that_is_cut_off_from_some_storage_is_neither_deleted_nor_taken_out_of_service() {
    let gate = only(&[&uid(&member()), VOLUME]);
    let deletion = delete(RINGFENCE, "nodes", &node("Unknown"), None);
    assert_eq!(
        judge(&deletion, Some(&gate)).held_by(),
        ["ringfence-node-deletion"]
    );
    let taint = update(
        RINGFENCE,
        "nodes",
        &node("Unknown"),
        &[("/spec/taints", out_of_service())],
    );
    assert_eq!(judge(&taint, Some(&gate)).held_by(), ["ringfence-out-of-service"]);
}
