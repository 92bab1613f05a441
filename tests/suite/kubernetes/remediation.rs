//! `RingfenceRemediation` objects, made as the Node Health Check operator and Cluster API make them.

use std::time::Duration;

use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::node_fence::{FENCES, condition};
use super::plant::{Plant, cells, kubectl};

const REMEDIATIONS: &str = "/apis/ringfence.io/v1alpha1/namespaces/default/ringfenceremediations";
const MACHINES: &str = "/apis/cluster.x-k8s.io/v1beta1/namespaces/default/machines";
const PATIENCE: Duration = Duration::from_secs(120);
/// An object of another program that does not exist here: its uid is all that the API server looks at.
const UID: &str = "5b0ad1f2-6a0e-4f0c-9e57-1d2a3b4c5d6e";

/// As the Node Health Check operator makes one from a template whose `spec.template.spec` is this.
fn of_node_health_check(node: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "ringfence.io/v1alpha1", "kind": "RingfenceRemediation",
        "metadata": {
            "name": node,
            "namespace": "default",
            "annotations": { "remediation.medik8s.io/template-name": "ringfence" },
            "labels": { "remediation.medik8s.io/isControlPlaneNode": "false" },
            "ownerReferences": [{
                "apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck", "name": "workers", "uid": UID,
                "controller": false,
            }],
        },
        "spec": spec,
    })
}

/// As Cluster API's MachineHealthCheck makes one.
fn of_machine_health_check(machine: &str) -> Value {
    json!({
        "apiVersion": "ringfence.io/v1alpha1", "kind": "RingfenceRemediation",
        "metadata": {
            "name": machine,
            "namespace": "default",
            "labels": { "cluster.x-k8s.io/cluster-name": "prod" },
            "annotations": {
                "cluster.x-k8s.io/cloned-from-name": "ringfence",
                "cluster.x-k8s.io/cloned-from-groupkind": "RingfenceRemediationTemplate.ringfence.io",
            },
            "ownerReferences": [{
                "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "name": machine, "uid": UID,
            }],
        },
        "spec": {},
    })
}

/// The objects of Cluster API that a remediation is about, without its controllers.
fn define_machines(plant: &Plant) {
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let definition = json!({
        "metadata": { "name": "machines.cluster.x-k8s.io" },
        "spec": {
            "group": "cluster.x-k8s.io", "scope": "Namespaced",
            "names": { "kind": "Machine", "listKind": "MachineList", "plural": "machines", "singular": "machine" },
            "versions": [{ "name": "v1beta1", "served": true, "storage": true, "subresources": { "status": {} }, "schema": schema }],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    block_in_place(|| {
        plant.api().post(definitions, &definition).unwrap();
        plant
            .api()
            .until("machines served", MACHINES, PATIENCE, |list| {
                list["items"].is_array()
            })
            .unwrap();
        let machine = json!({
            "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", "metadata": { "name": "machine-7" },
        });
        plant.api().post(MACHINES, &machine).unwrap();
        let status = json!({ "status": {
            "nodeRef": { "apiVersion": "v1", "kind": "Node", "name": "n2" },
            "conditions": [{ "type": "ExternallyRemediated", "status": "False", "reason": "WaitingForRemediation" }],
        }});
        plant
            .api()
            .patch(&format!("{MACHINES}/machine-7/status"), &status)
            .unwrap();
    });
}

fn make(plant: &Plant, object: &Value) {
    block_in_place(|| plant.api().post(REMEDIATIONS, object).unwrap());
}

fn until(plant: &Plant, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let path = format!("{REMEDIATIONS}/{name}");
    block_in_place(|| plant.api().until(what, &path, PATIENCE, is_so).unwrap())
}

fn delete(plant: &Plant, name: &str) {
    block_in_place(|| {
        plant
            .api()
            .delete(&format!("{REMEDIATIONS}/{name}"), &json!({}))
            .unwrap()
    });
}

fn succeeded(object: &Value) -> (&Value, &Value) {
    let succeeded = condition(object, "Succeeded");
    (&succeeded["status"], &succeeded["reason"])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_health_check_has_a_node_fenced_its_pods_deleted_and_the_node_taken_back() {
    let plant = Plant::start_with_operator(Ground::Distributed, json!({})).await;
    let pod = plant.until_running("db-0", |_| true);
    let uid = pod["metadata"]["uid"].clone();
    let dead = plant.node(&pod["spec"]["nodeName"]);
    // The health check does not know that an operator works on the node's rack.
    let client = &plant.stack.client;
    let suspension = format!("/hosts/{}/suspension", dead.name());
    let work = json!({ "for_s": 600, "reason": "the switch of its rack is replaced" });
    client.put(&suspension, work).await.ok(200);
    block_in_place(|| dead.kill());
    // The health check may be faster than Ringfence, to which the node is still UP.
    make(&plant, &of_node_health_check(dead.name(), &json!({})));
    // It begins as held, without a reason, until its safeguards were looked at.
    until(
        &plant,
        dead.name(),
        "a remediation that the suspension holds",
        |object| {
            let processing = condition(object, "Processing");
            let why = processing["message"].as_str().unwrap_or_default();
            processing["reason"] == "FenceHeld" && why.contains("the switch of its rack is replaced")
        },
    );
    let operations = client
        .get(&format!("/operations?host={}", dead.name()))
        .await
        .ok(200);
    assert_eq!(operations["operations"][0]["status"], "held", "{operations}");
    // The operator has it fenced in spite of that, and asks for nothing else.
    let in_spite_of_that = json!({ "reason": "its BMC is not at that switch" });
    client
        .post(&format!("/hosts/{}/fence", dead.name()), in_spite_of_that)
        .await
        .ok(202);
    until(
        &plant,
        dead.name(),
        "a remediation that evacuates no suspended host",
        |object| {
            let processing = condition(object, "Processing");
            let why = processing["message"].as_str().unwrap_or_default();
            processing["reason"] == "HostSuspended" && why.contains("the switch of its rack is replaced")
        },
    );
    let host = client.host(dead.name()).await;
    assert_eq!(host["fencing_state"], "FENCED", "{host}");
    client
        .delete_because(&suspension, "the switch is there")
        .await
        .ok(200);
    let next = plant.until_running("db-0", |pod| pod["metadata"]["uid"] != uid);
    assert_ne!(next["spec"]["nodeName"], dead.name());
    let done = until(
        &plant,
        dead.name(),
        "a remediation that has succeeded",
        |object| succeeded(object).0 == "True",
    );
    assert_eq!(condition(&done, "Processing")["status"], "False", "{done}");
    assert_eq!(done["status"]["node"], dead.name());
    let seen = cells(&kubectl(
        &plant.plane.kubeconfig(),
        &["get", "ringfenceremediations"],
    ));
    assert_eq!(seen[0].join(" "), "NAME NODE PROCESSING SUCCEEDED AGE");
    assert_eq!(
        seen[1][..4],
        [
            dead.name(),
            dead.name(),
            condition(&done, "Processing")["reason"].as_str().unwrap(),
            "True"
        ]
    );
    let rejoin = plant.until_ended(dead.name(), "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    for kind in ["fence", "evacuation", "rejoin"] {
        let operation = plant.until_ended(dead.name(), kind).await;
        assert_eq!(
            operation["requested_by"], "kubernetes:lab RingfenceRemediation",
            "{operation}"
        );
    }
    dead.until_ready().unwrap();
    delete(&plant, dead.name());
    until(&plant, dead.name(), "the remediation gone", Value::is_null);
    let fence = block_in_place(|| {
        let path = format!("{FENCES}/{}", dead.name());
        plant
            .api()
            .until("the NodeFence gone", &path, PATIENCE, Value::is_null)
    });
    fence.unwrap();
    plant.stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_remediation_stops_when_it_is_told_so_and_leaves_the_fences_of_others_alone() {
    // Two of three nodes are lost on purpose.
    let policy = json!({ "fencing": { "at_most_percent": 100 } });
    let plant = Plant::start_with_operator(Ground::Standalone, policy).await;
    define_machines(&plant);
    let unknown = of_node_health_check("n9", &json!({}));
    make(&plant, &unknown);
    until(&plant, "n9", "a node that does not exist", |object| {
        let (status, reason) = succeeded(object);
        status == "False" && reason == "HostUnknown"
    });

    block_in_place(|| plant.nodes[1].kill());
    plant.until_seen("n2", "UNREACHABLE").await;
    // The node has two objects: its NodeFence, and a remediation of its machine, which is to be replaced.
    let by_hand = json!({ "metadata": { "name": "n2" }, "apiVersion": "ringfence.io/v1alpha1", "kind": "NodeFence", "spec": {} });
    block_in_place(|| plant.api().post(FENCES, &by_hand).unwrap());
    let fence = plant.until_ended("n2", "fence").await;
    assert_eq!(fence["requested_by"], "kubernetes:lab NodeFence", "{fence}");
    let mut of_machine = of_machine_health_check("machine-7");
    of_machine["spec"] = json!({ "strategy": "Replace", "reason": "the machine is unwell" });
    make(&plant, &of_machine);
    let joined = until(&plant, "machine-7", "the machine's node", |object| {
        succeeded(object).0 == "True"
    });
    assert_eq!(joined["status"]["node"], "n2", "{joined}");
    let machine = block_in_place(|| plant.api().get(&format!("{MACHINES}/machine-7")).unwrap());
    assert_eq!(
        condition(&machine, "OwnerRemediated")["status"],
        "False",
        "{machine}"
    );
    assert_eq!(
        condition(&machine, "ExternallyRemediated")["status"],
        "False",
        "{machine}"
    );
    delete(&plant, "machine-7");
    until(&plant, "machine-7", "the remediation gone", Value::is_null);
    let host = plant.stack.client.host("n2").await;
    assert_eq!(
        host["fencing_state"], "FENCED",
        "taken back although its NodeFence stands: {host}"
    );

    // The NodeFence goes while a remediation wants the node fenced: Ringfence shows the fence by one of its own.
    make(
        &plant,
        &of_node_health_check("n2", &json!({ "strategy": "PowerOff" })),
    );
    until(&plant, "n2", "a remediation of a node that is FENCED", |object| {
        succeeded(object).0 == "True"
    });
    let of_n2 = format!("{FENCES}/n2");
    block_in_place(|| plant.api().delete(&of_n2, &json!({})).unwrap());
    let is_own = |object: &Value| object["metadata"]["labels"]["ringfence.io/made-by"] == "ringfence";
    block_in_place(|| {
        plant
            .api()
            .until("a NodeFence of Ringfence's own", &of_n2, PATIENCE, is_own)
            .unwrap()
    });
    delete(&plant, "n2");
    until(&plant, "n2", "the remediation gone", Value::is_null);
    let host = plant.stack.client.host("n2").await;
    assert_eq!(
        host["fencing_state"], "FENCED",
        "taken back by a remediation that had not fenced it: {host}"
    );

    // A BMC that never answers: the fence goes on until it is told to stop.
    plant.nodes[2].bmc().unwrap().silence().unwrap();
    block_in_place(|| plant.nodes[2].kill());
    plant.until_seen("n3", "UNREACHABLE").await;
    make(
        &plant,
        &of_node_health_check("n3", &json!({ "strategy": "Reboot" })),
    );
    until(&plant, "n3", "a fence under way", |object| {
        condition(object, "Processing")["reason"] == "Fencing"
    });
    let timed_out = json!({ "metadata": { "annotations": { "remediation.medik8s.io/nhc-timed-out": "2026-11-25T12:00:00Z" } } });
    block_in_place(|| {
        plant
            .api()
            .patch(&format!("{REMEDIATIONS}/n3"), &timed_out)
            .unwrap()
    });
    until(&plant, "n3", "a remediation that has stopped", |object| {
        let (status, reason) = succeeded(object);
        status == "False" && reason == "TimedOut"
    });
    let fence = plant.until_ended("n3", "fence").await;
    assert_eq!(fence["status"], "cancelled", "{fence}");
    let host = plant.stack.client.host("n3").await;
    assert_eq!(host["fencing_state"], "UNFENCED", "{host}");
    plant.stack.stop().await;
}
