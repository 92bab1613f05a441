//! What the doctor says of a real cluster whose objects are defined in other ways than this version needs, that has other programs, and
//! whose webhooks were changed; and that a record which the cluster drops counts as not written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ringfence_backends::kubernetes::{Cluster, ClusterSettings, ClusterUses, GateNames, Lead, NodeFences};
use ringfence_backends::{Platform, Preflight, Records, Writer, WrittenRecord};
use ringfence_lab::{Authority, ControlPlane, KubeApi};
use ringfence_tests::{eventually, now};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::adopting::{attach_volume, make_node};
use super::leaders::Replica;
use super::node_fence::FENCES;
use super::plant::{CLUSTER, GATE, NAMESPACE, control_plane, define_some, settings};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const DEFINE: &str = "ringfence kubernetes crds | kubectl apply -f -";
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster without nodes, as the doctor reaches it.
struct Patient {
    plane: ControlPlane,
    cluster: Arc<Cluster>,
}

impl Patient {
    fn start() -> Self {
        let plane = block_in_place(control_plane);
        let cluster = Arc::new(Cluster::new(ClusterSettings {
            uses: ClusterUses {
                has_operator: true,
                has_records: true,
            },
            ..settings(plane.kubeconfig())
        }));
        Self { plane, cluster }
    }

    fn api(&self) -> &KubeApi {
        self.plane.api()
    }

    /// All findings, each as one line that says what is wrong and what to do.
    async fn examined(&self) -> Vec<String> {
        let found = self.cluster.preflight(now()).await;
        let told = found.into_iter().map(|found| match found {
            Preflight::Good(told) => format!("good: {told}"),
            Preflight::Warning(told, remedy) => format!("warning: {told} -> {remedy}"),
            Preflight::Failure(told, remedy) => format!("failure: {told} -> {remedy}"),
        });
        told.collect()
    }

    /// The API server takes a change in within moments.
    async fn until_told(&self, part: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let examined = self.examined().await;
            if examined.iter().any(|line| line.contains(part)) {
                return;
            }
            assert!(Instant::now() < deadline, "{part}: {examined:#?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn records(&self) -> NodeFences {
        let lead = Lead::new(Arc::clone(&self.cluster), "doctor".to_owned(), now);
        NodeFences::of(Arc::clone(&self.cluster), Arc::new(lead))
    }

    fn define(&self, definition: &Value) {
        block_in_place(|| self.api().post(DEFINITIONS, definition).unwrap());
    }

    fn undefine(&self, name: &str) {
        let path = format!("{DEFINITIONS}/{name}");
        block_in_place(|| {
            self.api().delete(&path, &json!({})).unwrap();
            self.api()
                .until("the definition gone", &path, PATIENCE, Value::is_null)
                .unwrap();
        });
    }
}

/// The definition of NodeFences, as it is shipped.
fn node_fences() -> Value {
    let all = ringfence_operator::definitions();
    let first = all.split("---\n").next().unwrap();
    serde_saphyr::from_str(first).unwrap()
}

fn written() -> WrittenRecord {
    let record = json!({
        "writtenAt": "2026-11-26T12:00:00Z",
        "host": { "host_id": "5b0ad1f2-6a0e-4f0c-9e57-1d2a3b4c5d6e", "generation": 3 },
    });
    serde_json::from_value(record).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn definitions_of_another_version_are_told_and_a_record_that_is_dropped_is_not_written() {
    let patient = Patient::start();
    let records = patient.records();
    let none = format!("failure: lab: NodeFence objects are not defined -> {DEFINE}");
    let examined = patient.examined().await;
    assert!(examined.contains(&none), "{examined:#?}");
    let release = examined
        .iter()
        .find(|line| line.contains(": Kubernetes v1.20"))
        .unwrap();
    assert!(
        release.contains("does not act on the out-of-service taint"),
        "{release}"
    );
    let refused = records.take_over().await.unwrap_err().to_string();
    assert!(
        refused.contains("no NodeFence objects of version v1alpha1") && refused.ends_with(DEFINE),
        "{refused}"
    );
    a_standalone_that_keeps_its_records_there_says_so(&patient).await;

    let mut renamed = node_fences();
    renamed["spec"]["versions"][0]["name"] = json!("v1beta1");
    patient.define(&renamed);
    patient
        .until_told("are defined as ringfence.io/v1beta1 alone, and this version uses ringfence.io/v1alpha1")
        .await;
    assert!(records.take_over().await.is_err());
    patient.undefine("nodefences.ringfence.io");

    // What an older version has installed: everything but the record.
    let mut older = node_fences();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/status/properties";
    let status = older.pointer_mut(schema).unwrap().as_object_mut().unwrap();
    status.remove("record").unwrap();
    patient.define(&older);
    block_in_place(|| {
        let is_served = |list: &Value| list["items"].is_array();
        patient
            .api()
            .until("NodeFences served", FENCES, PATIENCE, is_served)
            .unwrap();
    });
    let error = records.write("n1", &written()).await.unwrap_err().to_string();
    assert!(error.contains("has dropped the record of n1"), "{error}");
    assert!(error.ends_with(DEFINE), "{error}");
    // Not by a second try either, which finds the object.
    assert!(records.write("n1", &written()).await.is_err());
    assert!(records.writer("n1").await.is_err());
    assert!(records.take_over().await.unwrap().is_empty());

    // With all others defined, that alone is left.
    block_in_place(|| define_others(patient.api()));
    patient
        .until_told("the cluster drops the field status.record")
        .await;
    let shipped = json!({ "spec": { "versions": node_fences()["spec"]["versions"] } });
    let path = format!("{DEFINITIONS}/nodefences.ringfence.io");
    block_in_place(|| patient.api().patch(&path, &shipped).unwrap());
    patient
        .until_told("NodeFence and RingfenceRemediation objects are defined as this version needs them")
        .await;
    eventually(async || {
        records
            .write("n1", &written())
            .await
            .is_ok_and(|writer| writer == Writer::Own)
    })
    .await;
    let kept = records.take_over().await.unwrap();
    assert_eq!(kept, [("n1".to_owned(), written())]);

    other_programs_are_told(&patient).await;
    webhooks_that_were_changed_or_cannot_be_asked_are_told(&patient).await;
}

/// All of Ringfence's definitions but that of NodeFences.
fn define_others(api: &KubeApi) {
    let all = ringfence_operator::definitions();
    let others: Vec<&str> = all.split("---\n").skip(1).collect();
    define_some(api, &others.join("---\n"));
}

async fn a_standalone_that_keeps_its_records_there_says_so(patient: &Patient) {
    let Replica {
        mut service,
        machine: _kept,
    } = Replica::start("alone", &patient.plane);
    service
        .until_says(&["has no NodeFence objects of version v1alpha1", DEFINE])
        .await;
    assert!(!service.until_it_ends().await.success());
}

async fn other_programs_are_told(patient: &Patient) {
    let acts = "may act on a silent node by itself";
    let examined = patient.examined().await;
    assert!(examined.iter().all(|line| !line.contains(acts)), "{examined:#?}");
    let anything =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    patient.define(&json!({
        "metadata": { "name": "nodehealthchecks.remediation.medik8s.io" },
        "spec": {
            "group": "remediation.medik8s.io", "scope": "Cluster",
            "names": { "kind": "NodeHealthCheck", "plural": "nodehealthchecks", "singular": "nodehealthcheck" },
            "versions": [{ "name": "v1alpha1", "served": true, "storage": true, "schema": anything }],
        },
    }));
    patient
        .until_told(&format!(
            "warning: lab: the Node Health Check operator is installed, and {acts} -> let one program alone act on a silent node"
        ))
        .await;
}

async fn webhooks_that_were_changed_or_cannot_be_asked_are_told(patient: &Patient) {
    let forced = "nothing keeps the cluster from detaching the volumes of a node by force";
    let examined = patient.examined().await;
    for told in ["no webhook ringfence is installed", forced] {
        assert!(
            examined.iter().any(|line| line.contains(told)),
            "{told}: {examined:#?}"
        );
    }
    block_in_place(|| {
        make_node(patient.api(), "n1");
        attach_volume(patient.api(), "n1");
    });
    let names = GateNames {
        cluster: CLUSTER.to_owned(),
        namespace: NAMESPACE.to_owned(),
        gate: GATE.to_owned(),
        account: "admin".to_owned(),
    };
    // Nothing listens there.
    let authority = BASE64_STANDARD.encode(Authority::new().unwrap().certificate());
    let webhooks = names.webhooks("https://127.0.0.1:9", &authority).unwrap();
    let mut webhooks: Value = serde_saphyr::from_str(&webhooks).unwrap();
    block_in_place(|| patient.api().post(WEBHOOKS, &webhooks).unwrap());
    patient
        .until_told("warning: lab: the webhook volumeattachments.ringfence.io was not reached")
        .await;
    let examined = patient.examined().await;
    let sound = examined
        .iter()
        .find(|line| line.contains("installed and unchanged"))
        .unwrap();
    assert!(
        sound.contains("evictions.ringfence.io"),
        "as the API server has filled it in: {sound}"
    );
    assert!(
        examined.iter().all(|line| !line.contains(forced)),
        "{examined:#?}"
    );
    let held = examined
        .iter()
        .find(|line| line.contains("confirmations.ringfence.io was not reached"))
        .unwrap();
    assert!(
        held.contains("in NodeFence n1") && held.contains("--ca-file"),
        "{held}"
    );

    let all = webhooks["webhooks"].as_array_mut().unwrap();
    all[0]["failurePolicy"] = json!("Ignore");
    all[3]["rules"][0]["operations"] = json!(["UPDATE"]);
    all.remove(1);
    let change = json!({ "webhooks": all });
    block_in_place(|| {
        patient
            .api()
            .patch(&format!("{WEBHOOKS}/ringfence"), &change)
            .unwrap()
    });
    for told in [
        "the webhook pods.ringfence.io was changed, and may hold less: its failurePolicy differs",
        "the webhook nodes.ringfence.io is not installed, and holds nothing",
        "the webhook evictions.ringfence.io was changed, and may hold less: its rules differs",
    ] {
        let examined = patient.examined().await;
        assert!(
            examined.iter().any(|line| line.starts_with(&format!(
                "warning: lab: {told} -> ringfence kubernetes webhooks lab"
            ))),
            "{told}: {examined:#?}"
        );
    }
}
