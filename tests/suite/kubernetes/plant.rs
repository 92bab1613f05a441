//! A cluster with nodes and a set with volumes, and a Ringfence that watches it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ringfence_backends::kubernetes::ClusterSettings;
use ringfence_engine::ObserverConfig;
use ringfence_lab::{
    Attacher, ControlPlane, ControlPlaneOptions, IpmiBmc, KubeApi, Kubelet, KubeletOptions,
    KubernetesPrograms, make_volumes, stateful_set,
};
use ringfence_tests::{Ground, Site, Stack, StackOptions};
use serde_json::{Value, json};
use tokio::task::block_in_place;

/// The cluster's name in every configuration of these tests.
pub const CLUSTER: &str = "lab";
/// Time after which a silent node is UNREACHABLE; kubelets renew their leases every two seconds.
const DOWN_AFTER_S: u64 = 6;
/// The namespace of Ringfence's own objects.
pub const NAMESPACE: &str = "ringfence";
/// The name of the gate object.
pub const GATE: &str = "ringfence-gate";
pub const PODS: &str = "/api/v1/namespaces/default/pods";
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster whose set `db` has two members with volumes, on two of three nodes with BMCs.
pub struct Cluster {
    pub nodes: Vec<Kubelet>,
    pub plane: ControlPlane,
    _attacher: Attacher,
}

/// Such a cluster, and a Ringfence that watches it.
pub struct Plant {
    pub stack: Stack,
    cluster: Cluster,
}

impl Deref for Plant {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

pub fn settings(kubeconfig: PathBuf) -> ClusterSettings {
    ClusterSettings {
        name: CLUSTER.to_owned(),
        kubeconfig: Some(kubeconfig),
        context: None,
        namespace: NAMESPACE.to_owned(),
        gate: GATE.to_owned(),
        timeout: Duration::from_secs(10),
        down_after: Duration::from_secs(DOWN_AFTER_S),
        ready_for: Duration::from_secs(2),
    }
}

pub fn control_plane() -> ControlPlane {
    let programs = KubernetesPrograms::from_environment();
    let Some(programs) = programs else {
        panic!("RINGFENCE_TEST_KUBERNETES is not set; run this through `cargo xtask test`, with Kubernetes");
    };
    let plane = ControlPlane::start(&programs, ControlPlaneOptions::default()).unwrap();
    let namespace = json!({ "metadata": { "name": NAMESPACE } });
    plane.api().post("/api/v1/namespaces", &namespace).unwrap();
    plane
}

impl Plant {
    pub async fn start(ground: Ground, policy: Value) -> Self {
        Self::start_with(ground, policy, false).await
    }

    /// A plant in whose cluster Ringfence's objects are defined and served.
    pub async fn start_with_operator(ground: Ground, policy: Value) -> Self {
        Self::start_with(ground, policy, true).await
    }

    async fn start_with(ground: Ground, policy: Value, has_operator: bool) -> Self {
        let cluster = block_in_place(Cluster::start);
        if has_operator {
            block_in_place(|| define_objects(cluster.api()));
        }
        let site = Site::new(ground).await;
        let kubeconfig = match has_operator {
            true => block_in_place(|| limited(&cluster.plane, site.dir.path())),
            false => cluster.plane.kubeconfig(),
        };
        let options = StackOptions {
            hosts: 1,
            clusters: vec![settings(kubeconfig)],
            has_operator,
            observer: ObserverConfig {
                every: Duration::from_secs(5),
                down_after: chrono::TimeDelta::seconds(DOWN_AFTER_S.try_into().unwrap()),
                adopt: None,
            },
            ..StackOptions::default()
        };
        let stack = Stack::start_with(site, options).await;
        let plant = Self { stack, cluster };
        plant.configure(policy).await;
        plant
    }

    async fn configure(&self, policy: Value) {
        let client = &self.stack.client;
        let secret = self.stack.site.dir.path().join("bmc-password");
        std::fs::write(&secret, IpmiBmc::PASSWORD).unwrap();
        let segment = json!({ "name": "rack", "policy": ringfence_tests::policy(policy) });
        client.post("/segments", segment).await.ok(201);
        let method = json!({
            "name": "bmc", "resource": "power", "driver": "ipmi",
            "parameters": { "address": "127.0.0.1", "username": IpmiBmc::USER, "cipher": "3" },
            "secrets": { "password": format!("file:{}", secret.display()) },
        });
        client.post("/methods", method).await.ok(201);
        let stages =
            json!([{ "tasks": [{ "kind": "power.off", "levels": [{ "level": 1, "methods": ["bmc"] }] }] }]);
        let plan = json!({ "name": "default", "stages": stages });
        client.post("/plans", plan).await.ok(201);
        for node in &self.nodes {
            let host = json!({
                "name": node.name(), "segment": "rack", "backend": "kubernetes", "cloud": CLUSTER,
                "parameters": { "bmc": { "port": node.bmc().unwrap().port().to_string() } },
            });
            client.post("/hosts", host).await.ok(201);
        }
        for node in &self.nodes {
            self.until_seen(node.name(), "UP").await;
        }
    }

    pub async fn until_seen(&self, host: &str, state: &str) -> Value {
        let path = format!("/hosts/{host}");
        let client = &self.stack.client;
        client
            .until_within(&path, PATIENCE, |host| host["failure_state"] == state)
            .await
    }

    /// Waits for an operation of a host to end, and returns it.
    pub async fn until_ended(&self, host: &str, kind: &str) -> Value {
        let path = format!("/operations?host={host}&kind={kind}&sort=created_at:desc&limit=1");
        let is_over = |list: &Value| {
            let status = &list["operations"][0]["status"];
            status == "succeeded" || status == "needs_operator" || status == "cancelled"
        };
        let client = &self.stack.client;
        let list = client
            .until_within(&path, Duration::from_secs(120), is_over)
            .await;
        list["operations"][0].clone()
    }

    /// The moves of an operation.
    pub async fn moves(&self, operation: &Value) -> Vec<Value> {
        let id = operation["id"].as_str().unwrap();
        let answer = self.stack.client.get(&format!("/operations/{id}/moves")).await;
        answer.ok(200)["moves"].as_array().unwrap().clone()
    }
}

/// The kubeconfig of a user who has no more rights than the pages of the documentation name.
fn limited(plane: &ControlPlane, folder: &Path) -> PathBuf {
    let definitions = ringfence_operator::definitions();
    let mut objects = definitions
        .split("---\n")
        .map(|one| serde_saphyr::from_str::<Value>(one).unwrap());
    let role = objects
        .find(|object| object["metadata"]["name"] == "ringfence-operator")
        .unwrap();
    let mut rules = role["rules"].as_array().unwrap().clone();
    for (group, resources, verbs) in [
        ("", &["nodes"][..], &["get", "list", "watch", "patch"][..]),
        ("", &["nodes/status"], &["patch"]),
        ("", &["pods"], &["list", "get", "delete"]),
        ("", &["persistentvolumeclaims", "persistentvolumes"], &["get"]),
        ("", &["configmaps"], &["get", "list", "watch", "create", "patch"]),
        (
            "coordination.k8s.io",
            &["leases"],
            &["list", "watch", "create", "patch"],
        ),
        ("storage.k8s.io", &["volumeattachments"], &["list", "delete"]),
    ] {
        rules.push(json!({ "apiGroups": [group], "resources": resources, "verbs": verbs }));
    }
    let user = plane.user("ringfence", &Value::Array(rules)).unwrap();
    let file = folder.join("kubeconfig");
    std::fs::write(&file, user.kubeconfig).unwrap();
    file
}

/// As `ringfence kubernetes crds | kubectl apply -f -` does it.
pub fn define_objects(api: &KubeApi) {
    for document in ringfence_operator::definitions().split("---\n") {
        let object: Value = serde_saphyr::from_str(document).unwrap();
        let name = object["metadata"]["name"].as_str().unwrap();
        if object["kind"] == "ClusterRole" {
            api.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &object)
                .unwrap();
            continue;
        }
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        api.post(definitions, &object).unwrap();
        let is_served = |definition: &Value| {
            let conditions = definition["status"]["conditions"].as_array();
            let is_it = |one: &Value| one["type"] == "Established" && one["status"] == "True";
            conditions.is_some_and(|all| all.iter().any(is_it))
        };
        let path = format!("{definitions}/{name}");
        api.until(&format!("{name} established"), &path, PATIENCE, is_served)
            .unwrap();
    }
}

impl Cluster {
    pub fn start() -> Self {
        let plane = control_plane();
        let options = KubeletOptions {
            with_bmc: true,
            ..KubeletOptions::default()
        };
        let nodes = ["n1", "n2", "n3"].map(|name| Kubelet::start(&plane, name, &options).unwrap());
        make_volumes(plane.api(), 2).unwrap();
        let attacher = Attacher::start(plane.api());
        let sets = "/apis/apps/v1/namespaces/default/statefulsets";
        plane.api().post(sets, &stateful_set("db", 2)).unwrap();
        for member in ["db-0", "db-1"] {
            running(plane.api(), member, |_| true);
        }
        Self {
            nodes: nodes.into(),
            plane,
            _attacher: attacher,
        }
    }

    pub fn api(&self) -> &KubeApi {
        self.plane.api()
    }

    pub fn node(&self, name: &Value) -> &Kubelet {
        let mut nodes = self.nodes.iter();
        nodes.find(|node| name == node.name()).unwrap()
    }

    /// Waits until a member runs and is as wanted; returns its pod.
    pub fn until_running(&self, member: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        block_in_place(|| running(self.api(), member, is_so))
    }
}

fn running(api: &KubeApi, member: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let is_running = |pod: &Value| {
        let container = &pod["status"]["containerStatuses"][0];
        pod["status"]["phase"] == "Running" && container["ready"] == true && is_so(pod)
    };
    let path = format!("{PODS}/{member}");
    api.until(
        &format!("{member} running"),
        &path,
        Duration::from_secs(120),
        is_running,
    )
    .unwrap()
}
