//! A cluster with nodes and a set with volumes, and a Ringfence that watches it.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ringfence_backends::kubernetes::{ClusterSettings, ClusterUses, VolumeSettings};
use ringfence_engine::ObserverConfig;
use ringfence_lab::{
    Attacher, CSI_DRIVER, ControlPlane, ControlPlaneOptions, IpmiBmc, KubeApi, Kubelet, KubeletOptions,
    KubernetesPrograms, OutOfService, make_volumes, stateful_set,
};
use ringfence_tests::{Ground, NewerRelease, Site, Stack, StackOptions};
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
const NODES: &[&str] = &["n1", "n2", "n3"];
const PATIENCE: Duration = Duration::from_secs(60);

/// Ringfence's account in a cluster of a newer release.
pub const ACCOUNT: &str = "system:serviceaccount:ringfence:ringfence";
/// Between two turns of the pod garbage collector of a newer release.
const COLLECTS_EVERY: Duration = Duration::from_secs(2);
/// So long nodes of a newer release have to be Ready, as the configuration has it unless it is set.
const READY_FOR: Duration = Duration::from_secs(10);

/// A cluster whose set `db` has two members with volumes, on two of its nodes with BMCs.
pub struct Cluster {
    pub nodes: Vec<Kubelet>,
    pub plane: ControlPlane,
    pub attacher: Attacher,
}

/// Such a cluster, and a Ringfence that watches it.
pub struct Plant {
    pub stack: Stack,
    options: StackOptions,
    cluster: Cluster,
    kubeconfig: PathBuf,
    newer: Option<Newer>,
}

/// What makes a newer release of the cluster: it acts on the out-of-service taint.
struct Newer {
    controllers: OutOfService,
    front: KubeApi,
    _serving: NewerRelease,
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
        fenced_storage: vec![CSI_DRIVER.to_owned()],
        gate: GATE.to_owned(),
        timeout: Duration::from_secs(10),
        down_after: Duration::from_secs(DOWN_AFTER_S),
        ready_for: Duration::from_secs(2),
        volumes: VolumeSettings {
            poll: Duration::from_secs(1),
            ..VolumeSettings::default()
        },
        uses: ClusterUses::default(),
    }
}

pub fn control_plane() -> ControlPlane {
    control_plane_with(ControlPlaneOptions::default())
}

fn control_plane_with(options: ControlPlaneOptions) -> ControlPlane {
    let programs = KubernetesPrograms::from_environment();
    let Some(programs) = programs else {
        panic!("RINGFENCE_TEST_KUBERNETES is not set; run this through `cargo xtask test`, with Kubernetes");
    };
    let plane = ControlPlane::start(&programs, options).unwrap();
    let namespace = json!({ "metadata": { "name": NAMESPACE } });
    plane.api().post("/api/v1/namespaces", &namespace).unwrap();
    plane
}

impl Plant {
    pub async fn start(ground: Ground, policy: Value) -> Self {
        Self::start_with_nodes(ground, policy, NODES).await
    }

    pub async fn start_with_nodes(ground: Ground, policy: Value, nodes: &[&str]) -> Self {
        let cluster = block_in_place(|| Cluster::start_with(ControlPlaneOptions::default(), nodes));
        let kubeconfig = cluster.plane.kubeconfig();
        let site = Site::new(ground).await;
        Box::pin(Self::of(site, policy, cluster, settings(kubeconfig), false)).await
    }

    /// A plant in whose cluster Ringfence's objects are defined and served.
    pub async fn start_with_operator(ground: Ground, policy: Value) -> Self {
        let cluster = block_in_place(Cluster::start);
        block_in_place(|| define_objects(cluster.api()));
        let site = Site::new(ground).await;
        let kubeconfig = block_in_place(|| limited(&cluster.plane, site.dir.path()));
        Box::pin(Self::of(site, policy, cluster, settings(kubeconfig), true)).await
    }

    /// A plant whose cluster has four nodes, acts on the out-of-service taint as a newer release does, and writes down what it is told.
    pub async fn start_newer(ground: Ground, policy: Value) -> Self {
        let audited = ControlPlaneOptions {
            is_audited: true,
            ..ControlPlaneOptions::default()
        };
        let cluster = block_in_place(|| Cluster::start_with(audited, &["n1", "n2", "n3", "n4"]));
        let site = Site::new(ground).await;
        let front = NewerRelease::before(&cluster.plane);
        let account = || cluster.plane.service_account(NAMESPACE, "ringfence", &rights());
        let account = block_in_place(|| account().unwrap());
        let by_front = account.kubeconfig.replace(cluster.plane.url(), &front.url());
        let kubeconfig = write(site.dir.path(), &by_front);
        let newer = Newer {
            controllers: block_in_place(|| OutOfService::start(&cluster.plane, COLLECTS_EVERY).unwrap()),
            front: cluster.api().by_way_of(&front.url(), &account.token.unwrap()),
            _serving: front,
        };
        let settings = ClusterSettings {
            ready_for: READY_FOR,
            ..settings(kubeconfig)
        };
        let plant = Box::pin(Self::of(site, policy, cluster, settings, false)).await;
        Self {
            newer: Some(newer),
            ..plant
        }
    }

    async fn of(
        site: Site,
        policy: Value,
        cluster: Cluster,
        settings: ClusterSettings,
        has_operator: bool,
    ) -> Self {
        let kubeconfig = settings.kubeconfig.clone().unwrap();
        let options = StackOptions {
            hosts: 1,
            clusters: vec![settings],
            has_operator,
            observer: ObserverConfig {
                every: Duration::from_secs(5),
                down_after: chrono::TimeDelta::seconds(DOWN_AFTER_S.try_into().unwrap()),
                adopt: None,
                ..ObserverConfig::default()
            },
            ..StackOptions::default()
        };
        let stack = Stack::start_with(site, options.clone()).await;
        let plant = Self {
            stack,
            options,
            cluster,
            kubeconfig,
            newer: None,
        };
        plant.configure(policy).await;
        plant
    }

    /// What acts on the out-of-service taint.
    pub fn controllers(&self) -> &OutOfService {
        &self.newer.as_ref().unwrap().controllers
    }

    /// The way that Ringfence takes to a newer release, with its rights.
    pub fn front(&self) -> &KubeApi {
        &self.newer.as_ref().unwrap().front
    }

    /// The power is taken so many seconds after the node was isolated.
    pub async fn wait_before_power(&self, seconds: u32) {
        let client = &self.stack.client;
        client.put("/plans/default", plan(seconds)).await.ok(200);
    }

    /// That of the user whom the cluster takes Ringfence for.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.clone()
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
        client.post("/plans", plan(0)).await.ok(201);
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

    /// Ends the engine and its operator at once, and starts others.
    pub async fn replace_engine(&mut self) {
        self.stack.replace_engine(&self.options).await;
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

/// A plan that takes the power so many seconds after the isolation.
pub fn plan(delay_s: u32) -> Value {
    let power = json!({ "kind": "power.off", "levels": [{ "level": 1, "methods": ["bmc"] }] });
    json!({ "name": "default", "stages": [{ "delay_s": delay_s, "tasks": [power] }] })
}

/// The rules of a role that is installed with the definitions.
pub fn role(name: &str) -> Value {
    let definitions = ringfence_operator::definitions();
    let mut objects = definitions
        .split("---\n")
        .map(|one| serde_saphyr::from_str::<Value>(one).unwrap());
    let role = objects.find(|object| object["metadata"]["name"] == name).unwrap();
    role["rules"].clone()
}

/// The kubeconfig of a user who has no more rights than the pages of the documentation name.
fn limited(plane: &ControlPlane, folder: &Path) -> PathBuf {
    let user = plane.user("ringfence", &rights()).unwrap();
    let bindings = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings");
    let group = "rbac.authorization.k8s.io";
    let binding = json!({
        "metadata": { "name": "ringfence-configuration" },
        "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "ringfence-configuration" },
        "subjects": [{ "apiGroup": group, "kind": "User", "name": "ringfence" }],
    });
    plane.api().post(&bindings, &binding).unwrap();
    write(folder, &user.kubeconfig)
}

fn write(folder: &Path, kubeconfig: &str) -> PathBuf {
    let file = folder.join("kubeconfig");
    std::fs::write(&file, kubeconfig).unwrap();
    file
}

fn rights() -> Value {
    let mut rules = role("ringfence-operator").as_array().unwrap().clone();
    for (group, resources, verbs) in [
        ("", &["nodes"][..], &["get", "list", "watch", "patch"][..]),
        ("", &["nodes/status"], &["patch"]),
        ("", &["pods"], &["list", "get", "delete"]),
        ("", &["pods/eviction"], &["create"]),
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
    Value::Array(rules)
}

/// As `ringfence kubernetes crds | kubectl apply -f -` does it.
pub fn define_objects(api: &KubeApi) {
    define_some(api, &ringfence_operator::definitions());
}

/// Installs these documents of it.
pub fn define_some(api: &KubeApi, documents: &str) {
    for document in documents.split("---\n") {
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

/// What a user sees.
pub fn kubectl(kubeconfig: &Path, words: &[&str]) -> String {
    let programs = KubernetesPrograms::from_environment().unwrap();
    let mut kubectl = Command::new(programs.kubectl());
    let kubectl = kubectl.args(words).arg("--kubeconfig").arg(kubeconfig);
    let done = kubectl
        .env("HOME", kubeconfig.parent().unwrap())
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

/// The rows of a table, cell by cell, the names of the columns first. Cells are more than two spaces apart.
pub fn cells(table: &str) -> Vec<Vec<String>> {
    let of_row = |row: &str| {
        let cells = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect()
    };
    table.lines().map(of_row).collect()
}

impl Cluster {
    pub fn start() -> Self {
        Self::start_with(ControlPlaneOptions::default(), NODES)
    }

    fn start_with(options: ControlPlaneOptions, nodes: &[&str]) -> Self {
        let plane = control_plane_with(options);
        let options = KubeletOptions {
            with_bmc: true,
            ..KubeletOptions::default()
        };
        let start = |name: &&str| Kubelet::start(&plane, name, &options).unwrap();
        let nodes = nodes.iter().map(start).collect();
        make_volumes(plane.api(), 2).unwrap();
        let attacher = Attacher::start(plane.api());
        let sets = "/apis/apps/v1/namespaces/default/statefulsets";
        plane.api().post(sets, &stateful_set("db", 2)).unwrap();
        for member in ["db-0", "db-1"] {
            running(plane.api(), member, |_| true);
        }
        Self {
            nodes,
            plane,
            attacher,
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
    let seen = api.until("the pod running", &path, Duration::from_secs(180), is_running);
    seen.unwrap_or_else(|error| panic!("{member}: {error}; its events: {}", events_of(api, member)))
}

/// What the scheduler, the controllers and the kubelets have told of a pod.
fn events_of(api: &KubeApi, pod: &str) -> String {
    let list = api.get(&format!(
        "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={pod}"
    ));
    let list = list.unwrap();
    let told = list["items"].as_array().unwrap().iter();
    let told = told.map(|event| {
        format!(
            "{} {} {}",
            event["lastTimestamp"], event["reason"], event["message"]
        )
    });
    told.collect::<Vec<_>>().join("; ")
}
