//! All of Ringfence dies in each phase of a fence, and its databases with it, or its leader dies with the node: the next leader finishes,
//! under the rights of the chart.

use std::time::{Duration, Instant};

use ringfence_lab::running_twice;
use ringfence_tests::Client;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::chart::{Installed, Replica, start};
use super::leaders::{configure, until_claimed, until_seen};
use super::plant::{Cluster, PODS};

const PATIENCE: Duration = Duration::from_secs(120);
/// From the death of a leader until the next one answers, on a loaded machine: its lease counts for 10 s.
const TAKEN_OVER_WITHIN: Duration = Duration::from_secs(20);

/// Two replicas, of which one leads.
struct Pair<'a> {
    installed: &'a Installed,
    leading: Replica,
    client: Client,
    waiting: Replica,
    /// All that have died, with their files: secrets are in those of the one that was configured.
    dead: Vec<Replica>,
}

impl<'a> Pair<'a> {
    async fn start(installed: &'a Installed) -> Self {
        let mut leading = installed.start("replica-0");
        let client = leading.client().await;
        let waiting = installed.start("replica-1");
        Self {
            installed,
            leading,
            client,
            waiting,
            dead: Vec::new(),
        }
    }

    /// Kills the leader, as its node's death would, and goes on with the next one. Nothing of the dead one's data is used again.
    async fn lose_leader(&mut self) {
        self.leading.service.kill();
        let killed_at = Instant::now();
        std::fs::remove_dir_all(self.leading.machine.file("data")).unwrap();
        self.client = self.waiting.client().await;
        let took = killed_at.elapsed();
        assert!(took < TAKEN_OVER_WITHIN, "the next one answers after {took:?}");
        // The cluster starts another pod.
        let next = self.another();
        let leading = std::mem::replace(&mut self.waiting, next);
        self.dead.push(std::mem::replace(&mut self.leading, leading));
    }

    /// Kills both, and goes on with others, which know nothing but what is in the cluster.
    async fn lose_all(&mut self) {
        for replica in [&mut self.leading, &mut self.waiting] {
            replica.service.kill();
        }
        std::fs::remove_dir_all(self.leading.machine.file("data")).unwrap();
        let next = self.another();
        self.dead.push(std::mem::replace(&mut self.leading, next));
        // Alone at first: either of two might lead.
        self.client = self.leading.client().await;
        let next = self.another();
        self.dead.push(std::mem::replace(&mut self.waiting, next));
    }

    fn another(&self) -> Replica {
        self.installed.start(&format!("replica-{}", self.dead.len() + 2))
    }
}

/// When all of Ringfence dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Its leader alone, with the node that is to be fenced.
    WithNode,
    /// The fence was asked for a moment ago: the node is being cordoned and tainted.
    Isolating,
    /// A worker has claimed the power-off.
    Claimed,
    /// FENCED was committed a moment ago.
    Fenced,
    /// Some of the node's pods are gone, and others are not.
    Evacuating,
    /// The node is being taken back.
    Rejoining,
}

/// Pods beside the member, so that an evacuation is found under way. They are bound to the node when it is dead already: a kubelet takes 110.
const OTHERS: usize = 300;

fn other_pods(cluster: &Cluster, node: &str) {
    for number in 0..OTHERS {
        let pod = json!({
            "metadata": { "name": format!("other-{number}"), "labels": { "app": "other" } },
            "spec": { "nodeName": node, "containers": [{ "name": "one", "image": "none" }] },
        });
        cluster.api().post(PODS, &pod).unwrap();
    }
}

fn others_left(cluster: &Cluster) -> usize {
    let list = cluster
        .api()
        .get(&format!("{PODS}?labelSelector=app=other"))
        .unwrap();
    list["items"].as_array().unwrap().len()
}

fn uid_of_member(cluster: &Cluster) -> Value {
    let pod = cluster.api().find(&format!("{PODS}/db-0")).unwrap();
    pod.unwrap_or_default()["metadata"]["uid"].clone()
}

/// One fence, and the death of Ringfence in this phase.
struct Story<'a> {
    cluster: &'a Cluster,
    phase: Phase,
    node: String,
    uid: Value,
}

impl Story<'_> {
    fn path(&self) -> String {
        format!("/hosts/{}", self.node)
    }

    async fn until_fenced(&self, client: &Client) {
        let is_fenced = |host: &Value| host["fencing_state"] == "FENCED";
        client.until_within(&self.path(), PATIENCE, is_fenced).await;
    }

    fn assert_nothing_removed(&self) {
        let uid = block_in_place(|| uid_of_member(self.cluster));
        assert_eq!(
            uid, self.uid,
            "{:?}: removed before anything was proven",
            self.phase
        );
    }

    async fn until_gate_opens(&self, client: &Client) {
        let is_open = |gates: &Value| gates["evacuate"]["allowed"] == true;
        let path = format!("{}/gates", self.path());
        client.until_within(&path, PATIENCE, is_open).await;
    }

    async fn evacuate(&self, client: &Client) {
        let reason = json!({ "reason": "its members are missed" });
        let asked = client.post(&format!("{}/evacuate", self.path()), reason).await;
        asked.ok(202);
    }

    /// The fence up to FENCED, with a death on the way in one of the first phases.
    async fn fence(&self, pair: &mut Pair<'_>) {
        let bmc = self.cluster.node(&json!(self.node)).bmc().unwrap();
        let dies_early = matches!(self.phase, Phase::Isolating | Phase::Claimed);
        if dies_early {
            block_in_place(|| bmc.silence().unwrap());
        }
        let fence = pair.client.fence(&self.node).await;
        if self.phase == Phase::Claimed {
            until_claimed(&pair.client, &fence).await;
        }
        if dies_early {
            pair.lose_all().await;
            self.assert_nothing_removed();
            block_in_place(|| bmc.wake().unwrap());
        }
        self.until_fenced(&pair.client).await;
        self.assert_nothing_removed();
        if self.phase == Phase::Fenced {
            pair.lose_all().await;
            let host = pair.client.get(&self.path()).await.ok(200);
            assert_eq!(host["fencing_state"], "FENCED", "{host}");
        }
    }

    /// The evacuation, until the member runs elsewhere and nothing is left on the node.
    async fn empty(&self, pair: &mut Pair<'_>) {
        until_seen(&pair.client, &self.node, "UNREACHABLE").await;
        self.until_gate_opens(&pair.client).await;
        self.evacuate(&pair.client).await;
        if self.phase == Phase::Evacuating {
            block_in_place(|| {
                while others_left(self.cluster) == OTHERS {
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
            // It is not asked for again: the next leader goes on with it.
            pair.lose_all().await;
        }
        let next = self
            .cluster
            .until_running("db-0", |next| next["metadata"]["uid"] != self.uid);
        assert_ne!(next["spec"]["nodeName"], *self.node);
        block_in_place(|| {
            let others = format!("{PODS}?labelSelector=app=other");
            let is_empty = |list: &Value| list["items"].as_array().is_some_and(Vec::is_empty);
            let api = self.cluster.api();
            api.until("the pods gone", &others, PATIENCE, is_empty).unwrap();
        });
        let is_over = |host: &Value| host["operation"].is_null();
        pair.client.until_within(&self.path(), PATIENCE, is_over).await;
    }

    async fn rejoin(&self, pair: &mut Pair<'_>) {
        let node = self.cluster.node(&json!(self.node));
        block_in_place(|| node.start_again().unwrap());
        let reason = json!({ "reason": "mended" });
        let asked = pair.client.post(&format!("{}/rejoin", self.path()), reason).await;
        asked.ok(202);
        if self.phase == Phase::Rejoining {
            pair.lose_all().await;
        }
        let is_back = |host: &Value| host["fencing_state"] == "UNFENCED";
        pair.client.until_within(&self.path(), PATIENCE, is_back).await;
        until_seen(&pair.client, &self.node, "UP").await;
        block_in_place(|| node.until_ready().unwrap());
    }
}

async fn tell(phases: &[Phase]) {
    let (cluster, installed) = start();
    let mut pair = Pair::start(&installed).await;
    for phase in phases.iter().copied() {
        for node in &cluster.nodes {
            until_seen(&pair.client, node.name(), "UP").await;
        }
        let pod = cluster.until_running("db-0", |_| true);
        let dead = cluster.node(&pod["spec"]["nodeName"]);
        let story = Story {
            cluster: &cluster,
            phase,
            node: dead.name().to_owned(),
            uid: pod["metadata"]["uid"].clone(),
        };
        block_in_place(|| dead.kill());
        if phase == Phase::Evacuating {
            block_in_place(|| other_pods(&cluster, &story.node));
        }
        if phase == Phase::WithNode {
            pair.lose_leader().await;
        }
        until_seen(&pair.client, &story.node, "UNREACHABLE").await;
        configure(&pair.client, &pair.leading.machine, &cluster, &story.node).await;
        story.fence(&mut pair).await;
        story.empty(&mut pair).await;
        story.rejoin(&mut pair).await;
        let twice = block_in_place(|| running_twice(&cluster.nodes).unwrap());
        assert_eq!(twice, None, "{phase:?}");
    }
    pair.leading.service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_is_finished_by_the_next_leader_in_whichever_phase_the_one_before_died() {
    tell(&[Phase::Isolating, Phase::Claimed, Phase::Fenced]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_follows_a_fence_is_finished_by_the_next_leader() {
    tell(&[Phase::Evacuating, Phase::Rejoining, Phase::WithNode]).await;
}
