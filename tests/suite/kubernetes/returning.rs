//! A node that comes back by itself: after the taint, without a way to the API server, before anyone has acted, or without having been away.
//! What the API server was told is compared in the API server's own order.

use std::time::Duration;

use ringfence_lab::{ContainerRun, IpmiFault, Kubelet, running_twice};
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{GATE, NAMESPACE, PODS, Plant};

const PATIENCE: Duration = Duration::from_secs(90);
const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";

/// One member, its node, and what the API server is told from now on.
struct Story<'a> {
    plant: &'a Plant,
    node: &'a Kubelet,
    pod: Value,
    after: String,
}

impl<'a> Story<'a> {
    fn begin(plant: &'a Plant) -> Self {
        let pod = plant.until_running("db-0", |_| true);
        let list = block_in_place(|| plant.api().get(PODS).unwrap());
        Self {
            plant,
            node: plant.node(&pod["spec"]["nodeName"]),
            pod,
            after: list["metadata"]["resourceVersion"].as_str().unwrap().to_owned(),
        }
    }

    fn name(&self) -> &str {
        self.node.name()
    }

    fn uid(&self) -> &Value {
        &self.pod["metadata"]["uid"]
    }

    async fn until_fenced(&self) {
        self.plant.until_seen(self.name(), "UNREACHABLE").await;
        self.plant.stack.client.fence(self.name()).await;
        let fence = self.plant.until_ended(self.name(), "fence").await;
        assert_eq!(fence["status"], "succeeded", "{fence}");
    }

    /// Asks for this, and waits until the operation of this kind has succeeded.
    async fn ask(&self, what: &str, kind: &str) {
        let path = format!("/hosts/{}/{what}", self.name());
        let reason = json!({ "reason": "its member is missed" });
        self.plant.stack.client.post(&path, reason).await.ok(202);
        let operation = self.plant.until_ended(self.name(), kind).await;
        assert_eq!(operation["status"], "succeeded", "{operation}");
    }

    async fn evacuate(&self) {
        self.ask("evacuate", "evacuation").await;
    }

    async fn take_back(&self) {
        self.ask("rejoin", "rejoin").await;
        block_in_place(|| self.node.until_ready().unwrap());
    }

    fn until_elsewhere(&self) -> Value {
        self.plant
            .until_running("db-0", |next| next["metadata"]["uid"] != *self.uid())
    }

    /// What the node has run in its present boot of the first pod.
    fn runs_of_this_boot(&self) -> Vec<ContainerRun> {
        let boot = self.node.boot_id();
        let runs = block_in_place(|| self.node.runs().unwrap());
        let is_it = |run: &ContainerRun| run.boot == boot && Some(run.uid.as_str()) == self.uid().as_str();
        runs.into_iter().filter(is_it).collect()
    }

    /// What the API server was told, in its order. `words` are those that matter.
    fn told(&self, words: &[&str]) -> Vec<&'static str> {
        let node = format!("/api/v1/nodes?fieldSelector=metadata.name={}", self.name());
        let gate = format!("/api/v1/namespaces/{NAMESPACE}/configmaps?fieldSelector=metadata.name={GATE}");
        let mut told = Vec::new();
        let mut note = |path: &str, words_of: &mut dyn FnMut(&str, &Value) -> Vec<&'static str>| {
            let changes = block_in_place(|| self.plant.api().changes(path, &self.after).unwrap());
            for (kind, object) in changes {
                let version = object["metadata"]["resourceVersion"].as_str().unwrap();
                let version: u64 = version.parse().unwrap();
                let words = words_of(&kind, &object);
                told.extend(words.into_iter().map(|word| (version, word)));
            }
        };
        let mut before = NodeState::default();
        note(&node, &mut |_, node| before.changes(node));
        let mut was_open = false;
        note(&gate, &mut |_, gate| {
            let is_open = !gate["data"][self.name()].is_null();
            let word = match (was_open, is_open) {
                (false, true) => vec!["gate open"],
                (true, false) => vec!["gate closed"],
                _ => vec![],
            };
            was_open = is_open;
            word
        });
        note(PODS, &mut |kind, pod| match kind {
            "DELETED" if pod["metadata"]["uid"] == *self.uid() => vec!["pod gone"],
            "ADDED" if pod["metadata"]["name"] == "db-0" => vec!["pod made anew"],
            _ => vec![],
        });
        note(ATTACHMENTS, &mut |kind, one| {
            let is_it = one["spec"]["nodeName"] == self.name();
            if kind == "DELETED" && is_it {
                vec!["detached"]
            } else {
                vec![]
            }
        });
        told.sort_by_key(|(version, _)| *version);
        let told = told.into_iter().map(|(_, word)| word);
        told.filter(|word| words.contains(word)).collect()
    }

    fn assert_runs_here(&self) {
        let runs = self.runs_of_this_boot();
        assert!(runs.iter().any(ContainerRun::goes_on), "{runs:?}");
    }

    fn assert_runs_once(&self) {
        assert_eq!(block_in_place(|| running_twice(&self.plant.nodes).unwrap()), None);
    }
}

/// What matters of a node.
#[derive(Default, PartialEq)]
struct NodeState {
    is_isolated: bool,
    is_ready: Option<bool>,
}

impl NodeState {
    fn of(node: &Value) -> Self {
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let has_taint = taints.iter().any(|taint| taint["key"] == "ringfence.io/fenced");
        let conditions = node["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let ready = conditions.iter().find(|one| one["type"] == "Ready");
        Self {
            is_isolated: has_taint && node["spec"]["unschedulable"] == true,
            is_ready: ready.map(|one| one["status"] == "True"),
        }
    }

    fn changes(&mut self, node: &Value) -> Vec<&'static str> {
        let now = Self::of(node);
        let mut words = Vec::new();
        match (self.is_isolated, now.is_isolated) {
            (false, true) => words.push("isolated"),
            (true, false) => words.push("released"),
            _ => {}
        }
        match (self.is_ready, now.is_ready) {
            (Some(true), Some(false)) => words.push("not ready"),
            (Some(false), Some(true)) => words.push("ready"),
            _ => {}
        }
        *self = now;
        words
    }
}

const ALL: &[&str] = &[
    "isolated",
    "released",
    "ready",
    "gate open",
    "gate closed",
    "pod gone",
    "pod made anew",
    "detached",
];

/// The heartbeat comes after the taint, and before anything was moved.
async fn a_heartbeat_after_the_taint(plant: &Plant) {
    let story = Story::begin(plant);
    block_in_place(|| story.node.kill());
    story.until_fenced().await;
    // A person has pushed its button.
    block_in_place(|| story.node.start_again().unwrap());
    plant.until_seen(story.name(), "UP").await;
    let path = format!("/hosts/{}/evacuate", story.name());
    let reason = json!({ "reason": "its member is missed" });
    let refused = plant.stack.client.post(&path, reason).await;
    assert_eq!(refused.status, 409, "{refused:?}");
    // The taint has marked the pod for deletion: its kubelet does not start it any more, and says that it has ended.
    let next = story.until_elsewhere();
    assert_ne!(next["spec"]["nodeName"], story.name());
    assert_eq!(story.runs_of_this_boot(), []);
    story.take_back().await;
    // The kubelet's first heartbeat closes the gate, and its first word of the pod removes that: in either order.
    for either in ["gate closed", "pod gone"] {
        let wanted = ["isolated", "gate open", either, "released"];
        assert_eq!(story.told(&wanted), wanted, "{:?}", story.told(ALL));
    }
    story.assert_runs_once();
}

/// It has power again, and no way to the API server.
async fn a_boot_without_the_api_server(plant: &Plant) {
    let story = Story::begin(plant);
    block_in_place(|| story.node.kill());
    story.until_fenced().await;
    story.node.cut_off(true);
    block_in_place(|| story.node.start_again().unwrap());
    story.evacuate().await;
    let next = story.until_elsewhere();
    assert_ne!(next["spec"]["nodeName"], story.name());
    assert_eq!(
        story.runs_of_this_boot(),
        [],
        "pods come from the API server alone"
    );
    story.node.cut_off(false);
    plant.until_seen(story.name(), "UP").await;
    story.take_back().await;
    assert_eq!(story.runs_of_this_boot(), []);
    let wanted = [
        "isolated",
        "gate open",
        "pod gone",
        "pod made anew",
        "detached",
        "gate closed",
        "released",
    ];
    let mut told = story.told(ALL);
    told.retain(|word| *word != "ready");
    assert_eq!(told, wanted, "{:?}", story.told(ALL));
    story.assert_runs_once();
}

/// It is back before anyone has acted.
async fn a_heartbeat_before_the_fence(plant: &Plant) {
    let story = Story::begin(plant);
    block_in_place(|| story.node.kill());
    plant.until_seen(story.name(), "UNREACHABLE").await;
    block_in_place(|| story.node.start_again().unwrap());
    plant.until_seen(story.name(), "UP").await;
    let same = plant.until_running("db-0", |pod| pod["metadata"]["uid"] == *story.uid());
    assert_eq!(same["spec"]["nodeName"], story.name());
    let path = format!("/operations?host={}&kind=fence&status=running", story.name());
    let running = plant.stack.client.get(&path).await.ok(200);
    assert_eq!(running["operations"], json!([]));
    let told = story.told(ALL);
    assert!(told.iter().all(|word| *word == "ready"), "{told:?}");
    story.assert_runs_once();
}

/// It is back when it is isolated, and before its power is taken: what was done to it is undone without being asked for.
async fn a_heartbeat_after_the_isolation(plant: &Plant) {
    let story = Story::begin(plant);
    plant.wait_before_power(600).await;
    block_in_place(|| story.node.kill());
    plant.until_seen(story.name(), "UNREACHABLE").await;
    plant.stack.client.fence(story.name()).await;
    let path = format!("/api/v1/nodes/{}", story.name());
    let is_isolated = |node: &Value| NodeState::of(node).is_isolated;
    block_in_place(|| {
        plant
            .api()
            .until("isolated", &path, PATIENCE, is_isolated)
            .unwrap()
    });
    block_in_place(|| story.node.start_again().unwrap());
    let fence = plant.until_ended(story.name(), "fence").await;
    assert_eq!(fence["status"], "cancelled", "{fence}");
    let rejoin = plant.until_ended(story.name(), "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    let gates = format!("/hosts/{}/gates", story.name());
    let gates = plant.stack.client.get(&gates).await.ok(200);
    assert_eq!(gates["schedule"]["allowed"], true, "{gates}");
    let is_released = |node: &Value| !NodeState::of(node).is_isolated;
    block_in_place(|| {
        plant
            .api()
            .until("released", &path, PATIENCE, is_released)
            .unwrap()
    });
    plant.until_running("db-0", |_| true);
    let told = story.told(&["isolated", "released", "gate open"]);
    assert_eq!(told, ["isolated", "released"], "{:?}", story.told(ALL));
    story.assert_runs_once();
    plant.wait_before_power(0).await;
}

/// It was never away: it runs on, without a way to the API server, until its power is taken. At first its BMC only says that it does so.
async fn a_partition(plant: &Plant) {
    let story = Story::begin(plant);
    story.node.cut_off(true);
    plant.until_seen(story.name(), "UNREACHABLE").await;
    story.assert_runs_here();
    let bmc = story.node.bmc().unwrap();
    block_in_place(|| bmc.set_fault(IpmiFault::Lies).unwrap());
    let client = &plant.stack.client;
    let fence = client.fence(story.name()).await;
    let path = format!("/operations/{}", fence["id"].as_str().unwrap());
    let power_off = |fence: &Value| {
        let stages = fence["stages"].as_array().unwrap().iter();
        let mut tasks = stages.flat_map(|stage| stage["tasks"].as_array().unwrap());
        tasks.find(|task| task["kind"] == "power.off").unwrap().clone()
    };
    let is_unknown = |fence: &Value| power_off(fence)["attempts"][0]["outcome"] == "unknown";
    client.until_within(&path, PATIENCE, is_unknown).await;
    assert!(bmc.chassis_log().contains("set power 0"), "{}", bmc.chassis_log());
    let path = format!("/hosts/{}/evacuate", story.name());
    let refused = client
        .post(&path, json!({ "reason": "its member is missed" }))
        .await;
    assert_eq!(refused.status, 409, "{refused:?}");
    story.assert_runs_here();
    let pod = block_in_place(|| plant.api().get(&format!("{PODS}/db-0")).unwrap());
    assert_eq!(
        pod["metadata"]["uid"],
        *story.uid(),
        "removed before anything was proven"
    );
    assert_eq!(story.told(&["gate open", "pod gone", "detached"]), [""; 0]);

    block_in_place(|| bmc.set_fault(IpmiFault::None).unwrap());
    client.until_fenced(story.name()).await;
    assert!(!story.node.is_running());
    story.evacuate().await;
    let next = story.until_elsewhere();
    assert_ne!(next["spec"]["nodeName"], story.name());
    story.node.cut_off(false);
    story.take_back().await;
    let mut told = story.told(ALL);
    told.retain(|word| *word != "ready");
    let wanted = [
        "isolated",
        "gate open",
        "pod gone",
        "pod made anew",
        "detached",
        "gate closed",
        "released",
    ];
    assert_eq!(told, wanted, "{:?}", story.told(ALL));
    story.assert_runs_once();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whenever_a_node_comes_back_its_pods_run_once_and_nothing_is_left_half_done() {
    let plant = Plant::start(Ground::Standalone, json!({})).await;
    tokio::time::timeout(PATIENCE, a_heartbeat_before_the_fence(&plant))
        .await
        .unwrap();
    a_heartbeat_after_the_isolation(&plant).await;
    a_heartbeat_after_the_taint(&plant).await;
    a_boot_without_the_api_server(&plant).await;
    a_partition(&plant).await;
    plant.stack.stop().await;
}
