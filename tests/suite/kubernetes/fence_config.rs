//! A Ringfence that is configured by nothing but objects of the cluster.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ringfence_lab::{Aws, IpmiBmc, KubeApi, serve_instance_metadata};
use ringfence_tests::{Client, Ground};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::leaders::{Replica, until_seen};
use super::plant::{Cluster, NAMESPACE, Plant, define_objects};

const PATIENCE: Duration = Duration::from_secs(90);
const AGENT: &str = include_str!("../../../workers/tests/suite/peers/fence_aws.py");
const KEYS: &str = "operator = [\"lab\"]";

fn path(kind: &str) -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/{kind}")
}

fn apply(api: &KubeApi, name: &str, data: &Value) {
    let object = json!({ "metadata": { "name": name }, "data": data });
    let maps = path("configmaps");
    block_in_place(|| match api.get(&format!("{maps}/{name}")) {
        Ok(_) => {
            // What is left out goes.
            let known = api.get(&format!("{maps}/{name}")).unwrap();
            let mut change = data.clone();
            for key in known["data"]
                .as_object()
                .into_iter()
                .flatten()
                .map(|(key, _)| key)
            {
                if change[key].is_null() {
                    change[key] = Value::Null;
                }
            }
            api.patch(&format!("{maps}/{name}"), &json!({ "data": change }))
                .unwrap();
        }
        Err(_) => drop(api.post(&maps, &object).unwrap()),
    });
}

fn delete(api: &KubeApi, name: &str) {
    block_in_place(|| {
        api.delete(&format!("{}/{name}", path("configmaps")), &json!({}))
            .unwrap()
    });
}

fn secret(api: &KubeApi, name: &str, data: &[(&str, &str)]) {
    let data = data
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(BASE64.encode(value))));
    let object = json!({ "metadata": { "name": name }, "data": data.collect::<serde_json::Map<_, _>>() });
    block_in_place(|| api.post(&path("secrets"), &object).unwrap());
}

/// The steps and the method of one node, whose BMC is at this port.
fn node_config(port: u16, more: &str) -> Value {
    json!({
        "config.properties": "isolation=mark-unschedulable\npower_management=bmc\nrecovery=mark-unschedulable\nkdump=node\n",
        "fence-method-bmc": format!("template=fence-method-template-ipmi\nport={port}\naction=off\n{more}"),
    })
}

/// What all BMCs have in common, and the Secret with their password.
fn common(api: &KubeApi) {
    secret(api, "bmc", &[("password", IpmiBmc::PASSWORD)]);
    let template = format!(
        "driver=ipmi\naddress=127.0.0.1\nusername={}\ncipher=3\npassword=secret:bmc/password\n",
        IpmiBmc::USER
    );
    apply(
        api,
        "fence-method-template-ipmi",
        &json!({ "template.properties": template }),
    );
}

/// The address by which other nodes reach a node.
fn address(api: &KubeApi, node: &str) -> Value {
    let node = block_in_place(|| api.get(&format!("/api/v1/nodes/{node}")).unwrap());
    let mut addresses = node["status"]["addresses"].as_array().unwrap().iter();
    let own = addresses.find(|one| one["type"] == "InternalIP").unwrap();
    own["address"].clone()
}

fn start() -> Cluster {
    block_in_place(|| {
        let cluster = Cluster::start();
        define_objects(cluster.api());
        cluster
    })
}

async fn until_fenced(client: &Client, node: &str) -> Value {
    client
        .until_within(&format!("/hosts/{node}"), PATIENCE, |host| {
            host["fencing_state"] == "FENCED"
        })
        .await
}

/// Waits for an Event on an object of the configuration.
fn until_told(api: &KubeApi, name: &str, reason: &str, words: &str) -> Value {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events");
    let is_it = |event: &Value| {
        event["regarding"]["name"] == name
            && event["reason"] == reason
            && event["note"].as_str().is_some_and(|note| note.contains(words))
    };
    let list = block_in_place(|| {
        let is_there = |list: &Value| list["items"].as_array().is_some_and(|all| all.iter().any(is_it));
        api.until(&format!("{reason} of {name}: {words}"), &path, PATIENCE, is_there)
            .unwrap_or_else(|error| panic!("{error}; {:#}", api.get(&path).unwrap()))
    });
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|event| is_it(event))
        .unwrap()
        .clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_and_the_next_one_fence_by_configmaps_and_a_secret_alone() {
    let cluster = start();
    let api = cluster.api();
    common(api);
    for node in &cluster.nodes {
        let name = format!("fence-config-node-{}", node.name());
        apply(api, &name, &node_config(node.bmc().unwrap().port(), ""));
    }
    let policy = "fencing:\n  automatic: true\n  after_s: 1\n";
    apply(api, "fence-segment-default", &json!({ "policy.yaml": policy }));
    let mut first = Replica::start_with("first", &cluster.plane, KEYS, "");
    let client = first.client().await;
    let mut second = Replica::start_with("second", &cluster.plane, KEYS, "");
    second.service.until_says(&["waiting for the lead"]).await;
    for node in &cluster.nodes {
        until_seen(&client, node.name(), "UP").await;
        let plan = format!("/plans/configmap_lab_fence-config-node-{}", node.name());
        client.until_within(&plan, PATIENCE, |_| true).await;
        let path = format!("/hosts/{}", node.name());
        let own = address(api, node.name());
        let is_own = |host: &Value| host["parameters"]["kdump"]["addresses"] == own;
        client.until_within(&path, PATIENCE, is_own).await;
    }

    block_in_place(|| cluster.nodes[0].kill());
    let host = until_fenced(&client, cluster.nodes[0].name()).await;
    assert_eq!(host["proofs"][0]["kind"], "power.off", "{host}");
    let audit = client.get("/audit?limit=500").await.ok(200).to_string();
    assert!(
        audit.contains("configmap ringfence/fence-config-node-n1"),
        "{audit}"
    );
    assert!(
        audit.contains("configmap ringfence/fence-segment-default"),
        "{audit}"
    );
    let methods = client.get("/methods").await.ok(200).to_string();
    assert!(methods.contains("secret:lab/bmc/password"), "{methods}");
    // The user is called so as well.
    let value = format!("\"{}\"", IpmiBmc::PASSWORD);
    for text in [audit, methods] {
        let without_user = text.replace(&format!("\"username\":\"{}\"", IpmiBmc::USER), "");
        assert!(!without_user.contains(&value), "{without_user}");
    }

    first.service.kill();
    let client = second.client().await;
    // All of it is there before anything is fenced.
    let plans = client.get("/plans").await.ok(200);
    assert_eq!(plans["plans"].as_array().unwrap().len(), 1, "{plans}");
    let segment = client.get("/segments/default").await.ok(200);
    assert_eq!(segment["policy"]["fencing"]["automatic"], true, "{segment}");
    until_seen(&client, cluster.nodes[1].name(), "UP").await;
    block_in_place(|| cluster.nodes[1].kill());
    let host = until_fenced(&client, cluster.nodes[1].name()).await;
    assert_eq!(host["proofs"][0]["kind"], "power.off", "{host}");

    let doctor = || async {
        let asked = second
            .machine
            .run(&["doctor", "--config", "ringfence.toml", "-o", "json"])
            .await;
        let report = asked.json();
        let findings = report["findings"].as_array().unwrap().clone();
        let own = findings
            .into_iter()
            .filter(|finding| finding["part"] == "fence configuration");
        own.collect::<Vec<Value>>()
    };
    let well = doctor().await;
    assert_eq!(well.len(), 1, "{well:?}");
    assert_eq!(
        well[0]["found"], "lab: its objects declare plans (3) and policies of segments (1)",
        "{well:?}"
    );
    apply(
        api,
        "fence-config-node-n3",
        &json!({ "config.properties": "power_managment=bmc" }),
    );
    let ill = doctor().await;
    let told = ill.iter().find(|finding| finding["state"] == "failed").unwrap();
    assert_eq!(
        told["found"],
        "lab: ConfigMap fence-config-node-n3: config.properties: power_managment: is unknown; node_name, isolation, power_management, \
         power_management_delay_s, recovery, kdump and kdump_suffices are allowed"
    );
    second.service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cloud_of_a_nodes_provider_id_fences_it_where_nothing_but_a_secret_is_declared() {
    let cluster = start();
    let api = cluster.api();
    let server = Aws::server_from_environment()
        .expect("RINGFENCE_TEST_MOTO is not set; run this through `cargo xtask test`");
    let aws = block_in_place(|| Aws::start(&server).unwrap());
    let [instance, of_worker] = aws.instances();
    let (access_key, secret_key) = aws.key();
    secret(
        api,
        "fence-cloud-aws",
        &[("access_key", access_key), ("secret_key", secret_key)],
    );
    block_in_place(|| give_provider_id(api, "n1", &format!("aws:///{}a/{instance}", Aws::REGION)));
    let agents = tempfile::tempdir().unwrap();
    let agent = AGENT
        .replace("@METADATA@", &serve_instance_metadata(of_worker).unwrap())
        .replace("@AWS@", &aws.url());
    let program = agents.path().join("fence_aws");
    std::fs::write(&program, agent).unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let worker = format!("[worker]\nagents_dir = {:?}\n", agents.path());
    let mut replica = Replica::start_with("only", &cluster.plane, KEYS, &worker);
    let client = replica.client().await;
    let dead = &cluster.nodes[0];
    until_seen(&client, "n1", "UP").await;
    client
        .until_within("/plans/configmap_lab_fence-config-default", PATIENCE, |_| true)
        .await;
    client
        .until_within("/hosts/n1", PATIENCE, |host| {
            host["parameters"]["configmap_lab_fence-cloud-aws_restart-instance"]["plug"] == instance
        })
        .await;
    let told = until_told_of_node(api, "n2", "provider id \"kubemark://n2\" is of an unknown cloud");
    assert_eq!(told["type"], "Warning", "{told}");

    block_in_place(|| dead.kill());
    until_seen(&client, "n1", "UNREACHABLE").await;
    client.fence("n1").await;
    let host = until_fenced(&client, "n1").await;
    assert_eq!(host["proofs"][0]["kind"], "power.off", "{host}");
    let source = host["proofs"][0].to_string();
    assert!(
        source.contains("configmap_lab_fence-cloud-aws_restart-instance"),
        "{source}"
    );
    let known = client.get("/hosts/n1").await.ok(200).to_string();
    assert!(!known.contains(secret_key), "{known}");
    replica.service.stop().await;
}

/// A node's provider id is never changed: the node is made anew with another one.
fn give_provider_id(api: &KubeApi, node: &str, provider_id: &str) {
    let path = format!("/api/v1/nodes/{node}");
    let labels = api.get(&path).unwrap()["metadata"]["labels"].clone();
    api.delete(&path, &json!({})).unwrap();
    let object =
        json!({ "metadata": { "name": node, "labels": labels }, "spec": { "providerID": provider_id } });
    api.post("/api/v1/nodes", &object).unwrap();
}

fn until_told_of_node(api: &KubeApi, node: &str, words: &str) -> Value {
    let path = "/apis/events.k8s.io/v1/namespaces/kube-system/events";
    let is_it = |event: &Value| {
        event["regarding"]["name"] == node && event["note"].as_str().is_some_and(|note| note.contains(words))
    };
    let list = block_in_place(|| {
        let is_there = |list: &Value| list["items"].as_array().is_some_and(|all| all.iter().any(is_it));
        api.until(&format!("an Event of node {node}"), path, PATIENCE, is_there)
            .unwrap()
    });
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|event| is_it(event))
        .unwrap()
        .clone()
}

/// What is configured of n1.
async fn method_of_n1(client: &Client) -> Value {
    client
        .get("/methods/configmap_lab_fence-config-node-n1_bmc")
        .await
        .ok(200)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edit_in_the_middle_of_a_fence_changes_the_next_fence_alone() {
    let plant = Plant::start_with_operator(Ground::Standalone, json!({})).await;
    let (api, client) = (plant.api(), &plant.stack.client);
    common(api);
    let dead = &plant.nodes[0];
    let port = dead.bmc().unwrap().port();
    apply(
        api,
        "fence-config-node-n1",
        &node_config(port, "retries=10\nattempt_timeout_s=5\ntimeout_s=300\n"),
    );
    until_told(
        api,
        "fence-config-node-n1",
        "FenceConfigurationApplied",
        "is in force",
    );
    let before = method_of_n1(client).await;
    block_in_place(|| dead.bmc().unwrap().silence().unwrap());
    block_in_place(|| dead.kill());
    plant.until_seen("n1", "UNREACHABLE").await;
    let fence = client.fence("n1").await;
    // At this port no BMC answers: a fence that followed the edit would never be proven.
    apply(api, "fence-config-node-n1", &node_config(1, ""));
    client
        .until_within(
            "/methods/configmap_lab_fence-config-node-n1_bmc",
            PATIENCE,
            |method| method["parameters"]["port"] == "1",
        )
        .await;
    assert_ne!(method_of_n1(client).await["updated_at"], before["updated_at"]);
    block_in_place(|| dead.bmc().unwrap().wake().unwrap());
    let ended = plant.until_ended("n1", "fence").await;
    assert_eq!(
        (&ended["id"], &ended["status"]),
        (&fence["id"], &json!("succeeded")),
        "{ended}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_told_on_its_configmap_and_changes_nothing() {
    let plant = Plant::start_with_operator(Ground::Standalone, json!({})).await;
    let (api, client) = (plant.api(), &plant.stack.client);
    common(api);
    let port = plant.nodes[0].bmc().unwrap().port();
    let name = "fence-config-node-n1";
    apply(api, name, &node_config(port, ""));
    until_told(
        api,
        name,
        "FenceConfigurationApplied",
        "plan configmap_lab_fence-config-node-n1 is in force",
    );
    let known = (method_of_n1(client).await, client.get("/plans").await.ok(200));
    let invalid = "FenceConfigurationInvalid";
    for (more, words) in [
        ("colour=red\n", "colour: is unknown to driver ipmi"),
        ("action=cut\n", "gives action again"),
        ("kg=hunter2\n", "kg: is unknown to driver ipmi"),
        ("timeout_s=soon\n", "is \"soon\"; a whole number is allowed"),
    ] {
        apply(api, name, &node_config(port, more));
        let told = until_told(api, name, invalid, words);
        assert_eq!(told["type"], "Warning", "{told}");
    }
    let with = |steps: &str, method: &str| json!({ "config.properties": steps, "fence-method-bmc": method });
    let agent = "agent_name=fence_ipmilan\nip=127.0.0.1\n";
    for (steps, method, words) in [
        (
            "power_managment=bmc",
            "driver=ipmi",
            "power_managment: is unknown",
        ),
        (
            "node_name=n2\npower_management=bmc",
            "driver=ipmi",
            "but fence-config-node-n1 is for node n1",
        ),
        (
            "power_management=bmc\nrecovery=bmc",
            "template=fence-method-template-ipmi",
            "undoes no method of isolation",
        ),
        (
            "power_management=bmc",
            "template=fence-method-template-none",
            "there is no such ConfigMap in namespace ringfence",
        ),
        (
            "power_management=bmc",
            "driver=ipmi\naddress=a\nusername=b\npassword=secret:none/password",
            "Secret none in namespace ringfence, which is not there",
        ),
        (
            "power_management=bmc",
            "driver=ipmi\naddress=a\nusername=b\npassword=secret:bmc/pasword",
            "its keys are password",
        ),
        (
            "power_management=bmc",
            "driver=ipmi\naddress=a\nusername=b\npassword=hunter2",
            "must not stand in a ConfigMap",
        ),
        (
            "power_management=bmc",
            &format!("{agent}usrname=a"),
            "did you mean username?",
        ),
        (
            "power_management=bmc",
            "agent_name=fence_ipmilam\nip=a",
            "fence_ipmilam is not installed on the worker",
        ),
    ] {
        apply(api, name, &with(steps, method));
        until_told(api, name, invalid, words);
    }
    let large = "#".repeat(70_000);
    apply(api, name, &with(&large, "driver=ipmi"));
    until_told(api, name, invalid, "at most 65536 are allowed");
    let circle =
        |next: &str| json!({ "template.properties": format!("template=fence-method-template-{next}") });
    apply(api, "fence-method-template-a", &circle("b"));
    apply(api, "fence-method-template-b", &circle("a"));
    until_told(api, "fence-method-template-b", invalid, "leads in a circle");
    // The plan of the API is for all nodes already.
    apply(api, "fence-config-default", &node_config(port, ""));
    until_told(
        api,
        "fence-config-default",
        invalid,
        "plan \"default\" is for these hosts already, and was not declared here",
    );
    apply(
        api,
        "fence-segment-rack",
        &json!({ "policy.yaml": "settle_s: 5" }),
    );
    until_told(
        api,
        "fence-segment-rack",
        invalid,
        "segment \"rack\" was configured through the API",
    );
    apply(
        api,
        "fence-segment-default",
        &json!({ "policy.yaml": "setle_s: 5" }),
    );
    until_told(api, "fence-segment-default", invalid, "unknown field `setle_s`");
    apply(
        api,
        "fence-config-type-gpu",
        &json!({ "config.properties": "power_management=bmc", "fence-method-bmc": "template=fence-method-template-ipmi\naddress=${host.name}.bmc" }),
    );
    until_told(
        api,
        "fence-config-type-gpu",
        "FenceConfigurationUnused",
        "no node has the label type=gpu",
    );

    let own_of = |plans: &Value| {
        plans["plans"]
            .as_array()
            .unwrap()
            .iter()
            .find(|plan| plan["name"] == "configmap_lab_fence-config-node-n1")
            .unwrap()
            .clone()
    };
    assert_eq!(method_of_n1(client).await, known.0);
    assert_eq!(own_of(&client.get("/plans").await.ok(200)), own_of(&known.1));
    let log = client.get("/audit?limit=500").await.ok(200).to_string();
    assert!(!log.contains("hunter2"), "{log}");

    // Right again, then another value, then nothing: the node is fenced by the plan of the API again.
    apply(api, name, &node_config(port, "retries=3\n"));
    client
        .until_within(
            "/methods/configmap_lab_fence-config-node-n1_bmc",
            PATIENCE,
            |method| method["times"]["retries"] == 3,
        )
        .await;
    delete(api, name);
    client
        .until_within("/plans", PATIENCE, |plans| {
            !plans.to_string().contains("configmap_lab_fence-config-node-n1")
        })
        .await;
    let left = client.get("/methods").await.ok(200);
    assert!(
        !left.to_string().contains("configmap_lab_fence-config-node-n1"),
        "{left}"
    );
    assert!(
        left.to_string().contains("\"bmc\""),
        "the method of the API is gone: {left}"
    );
}
