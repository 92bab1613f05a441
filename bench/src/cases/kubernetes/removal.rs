//! One node with many pods, and many nodes at once: from FENCED to no pod left, in turns with bare deletions of as many pods.
//!
//! Nodes are objects without kubelets, and their pods are bound to them and have no controllers, so that nothing but the removal is
//! measured. Their power is a device that answers at once.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use ringfence_lab::ControlPlaneOptions;
use ringfence_tests::{Ground, tell};
use serde_json::json;

use super::NAME;
use super::cluster::{Cluster, add_host, until_seen};
use super::crowd::{Crowd, bind_pods, delete_pods};
use super::following::Following;
use crate::devices::Devices;
use crate::error::BenchError;
use crate::listener::Listener;
use crate::plant::Plant;
use crate::report::{Figure, Report};
use crate::statistics::Summary;

/// The shortest that can be set.
const DOWN_AFTER: Duration = Duration::from_secs(5);
const RENEWED_EVERY: Duration = Duration::from_secs(1);
/// Kubernetes' own time, so that its controllers leave the pods alone meanwhile.
const NODE_GRACE: Duration = Duration::from_secs(40);
const PATIENCE: Duration = Duration::from_secs(180);
/// Pods of one node that are removed at a time: the default of a segment.
const AT_ONCE_OF_A_NODE: usize = 16;
/// Attempts of one worker at a time: the default.
const AT_ONCE_OF_A_WORKER: usize = 64;

/// One kind of removal.
struct Load {
    nodes: usize,
    pods_each: usize,
    rounds: usize,
    /// Deletions at a time in the floor, as many as Ringfence makes.
    at_once: usize,
}

const LOADS: [Load; 3] = [
    Load {
        nodes: 1,
        pods_each: 110,
        rounds: 5,
        at_once: AT_ONCE_OF_A_NODE,
    },
    Load {
        nodes: 1,
        pods_each: 500,
        rounds: 3,
        at_once: AT_ONCE_OF_A_NODE,
    },
    Load {
        nodes: 50,
        pods_each: 10,
        rounds: 3,
        at_once: AT_ONCE_OF_A_WORKER,
    },
];

/// Measures on one ground.
pub async fn measure(ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    let options = ControlPlaneOptions {
        node_grace: NODE_GRACE,
        ..ControlPlaneOptions::default()
    };
    let cluster = Cluster::start(options).await?;
    let devices = Devices::start()?;
    let settings = cluster
        .settings(DOWN_AFTER)
        .with("RINGFENCE_WORKER_SIMULATOR_URL", devices.url());
    let plant = Plant::start(ground, settings).await?;
    plant.add_simulated_methods(&["power"]).await;
    plant.add_plan(&[("power.off", "power")]).await;
    let policy = json!({ "evacuation": { "automatic": true } });
    plant.client.set_default_policy(policy).await.ok(200);
    let mut bench = Bench {
        events: Listener::open(&plant.client).await?,
        pods: Following::begin(
            Api::namespaced(cluster.client.clone(), "default"),
            watcher::Config::default(),
        ),
        cluster,
        plant,
        made: 0,
    };
    for load in &LOADS {
        let mut taken = Taken::default();
        for _ in 0..load.rounds {
            let floor = bench.bare(load).await?;
            taken.floor.push(floor);
            let total = bench.fence(load, &mut taken).await?;
            let pods = load.nodes * load.pods_each;
            tell(&format!("{pods} pods: bare {floor:.2} s, Ringfence {total:.2} s"));
        }
        taken.tell(load, ground, report)?;
    }
    bench.plant.stop().await;
    Ok(())
}

struct Bench {
    // Dropped in this order.
    plant: Plant,
    events: Listener,
    pods: Following<Pod>,
    cluster: Cluster,
    /// Nodes so far: each is fenced once.
    made: usize,
}

/// All measurements in seconds, one of each kind per round.
#[derive(Default)]
struct Taken {
    floor: Vec<f64>,
    /// From the first request to the last node FENCED.
    fenced: Vec<f64>,
    /// From the last node FENCED to no pod left.
    emptied: Vec<f64>,
    /// From the first request to no pod left.
    total: Vec<f64>,
}

impl Bench {
    fn names(&mut self, load: &Load) -> Vec<String> {
        let first = self.made;
        self.made += load.nodes;
        (first..self.made)
            .map(|number| format!("node-{number}"))
            .collect()
    }

    /// Deletes as many pods with the cluster's API alone.
    async fn bare(&mut self, load: &Load) -> Result<f64, BenchError> {
        let nodes = self.names(load);
        let client = self.cluster.client.clone();
        let _crowd = Crowd::make(&client, &nodes, RENEWED_EVERY).await?;
        let pods = bind_pods(&client, &nodes, load.pods_each).await?;
        let begun = Instant::now();
        let (done, gone) = tokio::join!(
            delete_pods(&client, &pods, load.at_once),
            until_gone(&mut self.pods, &pods),
        );
        done?;
        Ok((gone? - begun).as_secs_f64())
    }

    /// Fences the nodes, and returns the seconds from the first request to no pod left.
    async fn fence(&mut self, load: &Load, taken: &mut Taken) -> Result<f64, BenchError> {
        let nodes = self.names(load);
        let client = self.cluster.client.clone();
        let crowd = Crowd::make(&client, &nodes, RENEWED_EVERY).await?;
        let pods = bind_pods(&client, &nodes, load.pods_each).await?;
        for node in &nodes {
            add_host(&self.plant, node, json!({})).await;
        }
        for node in &nodes {
            until_seen(&self.plant, node, "UP").await;
        }
        for node in &nodes {
            crowd.silence(node);
        }
        for node in &nodes {
            until_seen(&self.plant, node, "UNREACHABLE").await;
        }
        let begun = Instant::now();
        join_all(nodes.iter().map(|node| self.plant.client.fence(node))).await;
        let (fenced, gone) = tokio::join!(
            until_fenced(&mut self.events, &nodes),
            until_gone(&mut self.pods, &pods),
        );
        let (fenced, gone) = (fenced?, gone?);
        taken.fenced.push((fenced - begun).as_secs_f64());
        taken
            .emptied
            .push(gone.saturating_duration_since(fenced).as_secs_f64());
        let total = (gone - begun).as_secs_f64();
        taken.total.push(total);
        self.until_ended(&nodes).await;
        Ok(total)
    }

    /// The next round must not meet the rest of this one.
    async fn until_ended(&self, nodes: &[String]) {
        for node in nodes {
            let path = format!("/operations?host={node}&kind=evacuation");
            let is_over = |list: &serde_json::Value| list["operations"][0]["status"] == "succeeded";
            self.plant.client.until_within(&path, PATIENCE, is_over).await;
        }
    }
}

/// When the last of these pods was gone.
async fn until_gone(following: &mut Following<Pod>, pods: &[Pod]) -> Result<Instant, BenchError> {
    let mut left: BTreeSet<String> = pods.iter().map(ResourceExt::name_any).collect();
    loop {
        let seen = following
            .until("the next pod that is gone", PATIENCE, |seen| seen.is_gone)
            .await?;
        left.remove(&seen.object.name_any());
        if left.is_empty() {
            return Ok(seen.at);
        }
    }
}

/// When the last of these nodes became FENCED.
async fn until_fenced(events: &mut Listener, nodes: &[String]) -> Result<Instant, BenchError> {
    let mut left: BTreeSet<&str> = nodes.iter().map(String::as_str).collect();
    loop {
        let heard = events.next(PATIENCE).await?;
        let host = heard.event["host"].as_str().unwrap_or_default();
        if heard.kind == "host.fenced" && left.remove(host) && left.is_empty() {
            return Ok(heard.at);
        }
    }
}

impl Taken {
    fn tell(&self, load: &Load, ground: Ground, report: &mut Report) -> Result<(), BenchError> {
        let (nodes, pods) = (load.nodes, load.pods_each);
        let of = match nodes {
            1 => format!("one node with {pods} pods"),
            _ => format!("{nodes} nodes with {pods} pods each"),
        };
        let figure = |what: &str, summary| {
            let what = format!("{what}, {of}");
            Figure::new(NAME, what, "s", summary).on(ground)
        };
        let Some(floor) = Summary::of(&self.floor) else {
            return Ok(());
        };
        let at_once = load.at_once;
        report.add(
            figure("floor: bare deletions", floor)
                .note(format!("{at_once} at once, by force, each with the pod's UID")),
        )?;
        report.add_summary(&self.fenced, |s| figure("requests to all FENCED", s))?;
        report.add_summary(&self.emptied, |s| {
            figure("all FENCED to no pod left", s)
                .over("bare deletions", floor.median)
                .note("each pod is a recorded move, and is read before and after it is deleted; evacuation.at_once is 16, worker.concurrency 64, the defaults")
        })?;
        report.add_summary(&self.total, |s| {
            figure("requests to no pod left", s).over("bare deletions", floor.median)
        })
    }
}
