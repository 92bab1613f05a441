//! Ringfence inside the cluster that it fences, with the rights that the chart grants and no others.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringfence_backends::kubernetes::{Cluster as Reached, ClusterUses};
use ringfence_backends::{Platform, Preflight};
use ringfence_tests::Client;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::chart::{Installed, NAMESPACE, start};
use super::leaders::{configure, until_seen};
use super::plant::{Cluster, PODS, settings};

const PATIENCE: Duration = Duration::from_secs(90);
/// The API server takes a change of rights in within moments.
const TAKEN_IN: Duration = Duration::from_secs(20);

/// The verbs are taken away in so many parts.
const PARTS: usize = 8;

/// A role without one verb of one rule.
struct Lack {
    path: String,
    role: Value,
    rule: usize,
    verb: String,
}

impl Lack {
    /// Every verb of every rule.
    fn all(installed: &Installed) -> Vec<Self> {
        let mut all = Vec::new();
        for (path, role) in installed.roles() {
            let rules = role["rules"].as_array().unwrap().iter().enumerate();
            let verbs = rules.flat_map(|(at, rule)| {
                let verbs = rule["verbs"].as_array().unwrap().iter();
                verbs.map(move |verb| (at, verb.as_str().unwrap().to_owned()))
            });
            all.extend(verbs.map(|(rule, verb)| Self {
                path: path.clone(),
                role: role.clone(),
                rule,
                verb,
            }));
        }
        all
    }

    fn one(installed: &Installed, resource: &str, verb: &str) -> Self {
        let mut all = Self::all(installed).into_iter();
        all.find(|lack| lack.verb == verb && lack.resources().any(|one| one == resource))
            .unwrap()
    }

    fn rule(&self) -> &Value {
        &self.role["rules"][self.rule]
    }

    fn resources(&self) -> impl Iterator<Item = &str> {
        let resources = self.rule()["resources"].as_array().unwrap().iter();
        resources.map(|resource| resource.as_str().unwrap())
    }

    /// As the doctor tells it.
    fn told(&self) -> Vec<String> {
        let namespace = self.role["metadata"]["namespace"].as_str().unwrap_or(NAMESPACE);
        let namespace = match self.role["kind"] == "Role" {
            true => format!(" -n {namespace}"),
            false => String::new(),
        };
        let groups = self.rule()["apiGroups"].as_array().unwrap();
        let of_group = |group: &Value| match group.as_str().unwrap() {
            "" => String::new(),
            group => format!(".{group}"),
        };
        let groups: Vec<String> = groups.iter().map(of_group).collect();
        let mut told = Vec::new();
        for resource in self.resources() {
            let rights = groups
                .iter()
                .map(|group| format!("{} {resource}{group}{namespace}", self.verb));
            told.extend(rights);
        }
        told
    }

    fn take_away(&self, cluster: &Cluster) {
        take_away(&[self], cluster);
    }

    fn give_back(&self, cluster: &Cluster) {
        let change = json!({ "rules": self.role["rules"] });
        block_in_place(|| cluster.api().patch(&self.path, &change).unwrap());
    }
}

/// Takes several verbs away with one change of each role.
fn take_away(lacks: &[&Lack], cluster: &Cluster) {
    let mut roles = BTreeMap::new();
    for lack in lacks {
        let rules = roles
            .entry(&lack.path)
            .or_insert_with(|| lack.role["rules"].clone());
        let verbs = rules[lack.rule]["verbs"].as_array_mut().unwrap();
        verbs.retain(|verb| *verb != lack.verb);
    }
    for (path, mut rules) in roles {
        // A rule without verbs is not valid.
        let has_verbs = |rule: &Value| rule["verbs"] != json!([]);
        rules.as_array_mut().unwrap().retain(has_verbs);
        let change = json!({ "rules": rules });
        block_in_place(|| cluster.api().patch(path, &change).unwrap());
    }
}

/// What the doctor asks, as the service account.
struct Doctor(Arc<Reached>);

impl Doctor {
    fn new(kubeconfig: PathBuf) -> Self {
        let mut settings = settings(kubeconfig);
        settings.namespace = NAMESPACE.to_owned();
        settings.uses = ClusterUses {
            has_operator: true,
            has_records: true,
        };
        Self(Arc::new(Reached::new(settings)))
    }

    /// The rights that are not granted.
    #[expect(
        clippy::disallowed_methods,
        reason = "the doctor compares the clocks of machines"
    )]
    async fn missing(&self) -> Vec<String> {
        let found = self.0.preflight(std::time::SystemTime::now().into()).await;
        let list = found.iter().find_map(|found| match found {
            Preflight::Failure(found, _) => found.split_once("does not allow: "),
            Preflight::Good(_) | Preflight::Warning(..) => None,
        });
        let list = list.map_or("", |(_, list)| list);
        let rights = list.split("; ").filter(|right| !right.is_empty());
        rights
            .map(|right| right.split_once(" (").unwrap().0.to_owned())
            .collect()
    }

    async fn until_missing(&self, mut wanted: Vec<String>) {
        wanted.sort();
        let deadline = Instant::now() + TAKEN_IN;
        loop {
            let mut missing = self.missing().await;
            missing.sort();
            if missing == wanted {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "missing are {missing:?}, and told should be {wanted:?}"
            );
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Kills the node of a member, waits until that is seen, and returns the node's name and the member's pod.
async fn lose_node(cluster: &Cluster, client: &Client, replica: &super::chart::Replica) -> (String, Value) {
    let pod = cluster.until_running("db-0", |_| true);
    let dead = cluster.node(&pod["spec"]["nodeName"]);
    let name = dead.name().to_owned();
    configure(client, &replica.machine, cluster, &name).await;
    block_in_place(|| dead.kill());
    until_seen(client, &name, "UNREACHABLE").await;
    (name, pod)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rights_of_the_chart_suffice_and_each_that_is_missing_is_told() {
    let (cluster, installed) = start();
    let mut first = installed.start("first");
    let client = first.client().await;
    let mut second = installed.start("second");
    let waiting = second.waiting().await;
    waiting.get("/healthcheck?probe=live").await.ok(200);
    assert_eq!(waiting.get("/healthcheck?probe=ready").await.status, 503);
    for node in &cluster.nodes {
        until_seen(&client, node.name(), "UP").await;
    }

    let doctor = Doctor::new(installed.write_kubeconfig(first.machine.path()));
    doctor.until_missing(Vec::new()).await;
    let examined = first.machine.run(&["doctor"]).await;
    assert!(
        examined
            .out
            .contains("all rights that Ringfence needs are granted"),
        "{examined:?}"
    );
    let is_of_nodes = examined.out.contains("its hosts are exactly those of Ringfence");
    assert!(is_of_nodes && !examined.out.contains("openstack"), "{examined:?}");
    let lacks = Lack::all(&installed);
    assert!(lacks.len() > 30, "{}", lacks.len());
    // Neighbours are in different parts. What is told has to be exactly what is missing.
    for first in 0..PARTS {
        let some: Vec<&Lack> = lacks.iter().skip(first).step_by(PARTS).collect();
        take_away(&some, &cluster);
        doctor
            .until_missing(some.iter().flat_map(|lack| lack.told()).collect())
            .await;
        some.iter().for_each(|lack| lack.give_back(&cluster));
    }
    doctor.until_missing(Vec::new()).await;

    a_fence_that_cannot_be_written_down_is_refused_whole(&cluster, &installed, (&client, &first)).await;
    first.service.stop().await;
    // The next one takes over at once, with the rights of the chart alone.
    let client = second.client().await;
    pods_that_may_not_be_deleted_stay_and_are_told(&cluster, &installed, (&client, &second)).await;
    a_leader_that_may_not_write_its_lease_ends(&cluster, &installed, second).await;
}

async fn a_fence_that_cannot_be_written_down_is_refused_whole(
    cluster: &Cluster,
    installed: &Installed,
    (client, first): (&Client, &super::chart::Replica),
) {
    let (name, pod) = lose_node(cluster, client, first).await;
    let lack = Lack::one(installed, "nodefences/status", "patch");
    lack.take_away(cluster);
    let doctor = Doctor::new(installed.write_kubeconfig(first.machine.path()));
    doctor.until_missing(lack.told()).await;
    let before = client.get(&format!("/hosts/{name}")).await.ok(200);
    let refused = client
        .post(&format!("/hosts/{name}/fence"), json!({ "reason": "silent" }))
        .await;
    assert_eq!(
        (refused.status, refused.code()),
        (503, "fencing.record.unavailable"),
        "{refused:?}"
    );
    let after = client.get(&format!("/hosts/{name}")).await.ok(200);
    assert_eq!(
        (&after["generation"], &after["operation"]),
        (&before["generation"], &Value::Null)
    );
    let node = block_in_place(|| cluster.api().get(&format!("/api/v1/nodes/{name}")).unwrap());
    assert_ne!(node["spec"]["unschedulable"], true, "half isolated: {node}");
    lack.give_back(cluster);
    doctor.until_missing(Vec::new()).await;

    client.fence(&name).await;
    let path = format!("/hosts/{name}");
    client
        .until_within(&path, PATIENCE, |host| host["fencing_state"] == "FENCED")
        .await;
    let evacuation = json!({ "reason": "its members are missed" });
    client.post(&format!("{path}/evacuate"), evacuation).await.ok(202);
    let next = cluster.until_running("db-0", |next| next["metadata"]["uid"] != pod["metadata"]["uid"]);
    assert_ne!(next["spec"]["nodeName"], *name);
    block_in_place(|| cluster.node(&json!(name)).start_again().unwrap());
    client
        .post(&format!("{path}/rejoin"), json!({ "reason": "mended" }))
        .await
        .ok(202);
    client
        .until_within(&path, PATIENCE, |host| host["fencing_state"] == "UNFENCED")
        .await;
    until_seen(client, &name, "UP").await;
}

async fn pods_that_may_not_be_deleted_stay_and_are_told(
    cluster: &Cluster,
    installed: &Installed,
    (client, second): (&Client, &super::chart::Replica),
) {
    for node in &cluster.nodes {
        until_seen(client, node.name(), "UP").await;
    }
    let (name, pod) = lose_node(cluster, client, second).await;
    let lack = Lack::one(installed, "pods", "delete");
    lack.take_away(cluster);
    client.fence(&name).await;
    let path = format!("/hosts/{name}");
    client
        .until_within(&path, PATIENCE, |host| host["fencing_state"] == "FENCED")
        .await;
    let evacuation = json!({ "reason": "its members are missed" });
    let evacuation = client.post(&format!("{path}/evacuate"), evacuation).await.ok(202);
    let evacuation = format!("/operations/{}", evacuation["id"].as_str().unwrap());
    let asks = |operation: &Value| operation["status"] == "needs_operator";
    let asking = client.until_within(&evacuation, PATIENCE, asks).await;
    let moves = client.get(&format!("{evacuation}/moves")).await.ok(200);
    let told = format!("{asking}{moves}");
    assert!(
        told.contains("cannot delete resource") || told.contains("forbidden"),
        "{told}"
    );
    let still = block_in_place(|| cluster.api().get(&format!("{PODS}/db-0")).unwrap());
    assert_eq!(still["metadata"]["uid"], pod["metadata"]["uid"]);

    lack.give_back(cluster);
    client
        .post(
            &format!("{evacuation}/retry"),
            json!({ "reason": "the right was granted" }),
        )
        .await
        .ok(200);
    let next = cluster.until_running("db-0", |next| next["metadata"]["uid"] != pod["metadata"]["uid"]);
    assert_ne!(next["spec"]["nodeName"], *name);
}

async fn a_leader_that_may_not_write_its_lease_ends(
    cluster: &Cluster,
    installed: &Installed,
    mut leading: super::chart::Replica,
) {
    let role = Lack::all(installed).into_iter();
    let mut role = role.filter(|lack| lack.verb == "patch" && lack.path.contains(NAMESPACE));
    let lack = role
        .find(|lack| lack.resources().any(|one| one == "leases"))
        .unwrap();
    lack.take_away(cluster);
    let status = leading.service.until_it_ends().await;
    assert!(!status.success());
    let printed = leading.service.printed();
    assert!(
        printed.contains("the lease of the leader cannot be written") && printed.contains("forbidden"),
        "{printed}"
    );
    let mut next = installed.start("next");
    next.service
        .until_says(&["the lease of the leader cannot be had", "forbidden"])
        .await;
    assert_eq!(next.waiting().await.get("/hosts").await.status, 503);
    lack.give_back(cluster);
    next.client().await;
    next.service.stop().await;
}
