//! Pods that go as the disruption budgets of a real cluster allow. No kubelet runs: the test writes the state of pods, as kubelets do.

use std::time::Duration;

use ringfence_backends::StepReport;
use ringfence_backends::kubernetes::Cluster;
use ringfence_core::{EvacuationPolicy, MoveStep, Outcome, Workload, WorkloadState, WorkloadStep};
use ringfence_lab::{ControlPlane, ControlPlaneOptions, KubernetesPrograms};
use serde_json::{Value, json};

use super::{carry_out, settings};

const NODE: &str = "/api/v1/nodes/n1";
const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets";
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster with a node that is gone, and another one.
struct Plant {
    plane: ControlPlane,
    cluster: Cluster,
}

impl Plant {
    fn start() -> Self {
        let programs = KubernetesPrograms::from_environment().expect(
            "RINGFENCE_TEST_KUBERNETES is not set; run this through `cargo xtask test` or `cargo xtask lab`",
        );
        let plane = ControlPlane::start(&programs, ControlPlaneOptions::default()).unwrap();
        let cluster = Cluster::new(settings(plane.kubeconfig()));
        let plant = Self { plane, cluster };
        plant.make(
            "/api/v1/namespaces",
            &json!({ "metadata": { "name": "ringfence" } }),
        );
        for name in ["n1", "n2"] {
            plant.make("/api/v1/nodes", &json!({ "metadata": { "name": name } }));
        }
        plant
    }

    fn make(&self, place: &str, object: &Value) -> Value {
        self.plane.api().post(place, object).unwrap()
    }

    fn get(&self, path: &str) -> Value {
        self.plane.api().get(path).unwrap()
    }

    /// A pod of an application that has run, and whether it is healthy.
    fn pod(&self, name: &str, app: &str, node: &str, is_ready: bool) -> MoveStep {
        let pod = json!({
            "metadata": { "name": name, "labels": { "app": app } },
            "spec": { "nodeName": node, "containers": [{ "name": "main", "image": "none" }] },
        });
        let made = self.make(PODS, &pod);
        let ready = if is_ready { "True" } else { "False" };
        let status =
            json!({ "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] } });
        let path = format!("{PODS}/{name}/status");
        self.plane.api().patch(&path, &status).unwrap();
        MoveStep {
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
            disruption_budgets: true,
        }
    }

    /// So many pods of the application have to be healthy. Returns when the cluster has counted them.
    fn budget(&self, name: &str, app: &str, min: u32, healthy: u32) {
        let selector = json!({ "matchLabels": { "app": app } });
        let budget =
            json!({ "metadata": { "name": name }, "spec": { "minAvailable": min, "selector": selector } });
        self.make(BUDGETS, &budget);
        self.until_healthy(name, healthy);
    }

    fn until_healthy(&self, budget: &str, healthy: u32) {
        let path = format!("{BUDGETS}/{budget}");
        let is_counted = |budget: &Value| {
            budget["status"]["observedGeneration"] == 1 && budget["status"]["currentHealthy"] == healthy
        };
        self.plane
            .api()
            .until("the budget counted", &path, PATIENCE, is_counted)
            .unwrap();
    }

    async fn carry_out(&self, step: &WorkloadStep, budget_ms: u64) -> StepReport {
        carry_out(&self.cluster, step, budget_ms).await
    }

    async fn does(&self, step: &WorkloadStep) {
        let report = self.carry_out(step, 5_000).await;
        assert_eq!(report.outcome, Outcome::Confirmed, "{report:?}");
    }

    async fn mark_down(&self, disruption_budgets: bool) {
        let evacuation = EvacuationPolicy {
            disruption_budgets,
            ..EvacuationPolicy::default()
        };
        let evacuation = Some(Box::new(evacuation));
        self.does(&WorkloadStep::MarkDown { evacuation }).await;
    }

    /// The step ends at once, since there is no time for a second try.
    async fn stays(&self, step: &MoveStep, why: &str) {
        let moving = WorkloadStep::Move(Box::new(step.clone()));
        let report = self.carry_out(&moving, 1_400).await;
        assert_eq!(
            (report.outcome, report.finding),
            (Outcome::Unknown, None),
            "{}",
            report.detail
        );
        assert_eq!(report.detail, format!("it stays: {why}"));
        let pod = self.get(&path_of(step));
        assert!(pod["metadata"]["deletionTimestamp"].is_null(), "{pod}");
    }

    async fn goes(&self, step: &MoveStep) {
        self.does(&WorkloadStep::Move(Box::new(step.clone()))).await;
        assert!(self.plane.api().find(&path_of(step)).unwrap().is_none());
    }

    /// The effect of Ringfence's taint.
    fn effect(&self) -> Value {
        let node = self.get(NODE);
        let mut taints = node["spec"]["taints"].as_array().unwrap().iter();
        let taint = taints.find(|taint| taint["key"] == "ringfence.io/fenced");
        taint.unwrap()["effect"].clone()
    }

    fn call_node(&self, ready: &str) {
        let status = json!({ "status": { "conditions": [{ "type": "Ready", "status": ready }] } });
        self.plane
            .api()
            .patch(&format!("{NODE}/status"), &status)
            .unwrap();
    }
}

fn path_of(step: &MoveStep) -> String {
    let (_, name) = step.workload.name.split_once('/').unwrap();
    format!("{PODS}/{name}")
}

/// One cluster for all of it: a control plane takes a core for seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_of_a_fenced_node_go_as_disruption_budgets_allow_where_that_is_asked() {
    let plant = Plant::start();
    let enough = plant.pod("enough", "web", "n1", false);
    plant.pod("enough-elsewhere", "web", "n2", true);
    plant.budget("web", "web", 1, 1);
    let needed = plant.pod("needed", "db", "n1", false);
    plant.budget("db", "db", 1, 0);
    let twice = plant.pod("twice", "two", "n1", false);
    plant.budget("first", "two", 1, 0);
    plant.budget("second", "two", 1, 0);
    let free = plant.pod("free", "free", "n1", false);

    plant.does(&WorkloadStep::Isolate { one_by_one: true }).await;
    plant.call_node("Unknown");
    plant.stays(&free, "the gate of its node is closed").await;
    plant.does(&WorkloadStep::MarkDown { evacuation: None }).await;
    plant.mark_down(true).await;
    assert_eq!(plant.effect(), "NoSchedule");
    for heard in ["True", "False"] {
        plant.call_node(heard);
        plant
            .stays(&free, "the condition Ready of its node is not Unknown")
            .await;
    }
    plant.call_node("Unknown");
    plant.goes(&free).await;
    plant.goes(&enough).await;
    let needs = "The disruption budget db needs 1 healthy pods and has 0 currently";
    plant.stays(&needed, needs).await;
    let several = "more than one PodDisruptionBudget selects it, and the API server evicts no such pod; let one budget alone select it";
    plant.stays(&twice, several).await;
    a_budget_that_allows_it_later_lets_it_go_later(&plant, &needed).await;
    what_is_being_deleted_and_what_asks_for_no_budget_goes(&plant, &twice).await;
}

async fn a_budget_that_allows_it_later_lets_it_go_later(plant: &Plant, needed: &MoveStep) {
    plant.pod("needed-elsewhere", "db", "n2", true);
    plant.until_healthy("db", 1);
    plant.goes(needed).await;
}

async fn what_is_being_deleted_and_what_asks_for_no_budget_goes(plant: &Plant, twice: &MoveStep) {
    plant.does(&WorkloadStep::Empty).await;
    assert_eq!(plant.effect(), "NoSchedule", "a pod has yet to go");
    let other = plant.pod("other", "two", "n1", false);
    plant.plane.api().delete(&path_of(twice), &json!({})).unwrap();
    plant.goes(twice).await;
    plant
        .goes(&MoveStep {
            disruption_budgets: false,
            ..other
        })
        .await;
    plant.does(&WorkloadStep::Empty).await;
    assert_eq!(plant.effect(), "NoExecute", "nothing is left to go");
    let late = plant.pod("late", "two", "n1", false);
    let is_deleted = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
    let path = path_of(&late);
    plant
        .plane
        .api()
        .until("the cluster deletes it", &path, PATIENCE, is_deleted)
        .unwrap();
}
