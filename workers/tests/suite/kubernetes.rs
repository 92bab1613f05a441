//! A bare-metal host of Metal3 in a real cluster. Its operator is a stand-in that does what the real one does with the object.

mod budgets;
mod ceph;
mod network_fence;
mod volumes;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ringfence_backends::kubernetes::{Cluster, ClusterSettings, ClusterUses, VolumeSettings};
use ringfence_backends::{Platform, StepOrder, StepReport, Unanswered};
use ringfence_core::{
    Backend, FencingKind, FrozenMethod, Generation, Movable, ObservedState, Outcome, PlatformHost, Resource,
    SecretReference, WorkloadStep,
};
use ringfence_lab::{ControlPlane, ControlPlaneOptions, KubeApi, KubernetesPrograms};
use ringfence_workers::{Driver, DriverSettings, Drivers, Report, Secrets, WorkerError};
use serde_json::{Value, json};

use crate::{assert_confirmed, assert_outcome, clock, method, no_secrets, seconds};

const HOSTS: &str = "/apis/metal3.io/v1alpha1/namespaces/metal/baremetalhosts";
const NAMESPACE: &str = "ringfence";
const PATIENCE: Duration = Duration::from_secs(60);
const HOLD: &str = "reboot.metal3.io/ringfence";

/// A cluster with Metal3's objects.
struct Plant {
    plane: Arc<ControlPlane>,
    driver: Arc<dyn Driver>,
}

impl Plant {
    fn start() -> Self {
        let programs = KubernetesPrograms::from_environment().expect(
            "RINGFENCE_TEST_KUBERNETES is not set; run this through `cargo xtask test` or `cargo xtask lab`",
        );
        let plane = ControlPlane::start(&programs, ControlPlaneOptions::default()).unwrap();
        let api = plane.api();
        api.post(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            &definition(),
        )
        .unwrap();
        api.post("/api/v1/namespaces", &json!({ "metadata": { "name": "metal" } }))
            .unwrap();
        api.until("the kind BareMetalHost", HOSTS, PATIENCE, |list| {
            list["items"].is_array()
        })
        .unwrap();
        let settings = DriverSettings {
            clusters: vec![Arc::new(Cluster::new(settings(plane.kubeconfig())))],
            ..DriverSettings::new(clock())
        };
        let driver = Drivers::new(&settings).get("metal3").unwrap();
        Self {
            plane: Arc::new(plane),
            driver,
        }
    }

    fn api(&self) -> &KubeApi {
        self.plane.api()
    }

    /// A host with this report of its power.
    fn host(&self, name: &str, spec: &Value, is_on: bool) -> FrozenMethod {
        let object = json!({
            "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost", "metadata": { "name": name }, "spec": spec,
        });
        self.api().post(HOSTS, &object).unwrap();
        report(self.api(), name, &json!({ "poweredOn": is_on }));
        let parameters = [("cluster", "lab"), ("namespace", "metal"), ("host", name)];
        method("metal3", Resource::Power, &parameters)
    }

    async fn act(&self, kind: FencingKind, method: &FrozenMethod, budget_s: u64) -> Report {
        let budget = seconds(budget_s);
        self.driver
            .act_and_observe(kind, method, &no_secrets(), budget)
            .await
    }

    fn annotate(&self, host: &str, name: &str, value: &Value) {
        let change = json!({ "metadata": { "annotations": { name: value } } });
        self.api().patch(&format!("{HOSTS}/{host}"), &change).unwrap();
    }

    fn annotations(&self, name: &str) -> Value {
        let object = self.api().get(&format!("{HOSTS}/{name}")).unwrap();
        object["metadata"]["annotations"].clone()
    }
}

fn settings(kubeconfig: PathBuf) -> ClusterSettings {
    ClusterSettings {
        name: "lab".to_owned(),
        kubeconfig: Some(kubeconfig),
        context: None,
        namespace: "ringfence".to_owned(),
        fenced_storage: Vec::new(),
        gate: "ringfence-gate".to_owned(),
        timeout: Duration::from_secs(10),
        down_after: Duration::from_secs(6),
        ready_for: Duration::from_secs(2),
        volumes: VolumeSettings::default(),
        uses: ClusterUses::default(),
    }
}

fn definition() -> Value {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "baremetalhosts.metal3.io" },
        "spec": {
            "group": "metal3.io", "scope": "Namespaced",
            "names": { "plural": "baremetalhosts", "singular": "baremetalhost", "kind": "BareMetalHost", "listKind": "BareMetalHostList" },
            "versions": [{
                "name": "v1alpha1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": open, "status": open } } },
            }],
        },
    })
}

fn report(api: &KubeApi, name: &str, status: &Value) {
    api.patch(&format!("{HOSTS}/{name}/status"), &json!({ "status": status }))
        .unwrap();
}

/// The operator, which looks at one host until it is dropped.
struct Operator {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Operator {
    /// `slow` is how many looks pass before it acts.
    fn of(plant: &Plant, name: &str, slow: u32) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (plane, name, until) = (Arc::clone(&plant.plane), name.to_owned(), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut differs_for = 0;
            while !until.load(Ordering::Relaxed) {
                let object = plane.api().get(&format!("{HOSTS}/{name}")).unwrap();
                let wanted = wanted(&object);
                differs_for = if object["status"]["poweredOn"] == wanted {
                    0
                } else {
                    differs_for + 1
                };
                if differs_for > slow {
                    report(plane.api(), &name, &json!({ "poweredOn": wanted }));
                }
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

/// Off while a hold is there.
fn wanted(object: &Value) -> bool {
    let annotations = object["metadata"]["annotations"].as_object();
    let is_held = annotations.is_some_and(|all| all.keys().any(|name| name.starts_with("reboot.metal3.io/")));
    !is_held && object["spec"]["online"] == true
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn online() -> Value {
    json!({ "online": true })
}

/// One cluster for all of it: a control plane takes a core for seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bare_metal_host_is_off_when_its_operator_reports_so_after_the_command() {
    let plant = Plant::start();
    a_slow_operator_switches_off_and_on(&plant).await;
    a_host_that_comes_back_on_is_seen(&plant).await;
    an_attempt_that_ran_out_of_time_is_found_by_the_next(&plant).await;
    a_report_from_before_the_command_is_no_proof(&plant).await;
    a_report_after_a_command_of_long_ago_is_no_proof(&plant).await;
    a_host_that_its_operator_would_not_switch_off_is_refused(&plant).await;
    a_report_beside_an_error_is_no_proof(&plant).await;
    a_host_that_does_not_exist_is_refused(&plant).await;
}

async fn a_slow_operator_switches_off_and_on(plant: &Plant) {
    let method = plant.host("slow", &online(), true);
    let _operator = Operator::of(plant, "slow", 20);
    let off = plant.act(FencingKind::PowerOff, &method, 30).await;
    assert_confirmed(&off, ObservedState::Off);
    assert_eq!(plant.annotations("slow")[HOLD], r#"{"mode":"hard"}"#);
    let again = plant.act(FencingKind::PowerOff, &method, 30).await;
    assert_confirmed(&again, ObservedState::Off);

    // Another client's hold stays, and is named.
    plant.annotate("slow", "reboot.metal3.io/other", &json!(""));
    let held = plant.act(FencingKind::PowerOn, &method, 5).await;
    assert_outcome(&held, Outcome::Unknown, "held off by reboot.metal3.io/other");
    assert_eq!(plant.annotations("slow"), json!({ "reboot.metal3.io/other": "" }));
    plant.annotate("slow", "reboot.metal3.io/other", &Value::Null);
    let on = plant.act(FencingKind::PowerOn, &method, 30).await;
    assert_confirmed(&on, ObservedState::On);
}

async fn a_host_that_comes_back_on_is_seen(plant: &Plant) {
    let method = plant.host("returning", &online(), true);
    let operator = Operator::of(plant, "returning", 0);
    let off = plant.act(FencingKind::PowerOff, &method, 30).await;
    assert_confirmed(&off, ObservedState::Off);
    drop(operator);
    report(plant.api(), "returning", &json!({ "poweredOn": true }));
    let seen = plant.driver.observe(&method, &no_secrets(), seconds(5)).await;
    assert_eq!(seen.unwrap().state, ObservedState::On);
}

async fn an_attempt_that_ran_out_of_time_is_found_by_the_next(plant: &Plant) {
    let method = plant.host("late", &online(), true);
    let late = plant.act(FencingKind::PowerOff, &method, 3).await;
    assert_outcome(&late, Outcome::Unknown, "it last read as on");
    report(plant.api(), "late", &json!({ "poweredOn": false }));
    let off = plant.act(FencingKind::PowerOff, &method, 10).await;
    assert_confirmed(&off, ObservedState::Off);
}

async fn a_report_from_before_the_command_is_no_proof(plant: &Plant) {
    let method = plant.host("old", &online(), false);
    let old = plant.act(FencingKind::PowerOff, &method, 4).await;
    assert_outcome(
        &old,
        Outcome::Unknown,
        "was not true when Ringfence's command came",
    );
}

async fn a_report_after_a_command_of_long_ago_is_no_proof(plant: &Plant) {
    let method = plant.host("held", &online(), false);
    plant.annotate("held", HOLD, &json!(r#"{"mode":"hard"}"#));
    plant.annotate("held", "ringfence.io/was-on", &json!("1969-12-31T23:40:00+00:00"));
    let old = plant.act(FencingKind::PowerOff, &method, 4).await;
    assert_outcome(
        &old,
        Outcome::Unknown,
        "was not true when Ringfence's command came",
    );
}

async fn a_host_that_its_operator_would_not_switch_off_is_refused(plant: &Plant) {
    let paused = plant.host("paused", &online(), true);
    plant.annotate("paused", "baremetalhost.metal3.io/paused", &json!(""));
    let refused = plant.act(FencingKind::PowerOff, &paused, 5).await;
    assert_outcome(&refused, Outcome::Refused, "baremetalhost.metal3.io/paused");
    let spec = json!({ "online": true, "disablePowerOff": true });
    let kept_on = plant.host("kept-on", &spec, true);
    let refused = plant.act(FencingKind::PowerOff, &kept_on, 5).await;
    assert_outcome(&refused, Outcome::Refused, "spec.disablePowerOff");
    for name in ["paused", "kept-on"] {
        assert_eq!(plant.annotations(name)[HOLD], Value::Null, "{name}");
    }
}

async fn a_report_beside_an_error_is_no_proof(plant: &Plant) {
    let method = plant.host("faulty", &online(), true);
    let late = plant.act(FencingKind::PowerOff, &method, 3).await;
    assert_eq!(late.outcome, Outcome::Unknown, "{late:?}");
    let failed =
        json!({ "poweredOn": false, "errorType": "power management error", "errorMessage": "no answer" });
    report(plant.api(), "faulty", &failed);
    let unclear = plant.act(FencingKind::PowerOff, &method, 4).await;
    assert_outcome(&unclear, Outcome::Unknown, "power management error: no answer");
}

async fn a_host_that_does_not_exist_is_refused(plant: &Plant) {
    let parameters = [("cluster", "lab"), ("namespace", "metal"), ("host", "none")];
    let method = method("metal3", Resource::Power, &parameters);
    let refused = plant.act(FencingKind::PowerOff, &method, 5).await;
    assert_outcome(&refused, Outcome::Refused, "not found");
}

#[tokio::test]
async fn a_secret_of_the_cluster_is_read_by_its_key_and_what_is_missing_is_named() {
    let plant = Plant::start();
    let api = plant.api();
    api.post(
        "/api/v1/namespaces",
        &json!({ "metadata": { "name": NAMESPACE } }),
    )
    .unwrap();
    // "hunter2"
    let secret =
        json!({ "metadata": { "name": "bmc" }, "data": { "password": "aHVudGVyMg==", "binary": "/w==" } });
    api.post(&format!("/api/v1/namespaces/{NAMESPACE}/secrets"), &secret)
        .unwrap();
    let clusters = [Arc::new(Cluster::new(settings(plant.plane.kubeconfig())))];
    let read = |place: &str| {
        let reference = SecretReference::parse(&format!("secret:{place}")).unwrap();
        let references = BTreeMap::from([("password".to_owned(), reference)]);
        let clusters = clusters.clone();
        async move { Secrets::resolve(&references, &clusters).await }
    };
    let found = read("lab/bmc/password").await.unwrap();
    assert_eq!(found.get("password").unwrap().expose(), "hunter2");
    let missing = format!("cannot be read: there is no Secret bmcs in namespace {NAMESPACE}");
    let no_key = format!("cannot be read: Secret bmc in namespace {NAMESPACE} has no key pasword");
    for (place, why) in [
        ("lab/bmcs/password", missing.as_str()),
        ("lab/bmc/pasword", &no_key),
        ("lab/bmc/binary", "is not UTF-8 text"),
        (
            "east/bmc/password",
            "is of a cluster that the worker's kubernetes.clusters does not name",
        ),
    ] {
        let error = read(place).await.unwrap_err();
        assert!(matches!(error, WorkerError::Secret { .. }), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!("secret \"password\" from secret:{place} {why}")
        );
    }
    // An API server that is away may answer the next attempt.
    let away = ClusterSettings {
        timeout: Duration::from_millis(1),
        ..settings(plant.plane.kubeconfig())
    };
    let reference = SecretReference::parse("secret:lab/bmc/password").unwrap();
    let references = BTreeMap::from([("password".to_owned(), reference)]);
    let late = Secrets::resolve(&references, &[Arc::new(Cluster::new(away))])
        .await
        .unwrap_err();
    assert!(matches!(late, WorkerError::Unclear { .. }), "{late:?}");
}

/// Carries out a step on the node n1, as a worker that may move everything.
async fn carry_out(cluster: &Cluster, step: &WorkloadStep, budget_ms: u64) -> StepReport {
    let at = PlatformHost {
        backend: Backend::Kubernetes,
        platform: "lab".to_owned(),
        host: "n1".to_owned(),
        zone: "z1".to_owned(),
    };
    let order = StepOrder {
        step,
        at: &at,
        movable: Movable::All,
        generation: Generation(1),
        unanswered: &Unanswered::default(),
    };
    cluster.carry_out(order, Duration::from_millis(budget_ms)).await
}
