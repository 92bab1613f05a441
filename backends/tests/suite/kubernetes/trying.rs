//! What the doctor says of gates that it tries, against policies that are really evaluated on what it asks.

use ringfence_backends::kubernetes::ClusterUses;
use serde_json::{Value, json};

use super::api_server::{ApiServer, Found, GATE_OBJECT, place};
use super::definitions::definitions;
use super::installed::{shipped_policies, valid_authority, with_webhooks};
use crate::gates::requests::{VOLUME, attachment, member, node, plain, with};

const TRIED: [(&str, &str); 5] = [
    ("ringfence-pods", "the deletion of pod db-0 by force"),
    ("ringfence-out-of-service", "the out-of-service taint on node n1"),
    ("ringfence-node-volumes", "that node n1 uses no volume"),
    ("ringfence-volume-attachments", "the deletion of attachment csi-1"),
    (
        "ringfence-confirmations",
        "a word under the name ringfence:doctor in NodeFence n1",
    ),
];
const OPERATOR: ClusterUses = ClusterUses {
    has_operator: true,
    has_records: true,
};

fn put(server: &ApiServer, object: Value) {
    server.answers().put(&place(&object), object);
}

fn mark(server: &ApiServer, nodes: Value) {
    let gate = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "ringfence-gate", "namespace": "ringfence" }, "data": nodes,
    });
    server.answers().put(GATE_OBJECT, gate);
}

fn fence() -> Value {
    json!({
        "apiVersion": "ringfence.io/v1alpha1", "kind": "NodeFence", "metadata": { "name": "n1" },
        "spec": { "nodeName": "n1", "reason": "dead" },
    })
}

/// A cluster in whose only node a member with a volume runs.
fn fill(server: &ApiServer) {
    put(server, node("True"));
    put(server, member());
    put(server, attachment());
    put(server, fence());
    mark(server, json!({ "n2": "7" }));
}

async fn plant() -> ApiServer {
    let server = ApiServer::start(30).await;
    server.answers().install(&shipped_policies());
    fill(&server);
    define(&server);
    server
}

fn define(server: &ApiServer) {
    for definition in definitions() {
        put(server, definition);
    }
}

async fn examined(server: &ApiServer) -> Found {
    let found = server.examined_as(OPERATOR).await;
    server.assert_nothing_was_changed();
    found
}

#[tokio::test]
async fn each_gate_that_can_be_tried_refuses_what_it_is_tried_with() {
    let server = plant().await;
    let found = examined(&server).await;
    for (gate, what) in TRIED {
        found.good(&format!(
            "east: the gate {gate} has refused {what}, which was tried without effect"
        ));
    }
    assert!(
        found.warnings("").is_empty() && found.failures("").is_empty(),
        "{found:?}"
    );
    // Without a gate object every gate is closed.
    server.answers().take(GATE_OBJECT);
    assert!(examined(&server).await.warnings("").is_empty());
}

#[tokio::test]
async fn gates_that_the_api_server_does_not_ask_are_told_as_open() {
    let server = plant().await;
    server.answers().asks_policies = false;
    let found = examined(&server).await;
    for (gate, what) in TRIED {
        let (told, remedy) = found.warning(&format!("the gate {gate} "));
        assert!(
            told.starts_with(&format!(
                "east: the gate {gate} has let through {what}, which was tried without effect; "
            )),
            "{told}"
        );
        assert!(remedy.contains("ValidatingAdmissionPolicy"), "{remedy}");
    }
    let (pods, _) = found.warning("ringfence-pods");
    assert!(pods.ends_with("its node is not FENCED"), "{pods}");
    let (words, _) = found.warning("ringfence-confirmations");
    assert!(words.ends_with("can confirm under every name"), "{words}");
}

#[tokio::test]
async fn an_account_that_overrides_the_gates_is_told_and_words_are_held_even_then() {
    let server = plant().await;
    server.answers().user_groups.push("ringfence:break-glass");
    let found = examined(&server).await;
    let open = found.warnings("has let through");
    assert_eq!(open.len(), 4, "{found:?}");
    for (_, remedy) in open {
        assert!(remedy.contains("ringfence:break-glass"), "{remedy}");
    }
    found.good("the gate ringfence-confirmations has refused");
}

/// A request that another part of the cluster refuses says nothing of the gate.
#[tokio::test]
async fn a_refusal_by_another_is_no_proof_of_the_gate() {
    for (code, reason, message) in [
        (403, "Forbidden", "denied the request: not on Thursdays"),
        (
            400,
            "BadRequest",
            "admission webhook \"w\" does not support dry run",
        ),
        (409, "Conflict", "the object has been modified"),
        (500, "InternalError", "no quorum"),
        (404, "NotFound", "not found"),
    ] {
        let server = plant().await;
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code,
            "message": message,
        });
        for method in ["DELETE", "PATCH"] {
            server.answers().instead = Some((method, code, "application/json", status.to_string()));
            let found = examined(&server).await;
            let tried = match method {
                "DELETE" => ["ringfence-pods", "ringfence-volume-attachments"],
                _ => ["ringfence-node-volumes", "ringfence-confirmations"],
            };
            for gate in tried {
                let (told, remedy) = found.warning(&format!("the gate {gate} could not be tried"));
                assert!(told.ends_with(message), "{told}");
                assert!(remedy.contains("API server's log"), "{remedy}");
            }
        }
    }
}

#[tokio::test]
async fn a_gate_that_is_not_as_shipped_is_not_tried() {
    let server = plant().await;
    server.answers().change(
        &super::api_server::policy("ringfence-pods"),
        "/spec/validations/0/expression",
        json!("true"),
    );
    let found = examined(&server).await;
    let (told, _) = found.warning("ringfence-pods");
    assert!(told.contains("was changed"), "{told}");
    found.good("the gate ringfence-volume-attachments has refused");
}

#[tokio::test]
async fn a_gate_without_an_object_to_try_it_with_is_told_as_not_tried() {
    let server = ApiServer::start(30).await;
    server.answers().install(&shipped_policies());
    let found = examined(&server).await;
    for (gate, why) in [
        (
            "ringfence-pods",
            "no pod with a volume claim or the label ringfence.io/guarded runs",
        ),
        (
            "ringfence-out-of-service",
            "every node that is not FENCED has a taint",
        ),
        (
            "ringfence-node-volumes",
            "no node that is not FENCED uses a volume",
        ),
        (
            "ringfence-volume-attachments",
            "no volume is attached to a node that is not FENCED",
        ),
        ("ringfence-confirmations", "there is no NodeFence"),
    ] {
        found.good(&format!("east: the gate {gate} was not tried, since {why}"));
    }
    assert!(!server.was_asked("DELETE") && !server.was_asked("PATCH"));
    // Where no objects are served, Ringfence may not change a NodeFence.
    assert!(
        server
            .examined()
            .await
            .0
            .iter()
            .all(|one| !format!("{one:?}").contains("no NodeFence"))
    );
}

#[tokio::test]
async fn a_gate_that_cannot_be_tried_for_want_of_a_right_hides_nothing_else() {
    let server = plant().await;
    server.answers().hidden = vec!["/api/v1/pods"];
    let found = examined(&server).await;
    let (told, remedy) = found.warning("");
    assert!(
        told.starts_with("east: the gate ringfence-pods could not be tried: "),
        "{told}"
    );
    assert!(
        told.ends_with("cannot read /api/v1/pods") && remedy.contains("right"),
        "{told}"
    );
    found.good("the gate ringfence-out-of-service has refused");
    server.answers().hidden = vec![GATE_OBJECT];
    let found = examined(&server).await;
    assert_eq!(
        found.warnings("could not be tried: ").len(),
        TRIED.len(),
        "{found:?}"
    );
    found.good("the gate ringfence-pods is installed and unchanged");
}

#[tokio::test]
async fn the_gate_of_words_is_not_tried_where_node_fences_are_not_defined() {
    let server = ApiServer::start(30).await;
    server.answers().install(&shipped_policies());
    server.answers().hidden = vec!["/apis/ringfence.io/v1alpha1/nodefences"];
    let found = examined(&server).await;
    found.warning("ringfence-confirmations could not be tried");
    found.failure("NodeFence objects are not defined");
}

/// Its gates are open: a refusal would be wrong, and a forced deletion is not even tried.
#[tokio::test]
async fn nothing_is_tried_on_a_node_that_is_fenced() {
    for entry in ["n1", "n1_only"] {
        let server = plant().await;
        mark(&server, json!({ entry: "5" }));
        let found = examined(&server).await;
        assert_eq!(found.warnings("").len(), 0, "{found:?}");
        found.good("ringfence-pods was not tried");
        assert!(!server.was_asked("DELETE"));
    }
}

#[tokio::test]
async fn only_a_guarded_pod_that_runs_is_tried() {
    let label = json!({ "ringfence.io/guarded": "true" });
    let ephemeral = json!([{ "name": "scratch", "ephemeral": { "volumeClaimTemplate": { "spec": {} } } }]);
    for (pod, is_tried) in [
        (member(), true),
        (plain(), false),
        (with(plain(), "/metadata/labels", label), true),
        (with(plain(), "/spec/volumes", ephemeral), true),
        (with(member(), "/status/phase", json!("Succeeded")), false),
        (with(member(), "/status/phase", json!("Pending")), false),
    ] {
        let server = plant().await;
        put(&server, pod.clone());
        let found = examined(&server).await;
        let told = if is_tried {
            "ringfence-pods has refused"
        } else {
            "ringfence-pods was not tried"
        };
        found.good(told);
    }
    let bare = with(node("True"), "/status/volumesInUse", json!([]));
    let server = plant().await;
    put(
        &server,
        with(
            bare,
            "/spec/taints",
            json!([{ "key": "a", "effect": "NoSchedule" }]),
        ),
    );
    let found = examined(&server).await;
    found.good("ringfence-out-of-service was not tried");
    found.good("ringfence-node-volumes was not tried");
    assert!(!format!("{found:?}").contains(VOLUME));
}

fn refusal(webhook: &str, code: u16, told: &str) -> Option<(&'static str, u16, &'static str, String)> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": code,
        "message": told.replace("WEBHOOK", webhook),
    });
    Some(("DELETE", code, "application/json", status.to_string()))
}

#[tokio::test]
async fn webhooks_are_tried_and_one_that_cannot_be_asked_is_told() {
    let server = with_webhooks(29, &valid_authority()).await;
    fill(&server);
    put(
        &server,
        with(
            member(),
            "/metadata/labels",
            json!({ "ringfence.io/guarded": "true" }),
        ),
    );
    server.answers().asks_policies = false;
    let attachments = "volumeattachments.ringfence.io";
    let found = examined(&server).await;
    for webhook in ["pods.ringfence.io", attachments] {
        let (told, remedy) = found.warning(&format!("the webhook {webhook} has let through"));
        assert!(told.ends_with("its node is not FENCED"), "{told}");
        assert!(remedy.contains("ValidatingAdmissionWebhook"), "{remedy}");
    }
    let (told, remedy) = found.warning("the webhook confirmations.ringfence.io has let through");
    assert!(told.contains("can confirm under every name"), "{told}");
    assert!(remedy.contains("ValidatingAdmissionWebhook"), "{remedy}");

    server.answers().instead = refusal(
        attachments,
        403,
        "admission webhook \"WEBHOOK\" denied the request: held",
    );
    examined(&server).await.good(&format!(
        "the webhook {attachments} has refused the deletion of attachment csi-1"
    ));

    for told in [
        "Internal error occurred: failed calling webhook \"WEBHOOK\": Post \"https://hook.example:8791\": x509: certificate signed by \
         unknown authority",
        "Internal error occurred: failed to call webhook \"WEBHOOK\": Post \"https://hook.example:8791\": connection refused",
    ] {
        server.answers().instead = refusal(attachments, 500, told);
        let found = examined(&server).await;
        let (seen, remedy) = found.warning(&format!("the webhook {attachments} was not reached"));
        assert!(seen.contains("hook.example"), "{seen}");
        assert!(
            remedy.contains("scheduler hook") && remedy.contains("--ca-file"),
            "{remedy}"
        );
    }
}
