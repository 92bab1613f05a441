//! A cluster of three nodes with BMCs, a set with a volume, and a Ringfence that fences by itself.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, ResourceExt};
use ringfence_lab::{
    Attacher, ControlPlaneOptions, IpmiBmc, Kubelet, KubeletOptions, make_volumes, stateful_set,
};
use ringfence_tests::Ground;
use serde_json::json;
use tokio::task::block_in_place;

use super::PATIENCE;
use crate::cases::kubernetes::cluster::{Cluster, add_host, until_seen};
use crate::cases::kubernetes::crowd::by_force;
use crate::cases::kubernetes::following::{Following, Seen};
use crate::error::BenchError;
use crate::listener::Listener;
use crate::plant::Plant;

/// The time after which a silent node is UNREACHABLE; kubelets renew their leases every two seconds here.
pub const DOWN_AFTER: Duration = Duration::from_secs(6);
/// The only member of the set.
pub const MEMBER: &str = "db-0";
const NODES: [&str; 3] = ["n1", "n2", "n3"];

pub struct Rig {
    // Dropped in this order.
    pub plant: Plant,
    events: Listener,
    pods: Following<Pod>,
    leases: Following<Lease>,
    renewed_at: HashMap<String, Instant>,
    _attacher: Attacher,
    nodes: Vec<Kubelet>,
    cluster: Cluster,
}

impl Rig {
    pub async fn start(ground: Ground) -> Result<Self, BenchError> {
        let options = ControlPlaneOptions {
            // As in production.
            volume_sync: Duration::from_mins(1),
            ..ControlPlaneOptions::default()
        };
        let cluster = Cluster::start(options).await?;
        let (nodes, attacher) = block_in_place(|| populate(&cluster))?;
        let client = &cluster.client;
        let everything = watcher::Config::default();
        let pods = Following::begin(Api::namespaced(client.clone(), "default"), everything.clone());
        let leases = Following::begin(Api::namespaced(client.clone(), "kube-node-lease"), everything);
        let plant = Plant::start(ground, cluster.settings(DOWN_AFTER)).await?;
        configure(&plant, &nodes).await?;
        let mut rig = Self {
            events: Listener::open(&plant.client).await?,
            plant,
            pods,
            leases,
            renewed_at: HashMap::new(),
            _attacher: attacher,
            nodes,
            cluster,
        };
        rig.fence_by_itself(true).await;
        let is_there = |seen: &Seen<Pod>| seen.object.name_any() == MEMBER && is_running(&seen.object);
        rig.pods.until("the member", PATIENCE, is_there).await?;
        Ok(rig)
    }

    /// The node that the member is bound to, and the member's UID.
    pub async fn member(&self) -> Result<(String, String), BenchError> {
        let pods: Api<Pod> = Api::namespaced(self.cluster.client.clone(), "default");
        let pod = pods.get(MEMBER).await?;
        match (node_of(&pod), pod.uid()) {
            (Some(node), Some(uid)) => Ok((node.to_owned(), uid)),
            _ => Err(BenchError::Unexpected {
                what: MEMBER.to_owned(),
                found: format!("{:?}", pod.status),
            }),
        }
    }

    /// Whether a node that falls silent is fenced and emptied without being asked.
    pub async fn fence_by_itself(&self, automatic: bool) {
        let policy = json!({
            "auto_rejoin": true,
            "fencing": { "automatic": automatic, "after_s": 0, "at_most": 1000, "at_most_percent": 100 },
            "evacuation": { "automatic": automatic },
        });
        self.plant.client.set_default_policy(policy).await.ok(200);
    }

    /// Kills a node, and returns when.
    pub fn kill(&self, node: &str) -> Result<Instant, BenchError> {
        let node = self.node(node)?;
        let begun = Instant::now();
        block_in_place(|| node.kill());
        Ok(begun)
    }

    /// When the first event of this kind arrived that came after `since`.
    pub async fn until_told(
        &mut self,
        kind: &str,
        node: &str,
        since: Instant,
    ) -> Result<Instant, BenchError> {
        loop {
            let heard = self.events.until(kind, node, PATIENCE).await?;
            if heard.at >= since {
                return Ok(heard.at);
            }
        }
    }

    pub fn bmc_port(&self, node: &str) -> Result<u16, BenchError> {
        let node = self.node(node)?;
        node.bmc().map(IpmiBmc::port).ok_or_else(|| missing(node.name()))
    }

    pub fn until_not_ready(&self, node: &str) -> Result<(), BenchError> {
        let node = self.node(node)?;
        Ok(block_in_place(|| node.until_not_ready())?)
    }

    /// When the lease of the node was last seen to be written.
    pub fn last_renewal(&mut self, node: &str) -> Result<Instant, BenchError> {
        for seen in self.leases.so_far() {
            self.renewed_at.insert(seen.object.name_any(), seen.at);
        }
        self.renewed_at.get(node).copied().ok_or_else(|| missing(node))
    }

    /// When the member's successor was bound to another node, and when it ran there.
    pub async fn until_elsewhere(&mut self, node: &str, uid: &str) -> Result<(Instant, Instant), BenchError> {
        let is_next = |seen: &Seen<Pod>| {
            let pod = &seen.object;
            let elsewhere = node_of(pod).is_some_and(|other| other != node);
            !seen.is_gone && pod.name_any() == MEMBER && pod.uid().as_deref() != Some(uid) && elsewhere
        };
        let bound = self
            .pods
            .until("the member bound elsewhere", PATIENCE, is_next)
            .await?;
        if is_running(&bound.object) {
            return Ok((bound.at, bound.at));
        }
        let runs = |seen: &Seen<Pod>| is_next(seen) && is_running(&seen.object);
        let running = self
            .pods
            .until("the member running elsewhere", PATIENCE, runs)
            .await?;
        Ok((bound.at, running.at))
    }

    /// The name of the attachment of the member's volume.
    pub async fn attachment(&self, node: &str) -> Result<String, BenchError> {
        let api: Api<VolumeAttachment> = Api::all(self.cluster.client.clone());
        let all = api.list(&ListParams::default()).await?;
        let mut found = all.iter().filter(|one| one.spec.node_name == node);
        found
            .next()
            .map(ResourceExt::name_any)
            .ok_or_else(|| missing(node))
    }

    pub async fn cordon(&self, node: &str, closed: bool) -> Result<(), BenchError> {
        let api: Api<Node> = Api::all(self.cluster.client.clone());
        let change = json!({ "spec": { "unschedulable": closed } });
        api.patch(node, &PatchParams::default(), &Patch::Merge(change))
            .await?;
        Ok(())
    }

    /// The bare calls, all at once. Returns when they began.
    pub async fn let_go(&self, node: &str, attachment: &str) -> Result<Instant, BenchError> {
        let client = || self.cluster.client.clone();
        let (pods, nodes): (Api<Pod>, Api<Node>) = (Api::namespaced(client(), "default"), Api::all(client()));
        let attachments: Api<VolumeAttachment> = Api::all(client());
        let nothing_in_use = json!({ "status": { "volumesInUse": null } });
        let (how_to_patch, how_to_delete) = (PatchParams::default(), DeleteParams::default());
        let by_force = by_force(&pods.get(MEMBER).await?);
        let forgotten = Patch::Merge(nothing_in_use);
        let begun = Instant::now();
        let (gone, detached, forgotten) = tokio::join!(
            pods.delete(MEMBER, &by_force),
            attachments.delete(attachment, &how_to_delete),
            nodes.patch_status(node, &how_to_patch, &forgotten),
        );
        gone?;
        detached?;
        forgotten?;
        Ok(begun)
    }

    /// Starts a node that is FENCED, and waits until Ringfence has taken it back.
    pub async fn take_back(&mut self, node: &str) -> Result<(), BenchError> {
        self.until_ended(node, "evacuation").await;
        self.start_again(node).await?;
        self.plant.client.until_unfenced(node).await;
        self.until_ended(node, "rejoin").await;
        Ok(())
    }

    /// Starts a node, and waits until it and its host are well.
    pub async fn start_again(&self, name: &str) -> Result<(), BenchError> {
        let node = self.node(name)?;
        block_in_place(|| {
            node.start_again()?;
            node.until_ready()
        })?;
        until_seen(&self.plant, name, "UP").await;
        Ok(())
    }

    pub async fn stop(self) {
        self.plant.stop().await;
    }

    async fn until_ended(&self, node: &str, kind: &str) {
        let path = format!("/operations?host={node}&kind={kind}&sort=created_at:desc&limit=1");
        let is_over = |list: &serde_json::Value| list["operations"][0]["status"] == "succeeded";
        self.plant.client.until_within(&path, PATIENCE, is_over).await;
    }

    fn node(&self, name: &str) -> Result<&Kubelet, BenchError> {
        let mut nodes = self.nodes.iter();
        nodes
            .find(|node| node.name() == name)
            .ok_or_else(|| missing(name))
    }
}

fn populate(cluster: &Cluster) -> Result<(Vec<Kubelet>, Attacher), BenchError> {
    let options = KubeletOptions {
        with_bmc: true,
        ..KubeletOptions::default()
    };
    let nodes = NODES
        .iter()
        .map(|name| Kubelet::start(&cluster.plane, name, &options));
    let nodes: Result<Vec<Kubelet>, _> = nodes.collect();
    let nodes = nodes?;
    let api = cluster.plane.api();
    make_volumes(api, 1)?;
    let attacher = Attacher::start(api);
    let sets = "/apis/apps/v1/namespaces/default/statefulsets";
    api.post(sets, &stateful_set("db", 1))?;
    Ok((nodes, attacher))
}

async fn configure(plant: &Plant, nodes: &[Kubelet]) -> Result<(), BenchError> {
    let secret = plant.machine.file("bmc-password");
    std::fs::write(&secret, IpmiBmc::PASSWORD).map_err(BenchError::system("write the BMCs' password"))?;
    let method = json!({
        "name": "bmc", "resource": "power", "driver": "ipmi",
        "parameters": { "address": "127.0.0.1", "username": IpmiBmc::USER, "cipher": "3" },
        "secrets": { "password": format!("file:{}", secret.display()) },
    });
    plant.add_method(method).await;
    plant.add_plan(&[("power.off", "bmc")]).await;
    for node in nodes {
        let port = node.bmc().map(IpmiBmc::port).unwrap_or_default();
        add_host(plant, node.name(), json!({ "bmc": { "port": port.to_string() } })).await;
    }
    for node in nodes {
        until_seen(plant, node.name(), "UP").await;
    }
    Ok(())
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

fn is_running(pod: &Pod) -> bool {
    let containers = pod
        .status
        .iter()
        .flat_map(|status| status.container_statuses.iter().flatten());
    let mut ready = containers.map(|container| container.ready);
    ready.next() == Some(true)
}

fn missing(node: &str) -> BenchError {
    BenchError::Unexpected {
        what: format!("node {node} with its BMC, its lease and its volume"),
        found: "not all of them".to_owned(),
    }
}
