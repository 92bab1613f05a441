//! Nodes cut off by csi-addons, in a real cluster. csi-addons and the storage are stand-ins: the first does with the objects what the real
//! one does, and the second is the set of addresses that it does not let write.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use ringfence_backends::kubernetes::Cluster;
use ringfence_core::{FencingKind, FrozenMethod, ObservedState, Outcome, Resource};
use ringfence_lab::{ControlPlane, ControlPlaneOptions, KubeApi, KubernetesPrograms};
use ringfence_workers::{Driver, DriverSettings, Drivers, Report};
use serde_json::{Value, json};

use super::settings;
use crate::{assert_confirmed, assert_outcome, clock, method, no_secrets, seconds};

const GROUP: &str = "/apis/csiaddons.openshift.io/v1alpha1";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PATIENCE: Duration = Duration::from_secs(60);
/// csi-addons' own.
const FINALIZER: &str = "csiaddons.openshift.io/network-fence";
/// How long after its client gave up the storage carries out a call.
const LATE: Duration = Duration::from_secs(3);

fn fences() -> String {
    format!("{GROUP}/networkfences")
}

/// Who cannot write, and how the storage answers.
#[derive(Default)]
struct Storage {
    cut_off: Mutex<BTreeSet<String>>,
    /// An unfencing is answered too late, and carried out later still.
    releases_late: AtomicBool,
}

impl Storage {
    fn carry_out(&self, spec: &Value) {
        let mut cut_off = self.cut_off.lock();
        for cidr in spec["cidrs"].as_array().unwrap() {
            let cidr = cidr.as_str().unwrap().to_owned();
            if spec["fenceState"] == "Fenced" {
                cut_off.insert(cidr);
            } else {
                cut_off.remove(&cidr);
            }
        }
    }

    /// The answer to csi-addons.
    fn call(self: &Arc<Self>, spec: &Value) -> Result<(), &'static str> {
        if spec["fenceState"] == "Fenced" || !self.releases_late.load(Ordering::SeqCst) {
            self.carry_out(spec);
            return Ok(());
        }
        let (storage, spec) = (Arc::clone(self), spec.clone());
        std::thread::spawn(move || {
            sleep(LATE);
            storage.carry_out(&spec);
        });
        Err("rpc error: code = DeadlineExceeded desc = context deadline exceeded")
    }

    fn cut_off(&self) -> Vec<String> {
        self.cut_off.lock().iter().cloned().collect()
    }
}

/// csi-addons, until it is dropped: each object once in each version, again after a failure, and all of them when it starts.
struct CsiAddons {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl CsiAddons {
    fn start(plant: &Plant) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (plane, storage, until) = (
            Arc::clone(&plant.plane),
            Arc::clone(&plant.storage),
            Arc::clone(&stop),
        );
        let thread = std::thread::spawn(move || {
            let mut done = BTreeMap::new();
            while !until.load(Ordering::Relaxed) {
                let all = plane.api().get(&fences()).unwrap();
                for object in all["items"].as_array().unwrap() {
                    reconcile(plane.api(), &storage, object, &mut done);
                }
                sleep(Duration::from_millis(100));
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for CsiAddons {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What was done of an object, and when it failed.
type Versions = BTreeMap<(String, u64), Option<Instant>>;

fn reconcile(api: &KubeApi, storage: &Arc<Storage>, object: &Value, versions: &mut Versions) {
    let metadata = &object["metadata"];
    let path = format!("{}/{}", fences(), metadata["name"].as_str().unwrap());
    let finalizers: Vec<&str> = metadata["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !metadata["deletionTimestamp"].is_null() {
        if finalizers.contains(&FINALIZER) {
            let others: Vec<_> = finalizers.iter().filter(|one| **one != FINALIZER).collect();
            let change = json!({ "metadata": { "finalizers": others } });
            // The object may have gone meanwhile.
            let _ = api.patch(&path, &change);
        }
        return;
    }
    let version = (
        metadata["uid"].to_string(),
        metadata["generation"].as_u64().unwrap(),
    );
    match versions.get(&version) {
        Some(None) => return,
        Some(Some(failed)) if failed.elapsed() < Duration::from_secs(1) => return,
        _ => {}
    }
    if !finalizers.contains(&FINALIZER) {
        let both = [finalizers, vec![FINALIZER]].concat();
        let with = json!({ "metadata": { "finalizers": both } });
        let Ok(_) = api.patch(&path, &with) else { return };
    }
    let spec = &object["spec"];
    let done = storage.call(spec);
    versions.insert(version, done.is_err().then(Instant::now));
    let message = match (done, spec["fenceState"] == "Fenced") {
        (Ok(()), true) => "fencing operation successful",
        (Ok(()), false) => "unfencing operation successful",
        (Err(why), _) => why,
    };
    let result = if done.is_ok() { "Succeeded" } else { "Failed" };
    let status = json!({ "status": { "result": result, "message": message } });
    let _ = api.patch(&format!("{path}/status"), &status);
}

/// A cluster with the objects of csi-addons.
struct Plant {
    plane: Arc<ControlPlane>,
    driver: Arc<dyn Driver>,
    storage: Arc<Storage>,
}

impl Plant {
    async fn start() -> Self {
        let programs = KubernetesPrograms::from_environment().expect(
            "RINGFENCE_TEST_KUBERNETES is not set; run this through `cargo xtask test` or `cargo xtask lab`",
        );
        let plane = ControlPlane::start(&programs, ControlPlaneOptions::default()).unwrap();
        let settings = DriverSettings {
            clusters: vec![Arc::new(Cluster::new(settings(plane.kubeconfig())))],
            ..DriverSettings::new(clock())
        };
        let driver = Drivers::new(&settings).get("csi-network-fence").unwrap();
        let plant = Self {
            plane: Arc::new(plane),
            driver,
            storage: Arc::default(),
        };
        let absent = plant.fence(&plant.node("node-a", &[]), 5).await;
        assert_outcome(
            &absent,
            Outcome::Refused,
            "cluster lab: it has no NetworkFence objects: csi-addons (csiaddons.openshift.io/v1alpha1) has to be installed",
        );
        plant.define();
        plant
    }

    fn define(&self) {
        let api = self.api();
        for definition in definitions() {
            api.post(CRDS, &definition).unwrap();
        }
        for plural in ["networkfences", "networkfenceclasses", "csiaddonsnodes"] {
            let path = format!("{GROUP}/{plural}");
            api.until(plural, &path, PATIENCE, |list| list["items"].is_array())
                .unwrap();
        }
        let class = json!({
            "apiVersion": "csiaddons.openshift.io/v1alpha1", "kind": "NetworkFenceClass", "metadata": { "name": "rbd" },
            "spec": { "provisioner": "rbd.csi.ceph.com", "parameters": { "clusterID": "one" } },
        });
        api.post(&format!("{GROUP}/networkfenceclasses"), &class).unwrap();
    }

    fn api(&self) -> &KubeApi {
        self.plane.api()
    }

    fn node(&self, name: &str, more: &[(&str, &str)]) -> FrozenMethod {
        let parameters = [("cluster", "lab"), ("class", "rbd"), ("node", name)];
        method(
            "csi-network-fence",
            Resource::Storage,
            &[&parameters, more].concat(),
        )
    }

    /// What the CSI driver of a node reports of its addresses.
    fn reports(&self, node: &str, cidrs: &[&str]) {
        let (nodes, name) = (
            format!("{GROUP}/namespaces/default/csiaddonsnodes"),
            format!("{node}-rbd"),
        );
        let object = json!({
            "apiVersion": "csiaddons.openshift.io/v1alpha1", "kind": "CSIAddonsNode", "metadata": { "name": name },
            "spec": { "driver": { "name": "rbd.csi.ceph.com", "endpoint": "pod://plugin.default:9070", "nodeID": node } },
        });
        if self.api().find(&format!("{nodes}/{name}")).unwrap().is_none() {
            self.api().post(&nodes, &object).unwrap();
        }
        let clients =
            json!([{ "networkFenceClassName": "rbd", "clientDetails": [{ "id": "a", "cidrs": cidrs }] }]);
        let status = json!({ "status": { "state": "Connected", "networkFenceClientStatus": clients } });
        self.api()
            .patch(&format!("{nodes}/{name}/status"), &status)
            .unwrap();
    }

    async fn fence(&self, method: &FrozenMethod, budget_s: u64) -> Report {
        self.act(FencingKind::StorageFence, method, budget_s).await
    }

    async fn release(&self, method: &FrozenMethod, budget_s: u64) -> Report {
        self.act(FencingKind::StorageUnfence, method, budget_s).await
    }

    async fn act(&self, kind: FencingKind, method: &FrozenMethod, budget_s: u64) -> Report {
        let budget = seconds(budget_s);
        self.driver
            .act_and_observe(kind, method, &no_secrets(), budget)
            .await
    }

    async fn look(&self, method: &FrozenMethod) -> Result<(ObservedState, String), String> {
        let seen = self.driver.observe(method, &no_secrets(), seconds(5)).await;
        seen.map(|seen| (seen.state, seen.detail))
            .map_err(|error| error.to_string())
    }

    /// The states that the objects ask for.
    fn asked(&self) -> Vec<Value> {
        let all = self.api().get(&fences()).unwrap();
        let items = all["items"].as_array().unwrap().iter();
        items.map(|one| one["spec"]["fenceState"].clone()).collect()
    }

    fn make_by_hand(&self, name: &str, state: &str, cidr: &str) {
        let object = json!({
            "apiVersion": "csiaddons.openshift.io/v1alpha1", "kind": "NetworkFence", "metadata": { "name": name },
            "spec": { "networkFenceClassName": "rbd", "fenceState": state, "cidrs": [cidr] },
        });
        self.api().post(&fences(), &object).unwrap();
    }
}

/// As csi-addons defines them, without the rules in CEL, which this release of Kubernetes does not know.
fn definitions() -> [Value; 3] {
    let text = || json!({ "type": "string" });
    let texts = || json!({ "type": "array", "items": text() });
    let map = || json!({ "type": "object", "additionalProperties": text() });
    let secret = json!({ "type": "object", "properties": { "name": text(), "namespace": text() } });
    let fence = json!({
        "type": "object", "required": ["cidrs", "fenceState"],
        "properties": {
            "networkFenceClassName": text(), "driver": text(), "cidrs": texts(), "secret": secret, "parameters": map(),
            "fenceState": { "type": "string", "enum": ["Fenced", "Unfenced"], "default": "Fenced" },
        },
    });
    let fence_status = json!({ "type": "object", "properties": { "result": text(), "message": text() } });
    let class = json!({
        "type": "object", "required": ["provisioner"], "properties": { "provisioner": text(), "parameters": map() },
    });
    let driver = json!({
        "type": "object", "required": ["endpoint", "name", "nodeID"],
        "properties": { "name": text(), "endpoint": text(), "nodeID": text() },
    });
    let node = json!({ "type": "object", "required": ["driver"], "properties": { "driver": driver } });
    let details = json!({ "type": "object", "required": ["cidrs", "id"], "properties": { "id": text(), "cidrs": texts() } });
    let clients = json!({
        "type": "object", "required": ["clientDetails", "networkFenceClassName"],
        "properties": { "networkFenceClassName": text(), "clientDetails": { "type": "array", "items": details } },
    });
    let node_status = json!({
        "type": "object",
        "properties": {
            "state": text(), "message": text(), "reason": text(), "capabilities": texts(),
            "networkFenceClientStatus": { "type": "array", "items": clients },
        },
    });
    let none = json!({ "type": "object" });
    [
        definition("NetworkFence", "networkfences", "Cluster", &fence, &fence_status),
        definition(
            "NetworkFenceClass",
            "networkfenceclasses",
            "Cluster",
            &class,
            &none,
        ),
        definition(
            "CSIAddonsNode",
            "csiaddonsnodes",
            "Namespaced",
            &node,
            &node_status,
        ),
    ]
}

fn definition(kind: &str, plural: &str, scope: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.csiaddons.openshift.io") },
        "spec": {
            "group": "csiaddons.openshift.io", "scope": scope,
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List") },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "required": ["spec"], "properties": { "spec": spec, "status": status },
                } },
            }],
        },
    })
}

/// One cluster for all of it: a control plane takes a core for seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_cut_off_when_csi_addons_says_so_of_the_very_command() {
    let plant = Plant::start().await;
    what_cannot_be_fenced_is_refused_in_words(&plant).await;
    nothing_is_proven_while_csi_addons_is_away(&plant).await;
    an_object_that_another_client_changes_is_no_proof(&plant).await;
    let csi_addons = CsiAddons::start(&plant);
    a_node_gets_back_what_was_cut_off_although_it_reports_no_address_any_more(&plant).await;
    a_cut_outlasts_a_new_start_of_csi_addons(&plant, csi_addons).await;
    let _csi_addons = CsiAddons::start(&plant);
    an_unfencing_that_lands_late_does_not_undo_the_next_fence(&plant).await;
    what_another_node_was_given_back_does_not_undo_the_fence(&plant).await;
    what_another_client_asks_for_is_not_overruled(&plant).await;
}

async fn what_cannot_be_fenced_is_refused_in_words(plant: &Plant) {
    let unknown = [("cluster", "lab"), ("class", "none"), ("node", "node-a")];
    let unknown = method("csi-network-fence", Resource::Storage, &unknown);
    let elsewhere = [("cluster", "east"), ("class", "rbd"), ("node", "node-a")];
    let elsewhere = method("csi-network-fence", Resource::Storage, &elsewhere);
    plant.reports("wide", &["10.0.0.0/8"]);
    for (method, why) in [
        (unknown, "there is no NetworkFenceClass none; there is: rbd"),
        (
            elsewhere,
            r#"this worker's configuration has no cluster "east"; it has: lab"#,
        ),
        (
            plant.node("silent", &[]),
            "no CSIAddonsNode has addresses of node silent for NetworkFenceClass rbd; csi-addons removes that of a node that it does not \
             reach: give the addresses by the parameter cidrs",
        ),
        (
            plant.node("wide", &[]),
            "the CSIAddonsNode of node wide holds 10.0.0.0/8, which would cut other hosts off too",
        ),
        (
            plant.node("node-a", &[("cidrs", "10.0.0.0/8")]),
            "parameter cidrs holds 10.0.0.0/8, which would cut other hosts off too",
        ),
    ] {
        let refused = plant.fence(&method, 5).await;
        assert_outcome(&refused, Outcome::Refused, why);
        let told = plant.look(&method).await.unwrap_err();
        assert!(told.contains(why), "{told}");
    }
    assert!(plant.asked().is_empty());
}

async fn nothing_is_proven_while_csi_addons_is_away(plant: &Plant) {
    let given = plant.node("away", &[("cidrs", "192.0.2.9")]);
    let words = "no NetworkFence of Ringfence is there for away, which has 192.0.2.9/32";
    assert_eq!(
        plant.look(&given).await,
        Ok((ObservedState::Unfenced, words.to_owned()))
    );
    let unknown = plant.fence(&given, 2).await;
    assert_outcome(
        &unknown,
        Outcome::Unknown,
        "csi-addons has not answered to NetworkFence ringfence-away-",
    );
}

async fn an_object_that_another_client_changes_is_no_proof(plant: &Plant) {
    // The result of one version stands beside what another asks for.
    let changes = [
        json!({ "cidrs": ["192.0.2.7/32"] }),
        json!({ "cidrs": ["192.0.2.8/32"] }),
    ];
    let unknown = answered(plant, "192.0.2.8", &changes, "fencing operation successful").await;
    assert_outcome(&unknown, Outcome::Unknown, "was changed by another client");
    let unknown = answered(plant, "192.0.2.6", &[], "unfencing operation successful").await;
    assert_outcome(
        &unknown,
        Outcome::Unknown,
        "says Succeeded: unfencing operation successful",
    );
}

/// A fence whose object is changed and then called successful.
async fn answered(plant: &Plant, address: &str, changes: &[Value], message: &str) -> Report {
    let given = plant.node("changed", &[("cidrs", address)]);
    let answering = async {
        let path = loop {
            let all = plant.api().get(&fences()).unwrap();
            let mut items = all["items"].as_array().unwrap().iter();
            // A later object holds the addresses of the earlier ones as well.
            let made = items
                .find(|one| one["spec"]["cidrs"].to_string().contains(address) && one["status"].is_null());
            if let Some(made) = made {
                break format!("{}/{}", fences(), made["metadata"]["name"].as_str().unwrap());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        for change in changes {
            plant.api().patch(&path, &json!({ "spec": change })).unwrap();
        }
        let done = json!({ "status": { "result": "Succeeded", "message": message } });
        plant.api().patch(&format!("{path}/status"), &done).unwrap();
    };
    let (report, ()) = tokio::join!(plant.fence(&given, 3), answering);
    report
}

async fn a_node_gets_back_what_was_cut_off_although_it_reports_no_address_any_more(plant: &Plant) {
    plant.reports("node-a", &["192.0.2.1/32", "fd00::1/128"]);
    let node = plant.node("node-a", &[]);
    for _ in 0..2 {
        let fenced = plant.fence(&node, 10).await;
        assert_confirmed(&fenced, ObservedState::Fenced);
        let cut_off = plant.storage.cut_off();
        assert!(
            ["192.0.2.1/32", "fd00::1/128"]
                .iter()
                .all(|own| cut_off.iter().any(|one| one == own)),
            "{cut_off:?}"
        );
    }
    plant.reports("node-a", &[]);
    let released = plant.release(&node, 10).await;
    assert_confirmed(&released, ObservedState::Unfenced);
    let cut_off = plant.storage.cut_off();
    assert!(
        !cut_off
            .iter()
            .any(|one| one == "192.0.2.1/32" || one == "fd00::1/128"),
        "{cut_off:?}"
    );
    // What it reports of a node that is in service is needed before the next fence.
    let why = plant.look(&node).await.unwrap_err();
    assert!(
        why.contains("no CSIAddonsNode has addresses of node node-a"),
        "{why}"
    );
}

async fn a_cut_outlasts_a_new_start_of_csi_addons(plant: &Plant, csi_addons: CsiAddons) {
    plant.reports("node-a", &["192.0.2.2/32"]);
    let node = plant.node("node-a", &[]);
    assert_confirmed(&plant.fence(&node, 10).await, ObservedState::Fenced);
    drop(csi_addons);
    let again = CsiAddons::start(plant);
    sleep(Duration::from_secs(1));
    drop(again);
    let cut_off = plant.storage.cut_off();
    assert!(cut_off.iter().any(|one| one == "192.0.2.2/32"), "{cut_off:?}");
    assert_eq!(plant.look(&node).await.unwrap().0, ObservedState::Fenced);
}

async fn an_unfencing_that_lands_late_does_not_undo_the_next_fence(plant: &Plant) {
    let node = plant.node("node-a", &[]);
    plant.storage.releases_late.store(true, Ordering::SeqCst);
    // The second one finds no object that says Fenced, and no report.
    for _ in 0..2 {
        let late = plant.release(&node, 3).await;
        assert_outcome(
            &late,
            Outcome::Unknown,
            "says Failed: rpc error: code = DeadlineExceeded",
        );
        plant.reports("node-a", &[]);
    }
    plant.reports("node-a", &["192.0.2.2/32"]);
    let short = plant.fence(&node, 3).await;
    assert_outcome(
        &short,
        Outcome::Unknown,
        "no time is left to wait for an unfencing without an answer",
    );
    assert_confirmed(&plant.fence(&node, 30).await, ObservedState::Fenced);
    sleep(LATE);
    let cut_off = plant.storage.cut_off();
    assert!(cut_off.iter().any(|one| one == "192.0.2.2/32"), "{cut_off:?}");
    plant.storage.releases_late.store(false, Ordering::SeqCst);
}

/// An address that a node had before may be another node's by now.
async fn what_another_node_was_given_back_does_not_undo_the_fence(plant: &Plant) {
    let before = plant.node("node-b", &[("cidrs", "192.0.2.5")]);
    assert_confirmed(&plant.release(&before, 10).await, ObservedState::Unfenced);
    let now = plant.node("node-c", &[("cidrs", "192.0.2.5")]);
    assert_confirmed(&plant.fence(&now, 10).await, ObservedState::Fenced);
    assert_eq!(plant.look(&now).await.unwrap().0, ObservedState::Fenced);
    let refused = plant.release(&before, 3).await;
    assert_outcome(
        &refused,
        Outcome::Refused,
        "has fenceState Fenced for addresses of node node-b",
    );
}

async fn what_another_client_asks_for_is_not_overruled(plant: &Plant) {
    let node = plant.node("node-a", &[]);
    plant.make_by_hand("by-hand", "Fenced", "192.0.2.2/32");
    let refused = plant.release(&node, 5).await;
    let why = "NetworkFence by-hand has fenceState Fenced for addresses of node node-a, and csi-addons does it again whenever it starts";
    assert_outcome(&refused, Outcome::Refused, why);
    plant.make_by_hand("opened", "Unfenced", "192.0.2.0/28");
    let refused = plant.fence(&node, 5).await;
    assert_outcome(
        &refused,
        Outcome::Refused,
        "NetworkFence opened has fenceState Unfenced",
    );
}
