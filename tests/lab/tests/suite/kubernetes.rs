//! A Kubernetes starts, loses nodes and comes back as other tests expect.

use std::time::Duration;

use ringfence_lab::{
    Attacher, Component, ContainerRun, ControlPlane, ControlPlaneOptions, IpmiFault, KubeApi, Kubelet,
    KubeletOptions, KubernetesPrograms, make_volumes, running_twice, stateful_set,
};
use serde_json::{Value, json};

use super::ipmi_power;

const PATIENCE: Duration = Duration::from_secs(120);
const PODS: &str = "/api/v1/namespaces/default/pods";
const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

fn control_plane() -> ControlPlane {
    let programs = KubernetesPrograms::from_environment().expect(
        "RINGFENCE_TEST_KUBERNETES is not set; run this through `cargo xtask test` or `cargo xtask lab`",
    );
    ControlPlane::start(&programs, ControlPlaneOptions::default()).unwrap()
}

fn node(plane: &ControlPlane, name: &str) -> Kubelet {
    Kubelet::start(plane, name, &KubeletOptions::default()).unwrap()
}

/// A cluster whose set `db` has two members with volumes, on two of three nodes.
struct Cluster {
    nodes: [Kubelet; 3],
    _attacher: Attacher,
    plane: ControlPlane,
}

impl Cluster {
    fn start() -> Self {
        let plane = control_plane();
        let nodes = ["n1", "n2", "n3"].map(|name| node(&plane, name));
        make_volumes(plane.api(), 2).unwrap();
        let attacher = Attacher::start(plane.api());
        let sets = "/apis/apps/v1/namespaces/default/statefulsets";
        plane.api().post(sets, &stateful_set("db", 2)).unwrap();
        for member in ["db-0", "db-1"] {
            until_running(plane.api(), member, |_| true);
        }
        Self {
            nodes,
            _attacher: attacher,
            plane,
        }
    }

    fn node_of(&self, pod: &Value) -> &Kubelet {
        let name = pod["spec"]["nodeName"].as_str().unwrap();
        self.nodes.iter().find(|node| node.name() == name).unwrap()
    }
}

/// Waits until a member runs and is as wanted; returns its pod.
fn until_running(api: &KubeApi, member: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let is_running = |pod: &Value| {
        let container = &pod["status"]["containerStatuses"][0];
        pod["status"]["phase"] == "Running" && container["ready"] == true && is_so(pod)
    };
    api.until(
        &format!("{member} running"),
        &format!("{PODS}/{member}"),
        PATIENCE,
        is_running,
    )
    .unwrap()
}

fn runs_of(node: &Kubelet, member: &str) -> Vec<ContainerRun> {
    let mut runs = node.runs().unwrap();
    runs.retain(|run| run.pod == member && run.goes_on());
    runs
}

/// Takes back a dead node's word that it uses volumes. Until then the controller lets its attachments stand, for six minutes.
fn forget_volumes_in_use(api: &KubeApi, node: &Kubelet) {
    let status = format!("/api/v1/nodes/{}/status", node.name());
    api.patch(&status, &json!({"status": {"volumesInUse": []}}))
        .unwrap();
}

fn attached_to(api: &KubeApi, node: &str) -> usize {
    let list = api.get(ATTACHMENTS).unwrap();
    let all = list["items"].as_array().unwrap();
    let is_it = |one: &&Value| one["spec"]["nodeName"] == node && one["status"]["attached"] == true;
    all.iter().filter(is_it).count()
}

#[test]
fn a_member_of_a_dead_node_starts_elsewhere_only_after_its_deletion_is_forced() {
    let cluster = Cluster::start();
    let api = cluster.plane.api();
    let pod = api.get(&format!("{PODS}/db-0")).unwrap();
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let dead = cluster.node_of(&pod);
    assert_eq!(runs_of(dead, "db-0").len(), 1);
    assert_eq!(attached_to(api, dead.name()), 1);

    dead.kill();
    dead.until_not_ready().unwrap();
    assert!(runs_of(dead, "db-0").is_empty());
    // A plain deletion waits for the dead node's word.
    api.delete(&format!("{PODS}/db-0"), &json!({})).unwrap();
    let waiting = api.get(&format!("{PODS}/db-0")).unwrap();
    assert_eq!(waiting["metadata"]["uid"], uid);
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());

    api.force_delete_pod("default", "db-0", uid).unwrap();
    let path = format!("{PODS}/db-0");
    api.until("the next db-0", &path, PATIENCE, |pod| {
        pod["metadata"]["uid"] != uid && pod["spec"]["nodeName"].is_string()
    })
    .unwrap();
    assert_eq!(attached_to(api, dead.name()), 1);
    forget_volumes_in_use(api, dead);
    let next = until_running(api, "db-0", |pod| pod["metadata"]["uid"] != uid);
    let heir = cluster.node_of(&next);
    assert_ne!(heir.name(), dead.name());
    assert_eq!(runs_of(heir, "db-0").len(), 1);
    assert_eq!(
        (attached_to(api, dead.name()), attached_to(api, heir.name())),
        (0, 1)
    );
    assert_eq!(running_twice(&cluster.nodes).unwrap(), None);
}

#[test]
fn a_member_of_a_frozen_node_runs_twice_if_its_deletion_is_forced() {
    let cluster = Cluster::start();
    let api = cluster.plane.api();
    let pod = api.get(&format!("{PODS}/db-0")).unwrap();
    let uid = pod["metadata"]["uid"].as_str().unwrap();
    let frozen = cluster.node_of(&pod);

    frozen.pause().unwrap();
    frozen.until_not_ready().unwrap();
    api.force_delete_pod("default", "db-0", uid).unwrap();
    forget_volumes_in_use(api, frozen);
    until_running(api, "db-0", |pod| pod["metadata"]["uid"] != uid);

    let (one, other) = running_twice(&cluster.nodes).unwrap().unwrap();
    assert_eq!((one.pod.as_str(), other.pod.as_str()), ("db-0", "db-0"));
    let boot = frozen.boot_id();
    frozen.resume().unwrap();
    frozen.until_ready().unwrap();
    assert_eq!(frozen.boot_id(), boot);
}

#[test]
fn a_node_that_is_started_again_has_another_boot_id_and_runs_its_pods_anew() {
    let plane = control_plane();
    let node = node(&plane, "n1");
    let pod = json!({
        "metadata": {"name": "alone"},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    });
    plane.api().post(PODS, &pod).unwrap();
    until_running(plane.api(), "alone", |_| true);
    let first = node.boot_id();

    node.kill();
    assert!(!node.is_running());
    node.start_again().unwrap();
    node.until_ready().unwrap();

    assert_ne!(node.boot_id(), first);
    until_running(plane.api(), "alone", |_| !runs_of(&node, "alone").is_empty());
    let runs = node.runs().unwrap();
    let boots: Vec<_> = runs.iter().map(|run| run.boot.clone()).collect();
    assert_eq!(boots, [first, node.boot_id()]);
    assert!(runs[0].until_ms.unwrap() <= runs[1].from_ms);
}

#[test]
fn a_node_dies_when_its_bmc_switches_it_off() {
    let plane = control_plane();
    let options = KubeletOptions {
        with_bmc: true,
        labels: vec![("topology.kubernetes.io/zone".to_owned(), "z1".to_owned())],
    };
    let node = Kubelet::start(&plane, "n1", &options).unwrap();
    let api = plane.api();
    let seen = api.get("/api/v1/nodes/n1").unwrap();
    assert_eq!(seen["metadata"]["labels"]["topology.kubernetes.io/zone"], "z1");
    let bmc = node.bmc().unwrap();
    assert_eq!(ipmi_power(bmc, "status"), "Chassis Power is on");

    bmc.set_fault(IpmiFault::Lies).unwrap();
    ipmi_power(bmc, "off");
    assert!(node.is_running());

    bmc.set_fault(IpmiFault::None).unwrap();
    ipmi_power(bmc, "off");
    assert!(!node.is_running());
    node.until_not_ready().unwrap();
    let boot = node.boot_id();
    ipmi_power(bmc, "on");
    node.until_ready().unwrap();
    assert_ne!(node.boot_id(), boot);
}

#[test]
fn killed_components_come_back_with_the_data_and_a_frozen_api_server_goes_on() {
    let plane = control_plane();
    let maps = "/api/v1/namespaces/default/configmaps";
    let map = json!({"metadata": {"name": "kept"}, "data": {"a": "b"}});
    plane.api().post(maps, &map).unwrap();

    plane.kill(Component::ApiServer);
    assert!(plane.api().get(maps).is_err());
    plane.start_again(Component::ApiServer).unwrap();
    for component in [
        Component::Etcd,
        Component::ControllerManager,
        Component::Scheduler,
    ] {
        plane.kill(component);
        assert!(!plane.is_running(component));
        plane.start_again(component).unwrap();
        let kept = plane
            .api()
            .until("the map", &format!("{maps}/kept"), PATIENCE, |map| !map.is_null())
            .unwrap();
        assert_eq!(kept["data"]["a"], "b");
    }

    plane.pause(Component::ApiServer).unwrap();
    plane.resume(Component::ApiServer).unwrap();
    assert_eq!(
        plane.api().get(&format!("{maps}/kept")).unwrap()["data"]["a"],
        "b"
    );
}

#[test]
fn a_user_has_the_rights_that_were_given() {
    let plane = control_plane();
    let rules = json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}]);
    let user = plane.user("reader", &rules).unwrap();
    let account = plane.service_account("default", "robot", &rules).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let programs = KubernetesPrograms::from_environment().unwrap();
    for of in [&user, &account] {
        let file = folder.path().join("kubeconfig");
        std::fs::write(&file, &of.kubeconfig).unwrap();
        let may = |words: &[&str]| {
            let mut kubectl = std::process::Command::new(programs.kubectl());
            kubectl.args(words).arg("--kubeconfig").arg(&file);
            kubectl.output().unwrap().status.success()
        };
        assert!(may(&["get", "nodes"]));
        assert!(!may(&["get", "secrets"]));
    }
    assert!(account.token.is_some() && user.token.is_none());
}
