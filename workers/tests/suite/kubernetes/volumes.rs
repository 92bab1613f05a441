//! Pods that are moved only with healthy volumes, in a real cluster. No StorageOS can be had: its API is a stand-in that answers as the
//! clients of the real one read it. Longhorn is the objects that it keeps in the cluster, written by the test.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ringfence_backends::kubernetes::{Cluster, ClusterSettings, VolumeSettings};
use ringfence_backends::{Platform, Preflight};
use ringfence_core::{
    EvacuationPolicy, MoveStep, Outcome, Timestamp, Wanted, Workload, WorkloadState, WorkloadStep,
};
use ringfence_lab::{ControlPlane, ControlPlaneOptions, KubeApi, KubernetesPrograms, LabError};
use serde_json::{Value, json};

use super::{carry_out, settings};
use crate::http::{Answer, Asked, Server};
use crate::seconds;

const CORE: &str = "/api/v1";
const PODS: &str = "/api/v1/namespaces/default/pods";
const LONGHORN: &str = "/apis/longhorn.io/v1beta2/namespaces/longhorn-system";
const PATIENCE: Duration = Duration::from_secs(60);
const PASSWORD: &str = "hunter2";

/// StorageOS, as far as it is asked.
struct StorageOs {
    /// The node that has the master of every volume, and the master's health.
    master: Mutex<(&'static str, &'static str)>,
    /// The only token that counts.
    token: Mutex<&'static str>,
}

impl StorageOs {
    fn answer(&self, asked: &Asked) -> Answer {
        if asked.line() == "POST /v2/auth/login" {
            let wanted = json!({ "username": "storageos", "password": PASSWORD });
            return match asked.body == wanted {
                true => Answer::new(200, json!({ "id": "u1" })).header("Authorization", *self.token.lock()),
                false => Answer::new(401, json!({ "error": format!("not {}", asked.body) })),
            };
        }
        if asked.header("authorization") != Some(*self.token.lock()) {
            return Answer::new(401, json!({ "error": "unauthenticated" }));
        }
        let (node, health) = *self.master.lock();
        let body = match asked.line().as_str() {
            "GET /v2/nodes" => json!([
                { "id": "id-1", "name": "n1", "health": "offline" }, { "id": "id-2", "name": "n2", "health": "online" },
            ]),
            "GET /v2/namespaces" => {
                json!([{ "id": "ns-0", "name": "other" }, { "id": "ns-1", "name": "default" }])
            }
            "GET /v2/namespaces/ns-1/volumes" => json!([{
                "id": "v1", "name": "pv-storageos", "namespaceID": "ns-1", "replicas": [],
                "master": { "id": "d1", "nodeID": node, "health": health, "promotable": true },
            }]),
            _ => return Answer::new(404, json!({ "error": "not found" })),
        };
        Answer::new(200, body)
    }
}

/// A cluster with a node that is gone, and pods of which each has one volume.
struct Plant {
    plane: ControlPlane,
    cluster: Cluster,
    storageos: Arc<StorageOs>,
}

impl Plant {
    async fn start() -> (Self, Server) {
        let programs = KubernetesPrograms::from_environment().expect(
            "RINGFENCE_TEST_KUBERNETES is not set; run this through `cargo xtask test` or `cargo xtask lab`",
        );
        let plane = ControlPlane::start(&programs, ControlPlaneOptions::default()).unwrap();
        let storageos = Arc::new(StorageOs {
            master: Mutex::new(("id-1", "offline")),
            token: Mutex::new("Bearer one"),
        });
        let answering = Arc::clone(&storageos);
        let server = Server::start(move |asked| answering.answer(asked)).await;
        let cluster = Cluster::new(polling(plane.kubeconfig()));
        let plant = Self {
            plane,
            cluster,
            storageos,
        };
        for namespace in ["ringfence", "longhorn-system"] {
            plant.make("namespaces", &json!({ "metadata": { "name": namespace } }));
        }
        plant.make("nodes", &json!({ "metadata": { "name": "n1" } }));
        for (storage, driver) in [
            ("storageos", "csi.storageos.com"),
            ("longhorn", "driver.longhorn.io"),
            ("other", "other.csi"),
        ] {
            plant.volume(storage, driver);
        }
        (plant, server)
    }

    fn api(&self) -> &KubeApi {
        self.plane.api()
    }

    fn make(&self, place: &str, object: &Value) {
        self.api().post(&format!("{CORE}/{place}"), object).unwrap();
    }

    /// A volume, and its claim.
    fn volume(&self, storage: &str, driver: &str) {
        let common = json!({ "accessModes": ["ReadWriteMany"], "storageClassName": "none" });
        let (mut volume, mut claim) = (common.clone(), common);
        volume["capacity"] = json!({ "storage": "1Gi" });
        volume["csi"] = json!({ "driver": driver, "volumeHandle": format!("handle-{storage}") });
        volume["claimRef"] = json!({ "namespace": "default", "name": storage });
        claim["resources"] = json!({ "requests": { "storage": "1Gi" } });
        claim["volumeName"] = json!(format!("pv-{storage}"));
        let named = |name: &str, spec: &Value| json!({ "metadata": { "name": name }, "spec": spec });
        self.make("persistentvolumes", &named(&format!("pv-{storage}"), &volume));
        self.make(
            "namespaces/default/persistentvolumeclaims",
            &named(storage, &claim),
        );
    }

    /// A pod on the node with a volume of this storage.
    fn pod(&self, name: &str, storage: &str, label: &str) -> WorkloadStep {
        let pod = json!({
            "metadata": { "name": name, "labels": { "storageos.com/fenced": label } },
            "spec": {
                "nodeName": "n1",
                "containers": [{ "name": "main", "image": "none" }],
                "volumes": [
                    { "name": "own", "persistentVolumeClaim": { "claimName": storage } }, { "name": "scratch", "emptyDir": {} },
                ],
            },
        });
        let made = self.api().post(PODS, &pod).unwrap();
        WorkloadStep::Move(Box::new(MoveStep {
            workload: Workload {
                id: made["metadata"]["uid"].as_str().unwrap().to_owned(),
                name: format!("default/{name}"),
                owner: None,
                state: WorkloadState::Running,
                metadata: Default::default(),
            },
            cut_off_by: Vec::new(),
            given_up: None,
            only_look: false,
            disruption_budgets: false,
        }))
    }

    /// The step ends at once, since there is no time for a second look.
    async fn stays(&self, step: &WorkloadStep, why: &str) {
        let report = carry_out(&self.cluster, step, 1_400).await;
        assert_eq!(report.outcome, Outcome::Unknown, "{report:?}");
        assert!(report.detail.starts_with("it stays: volume pv-"), "{report:?}");
        assert!(report.detail.contains(why), "{report:?}");
        assert!(!report.detail.contains(PASSWORD), "{report:?}");
        assert!(self.is_there(step), "{why}");
    }

    async fn goes(&self, step: &WorkloadStep) {
        let report = carry_out(&self.cluster, step, 5_000).await;
        assert_eq!(report.outcome, Outcome::Confirmed, "{report:?}");
        assert!(!self.is_there(step));
    }

    fn is_there(&self, step: &WorkloadStep) -> bool {
        let WorkloadStep::Move(step) = step else {
            return false;
        };
        let (_, name) = step.workload.name.split_once('/').unwrap();
        self.api().find(&format!("{PODS}/{name}")).unwrap().is_some()
    }

    /// How StorageOS is reached, in place of what was said before.
    fn tell(&self, url: &str, password: &str) {
        let secrets = "namespaces/ringfence/secrets";
        let _ = self
            .api()
            .delete(&format!("{CORE}/{secrets}/storageos"), &json!({}));
        let said = json!({ "url": url, "username": "storageos", "password": password });
        self.make(
            secrets,
            &json!({ "metadata": { "name": "storageos" }, "stringData": said }),
        );
    }

    async fn doctor_says(&self, words: &str) {
        let found = self.cluster.preflight(Timestamp::UNIX_EPOCH).await;
        let told = |one: &Preflight| match one {
            Preflight::Good(told) => told.clone(),
            Preflight::Warning(told, todo) | Preflight::Failure(told, todo) => format!("{told}; {todo}"),
        };
        assert!(
            found.iter().any(|one| told(one).contains(words)),
            "{words}: {found:?}"
        );
    }
}

fn polling(kubeconfig: PathBuf) -> ClusterSettings {
    ClusterSettings {
        volumes: VolumeSettings {
            poll: seconds(1),
            ..VolumeSettings::default()
        },
        ..settings(kubeconfig)
    }
}

/// One cluster for all of it: a control plane takes a core for seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_has_opted_in_is_moved_only_with_healthy_volumes() {
    let (plant, server) = Plant::start().await;
    a_storage_that_cannot_be_asked_is_not_healthy(&plant, &server).await;
    storageos_has_to_have_the_master_online_elsewhere(&plant).await;
    a_login_that_has_ended_is_made_anew(&plant).await;
    longhorn_has_to_have_a_healthy_replica_elsewhere(&plant).await;
    a_pod_that_has_not_opted_in_is_moved_by_what_is_proven(&plant).await;
    a_node_with_a_pod_that_stays_is_not_taken_out_of_service(&plant).await;
}

async fn a_storage_that_cannot_be_asked_is_not_healthy(plant: &Plant, server: &Server) {
    plant
        .doctor_says("pods with the label storageos.com/fenced=true and a volume stay on a FENCED node")
        .await;
    let other = plant.pod("on-other", "other", "true");
    let of_other = "is of CSI driver other.csi, which cannot be asked whether it is healthy";
    plant.stays(&other, of_other).await;
    let longhorn = plant.pod("no-longhorn", "longhorn", "true");
    plant
        .stays(
            &longhorn,
            "is not known to be healthy: the API server of cluster lab: ",
        )
        .await;
    let storageos = plant.pod("no-storageos", "storageos", "true");
    let unsaid = "there is no Secret storageos in namespace ringfence that says how StorageOS is reached";
    plant.stays(&storageos, unsaid).await;
    for (url, password, why) in [
        (
            "storageos:5705",
            PASSWORD,
            "url of the Secret is not scheme, host and port alone",
        ),
        (
            "http://127.0.0.1:1",
            PASSWORD,
            "StorageOS at http://127.0.0.1:1/ does not answer",
        ),
        (
            server.address.as_str(),
            "wr0ng",
            "does not take username and password of the Secret storageos: HTTP 401",
        ),
    ] {
        plant.tell(url, password);
        plant.stays(&storageos, why).await;
        plant.doctor_says(why).await;
    }
    plant.tell(&server.address, PASSWORD);
    plant
        .doctor_says("with 2 nodes, is asked for the masters of volumes")
        .await;
}

async fn storageos_has_to_have_the_master_online_elsewhere(plant: &Plant) {
    let step = plant.pod("on-storageos", "storageos", "true");
    plant
        .stays(&step, "has a master that is offline, says StorageOS")
        .await;
    // Its nodes have not missed the dead one yet.
    *plant.storageos.master.lock() = ("id-1", "online");
    plant
        .stays(&step, "still has its master on n1, says StorageOS")
        .await;
    *plant.storageos.master.lock() = ("id-9", "online");
    plant
        .stays(&step, "has its master on a node that StorageOS does not name")
        .await;
    let healing = async {
        tokio::time::sleep(seconds(2)).await;
        *plant.storageos.master.lock() = ("id-2", "online");
    };
    let ((), ()) = tokio::join!(plant.goes(&step), healing);
}

async fn a_login_that_has_ended_is_made_anew(plant: &Plant) {
    let step = plant.pod("logged-out", "storageos", "true");
    *plant.storageos.token.lock() = "Bearer two";
    plant.stays(&step, "answers HTTP 401").await;
    plant.goes(&step).await;
}

async fn longhorn_has_to_have_a_healthy_replica_elsewhere(plant: &Plant) {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (kind, plural) in [("Volume", "volumes"), ("Replica", "replicas")] {
        plant.api().post(definitions, &definition(kind, plural)).unwrap();
        let path = format!("{LONGHORN}/{plural}");
        plant
            .api()
            .until(plural, &path, PATIENCE, |list| list["items"].is_array())
            .unwrap();
    }
    plant
        .doctor_says("Longhorn is asked for the replicas of volumes")
        .await;
    let step = plant.pod("on-longhorn", "longhorn", "true");
    plant
        .stays(&step, "is not known to Longhorn as handle-longhorn")
        .await;
    let make = |plural: &str, name: &str, spec: Value, status: Value| {
        let labels = json!({ "longhornvolume": "handle-longhorn" });
        let object = json!({
            "apiVersion": "longhorn.io/v1beta2", "kind": if plural == "volumes" { "Volume" } else { "Replica" },
            "metadata": { "name": name, "labels": labels }, "spec": spec,
        });
        plant
            .api()
            .post(&format!("{LONGHORN}/{plural}"), &object)
            .unwrap();
        let path = format!("{LONGHORN}/{plural}/{name}/status");
        plant.api().patch(&path, &json!({ "status": status })).unwrap();
    };
    // So Longhorn calls a volume whose engine it does not see any more.
    make(
        "volumes",
        "handle-longhorn",
        json!({ "nodeID": "n1" }),
        json!({ "robustness": "unknown", "state": "attached" }),
    );
    let replica = |name: &str, node: &str, failed_at: &str, state: &str| {
        let healthy_at = "2026-01-01T00:00:00Z";
        let mut spec = json!({ "volumeName": "handle-longhorn", "nodeID": node, "healthyAt": healthy_at });
        if !failed_at.is_empty() {
            spec["failedAt"] = json!(failed_at);
        }
        make("replicas", name, spec, json!({ "currentState": state }));
    };
    replica("here", "n1", "", "running");
    replica("failed", "n2", "2026-01-02T00:00:00Z", "stopped");
    replica("lost", "n3", "", "unknown");
    plant
        .stays(&step, "has no healthy replica outside n1, says Longhorn")
        .await;
    replica("whole", "n2", "", "running");
    plant.goes(&step).await;
}

/// With the properties that are read, of the types that Longhorn gives them.
fn definition(kind: &str, plural: &str) -> Value {
    let text = json!({ "type": "string" });
    let spec = ["nodeID", "volumeName", "failedAt", "healthyAt"].map(|name| (name.to_owned(), text.clone()));
    let status = ["robustness", "state", "currentState"].map(|name| (name.to_owned(), text.clone()));
    let object = |properties: Vec<(String, Value)>| {
        let properties: serde_json::Map<_, _> = properties.into_iter().collect();
        json!({ "type": "object", "properties": properties })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.longhorn.io") },
        "spec": {
            "group": "longhorn.io", "scope": "Namespaced",
            "names": { "plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List") },
            "versions": [{
                "name": "v1beta2", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "properties": { "spec": object(spec.into()), "status": object(status.into()) },
                } },
            }],
        },
    })
}

async fn a_pod_that_has_not_opted_in_is_moved_by_what_is_proven(plant: &Plant) {
    *plant.storageos.master.lock() = ("id-1", "offline");
    let step = plant.pod("not-opted-in", "storageos", "false");
    plant.goes(&step).await;
}

/// The cluster would remove the pod with all others.
async fn a_node_with_a_pod_that_stays_is_not_taken_out_of_service(plant: &Plant) {
    for name in ["on-other", "no-longhorn", "no-storageos"] {
        let at_once = json!({ "gracePeriodSeconds": 0 });
        plant.api().delete(&format!("{PODS}/{name}"), &at_once).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let newer = newer(plant.api().clone()).await;
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, kubeconfig(&newer.address)).unwrap();
    let cluster = Cluster::new(polling(file));
    let is_out_of_service = || {
        let node = plant.api().get(&format!("{CORE}/nodes/n1")).unwrap();
        node["spec"]["taints"]
            .to_string()
            .contains("node.kubernetes.io/out-of-service")
    };
    plant.pod("stays", "storageos", "true");
    let all = EvacuationPolicy::default();
    let opted_in = EvacuationPolicy {
        workloads: Wanted::OptedIn,
        ..EvacuationPolicy::default()
    };
    let by_budgets = EvacuationPolicy {
        disruption_budgets: true,
        ..EvacuationPolicy::default()
    };
    for (master, policy, is_out) in [
        ("id-1", Some(&all), false),
        ("id-2", Some(&by_budgets), false),
        ("id-2", None, false),
        ("id-2", Some(&opted_in), false),
        ("id-2", Some(&all), true),
    ] {
        *plant.storageos.master.lock() = (master, "online");
        let evacuation = policy.cloned().map(Box::new);
        let report = carry_out(&cluster, &WorkloadStep::MarkDown { evacuation }, 5_000).await;
        assert_eq!(report.outcome, Outcome::Confirmed, "{report:?}");
        assert_eq!(is_out_of_service(), is_out, "{policy:?}: {report:?}");
    }
}

/// The API server as one of a release that acts on the taint: it tells another release, and is the one of the lab else.
async fn newer(api: KubeApi) -> Server {
    Server::start(move |asked| {
        let (path, body) = (&asked.path, &asked.body);
        let answer = match asked.method.as_str() {
            "GET" => api.get(path),
            "POST" => api.post(path, body),
            "PATCH" => api.patch(path, body),
            other => panic!("{other} {path} was not expected"),
        };
        match answer {
            Ok(mut version) if path == "/version" => {
                version["minor"] = json!("28");
                Answer::new(200, version)
            }
            Ok(found) => Answer::new(200, found),
            Err(LabError::Refused { status, body, .. }) => Answer {
                body,
                ..Answer::empty(status)
            },
            Err(error) => panic!("{error}"),
        }
    })
    .await
}

fn kubeconfig(server: &str) -> String {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "lab",
        "clusters": [{ "name": "lab", "cluster": { "server": server } }],
        "contexts": [{ "name": "lab", "context": { "cluster": "lab", "user": "lab" } }],
        "users": [{ "name": "lab", "user": {} }],
    })
    .to_string()
}
