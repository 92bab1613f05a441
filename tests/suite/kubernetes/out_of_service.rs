//! A cluster that acts on the out-of-service taint, as releases from 1.26 do. What is judged is what its API server has written down of who
//! has changed what and when, and what its nodes have run.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ringfence_lab::{Kubelet, LabError, OutOfService, running_twice};
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::plant::{ACCOUNT, PODS, Plant};
use super::told::{Deletion, FENCED, MarksTold, OUT_OF_SERVICE, deletions, is_isolated, marks, taint};

const PATIENCE: Duration = Duration::from_secs(90);
const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";
/// How far the cluster's controllers are behind when a node is taken back.
const BEHIND: Duration = Duration::from_secs(18);
/// As far as the controllers of a cluster may be behind.
const SETTLED_S: i64 = 20;
/// So long the detachment is left to the cluster.
const LEFT_TO_THE_CLUSTER_S: i64 = 3;
/// What another program writes over all taints of a node.
const OTHER: &str = "example.com/other";

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn uid_of(object: &Value) -> String {
    text(&object["metadata"]["uid"])
}

fn get(plant: &Plant, path: &str) -> Value {
    block_in_place(|| plant.api().find(path).unwrap().unwrap_or_default())
}

fn list(plant: &Plant, path: &str, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
    let found = get(plant, path);
    let all = found["items"].as_array().unwrap().iter();
    all.filter(|one| is_it(one)).cloned().collect()
}

fn node_path(name: &str) -> String {
    format!("/api/v1/nodes/{name}")
}

fn until(plant: &Plant, what: &str, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    block_in_place(|| plant.api().until(what, path, PATIENCE, is_so).unwrap())
}

/// A pod on each node that Ringfence leaves there until it is being removed, as the node's taint has it be.
fn run_agents(plant: &Plant) {
    let labels = json!({ "app": "agent" });
    let agents = json!({
        "metadata": { "name": "agent" },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{ "name": "main", "image": "none" }] },
            },
        },
    });
    let sets = "/apis/apps/v1/namespaces/default/daemonsets";
    block_in_place(|| plant.api().post(sets, &agents).unwrap());
    until(plant, "an agent on each node", &format!("{sets}/agent"), |set| {
        set["status"]["numberReady"] == plant.nodes.len()
    });
}

fn pods_on(plant: &Plant, node: &str) -> Vec<Value> {
    list(plant, PODS, |pod| pod["spec"]["nodeName"] == node)
}

fn attached_to(plant: &Plant, node: &str) -> Vec<String> {
    let attached = list(plant, ATTACHMENTS, |one| one["spec"]["nodeName"] == node);
    attached
        .iter()
        .map(|one| text(&one["metadata"]["name"]))
        .collect()
}

/// Nothing of before is left on the node: no pod that is being removed, and no volume.
fn assert_left_by_all(plant: &Plant, node: &str) {
    let is_going = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
    let going: Vec<Value> = pods_on(plant, node).into_iter().filter(is_going).collect();
    assert!(going.is_empty(), "{going:?}");
    assert_eq!(attached_to(plant, node), [""; 0]);
}

/// When the node's last container ended: no earlier can anything of it be let go.
fn ended_at(node: &Kubelet, uid: &str) -> DateTime<Utc> {
    let runs = block_in_place(|| node.runs().unwrap());
    let ended = runs.iter().filter(|run| run.uid == uid);
    let ended = ended.map(|run| run.until_ms.unwrap()).max();
    DateTime::from_timestamp_millis(ended.unwrap()).unwrap()
}

/// FENCED by its BMC, and evacuated.
async fn fence(plant: &Plant, node: &Kubelet) -> Value {
    plant.until_seen(node.name(), "UNREACHABLE").await;
    let client = &plant.stack.client;
    let fence = client.fence(node.name()).await;
    let path = format!("/operations/{}", text(&fence["id"]));
    let is_over = |operation: &Value| operation["status"] != "running";
    let fence = client.until_within(&path, PATIENCE, is_over).await;
    assert_eq!(fence["status"], "succeeded", "{fence}");
    assert!(!node.is_running());
    fence
}

/// Waits for the evacuation that follows this fence.
async fn until_evacuated(plant: &Plant, node: &str, fence: &Value) -> Value {
    let path = format!("/operations?host={node}&kind=evacuation&sort=created_at:desc&limit=1");
    let is_over = |list: &Value| {
        let newest = &list["operations"][0];
        newest["generation"] == fence["generation"] && newest["status"] != "running"
    };
    let client = &plant.stack.client;
    let list = client.until_within(&path, PATIENCE, is_over).await;
    let evacuation = &list["operations"][0];
    assert_eq!(evacuation["status"], "succeeded", "{evacuation}");
    evacuation.clone()
}

async fn until_taken_back(plant: &Plant, node: &str) -> Value {
    let rejoin = plant.until_ended(node, "rejoin").await;
    assert_eq!(rejoin["status"], "succeeded", "{rejoin}");
    rejoin
}

/// The release that is told is all that the front changes: a try changes nothing, a watch tells, and each caller is who it is.
fn the_front_passes_on_what_it_is_asked(plant: &Plant) {
    let front = plant.front();
    assert_eq!(front.get("/version").unwrap()["minor"], "28");
    let change = json!({ "metadata": { "labels": { "tried": "yes" } } });
    let tried = front.patch("/api/v1/nodes/n1?dryRun=All", &change).unwrap();
    assert_eq!(tried["metadata"]["labels"]["tried"], "yes");
    let told = front
        .changes("/api/v1/nodes?fieldSelector=metadata.name=n1", "0")
        .unwrap();
    assert_eq!(told[0].0, "ADDED");
    assert!(
        told.iter()
            .all(|(_, node)| node["metadata"]["labels"]["tried"].is_null())
    );
    match front.post("/api/v1/namespaces", &json!({ "metadata": { "name": "other" } })) {
        Err(LabError::Refused {
            status: 403, body, ..
        }) => assert!(body.contains(ACCOUNT), "{body}"),
        done => panic!("{done:?}"),
    }
}

/// A member whose node has lost its way to the API server, and runs on until its power is taken.
async fn a_member_of_a_node_that_is_taken_out_of_service(plant: Arc<Plant>) {
    let member = plant.until_running("db-0", |_| true);
    let uid = uid_of(&member);
    let node = plant.node(&member["spec"]["nodeName"]);
    let agents = pods_on(&plant, node.name());
    let agent = agents.iter().find(|pod| uid_of(pod) != uid).unwrap();
    let volumes = attached_to(&plant, node.name());
    assert_eq!(volumes.len(), 1);

    node.cut_off(true);
    let fence = fence(&plant, node).await;
    let evacuation = until_evacuated(&plant, node.name(), &fence).await;
    let next = plant.until_running("db-0", |next| uid_of(next) != uid);
    assert_ne!(next["spec"]["nodeName"], node.name());
    let path = format!("{PODS}/{}", text(&agent["metadata"]["name"]));
    until(&plant, "the agent gone", &path, Value::is_null);
    assert_left_by_all(&plant, node.name());
    let ended_at = ended_at(node, &uid);
    the_taint_came_after_the_proof(&plant, node, &evacuation, ended_at);
    what_was_let_go_was_not_running(&plant, &[uid, uid_of(agent)], &volumes, ended_at);

    marks_that_another_program_has_wiped_are_put_back(&plant, node.name());
    it_is_taken_back_in_order(&plant, node).await;
}

fn the_taint_came_after_the_proof(
    plant: &Plant,
    node: &Kubelet,
    evacuation: &Value,
    ended_at: DateTime<Utc>,
) {
    let told = marks(plant, node.name());
    let first = told.iter().find(|marks| marks.out_of_service.is_some()).unwrap();
    let begun_at: DateTime<Utc> = text(&evacuation["created_at"]).parse().unwrap();
    assert_eq!(first.user, ACCOUNT);
    assert!(
        first.is_isolated && first.at >= ended_at && first.at >= begun_at,
        "{told:?}"
    );
}

/// `pods` are the member, and the node's agent.
fn what_was_let_go_was_not_running(
    plant: &Plant,
    pods: &[String; 2],
    volumes: &[String],
    ended_at: DateTime<Utc>,
) {
    let [member, agent] = pods;
    let told = deletions(plant, "pods");
    let forced: Vec<&Deletion> = told
        .iter()
        .filter(|one| one.is_forced && pods.contains(&one.uid))
        .collect();
    assert!(forced.iter().all(|one| one.at >= ended_at), "{forced:?}");
    // Ringfence and the cluster's collector are at it together; mostly Ringfence is first.
    let of_member = forced.iter().find(|one| one.uid == *member);
    let of_member = of_member.unwrap_or_else(|| panic!("{forced:?}"));
    for one in forced.iter().filter(|one| one.user == ACCOUNT) {
        assert_eq!(one.only_uid.as_ref(), Some(&one.uid));
    }
    assert!(forced.iter().any(|one| one.uid == *agent), "{told:?}");

    let told = deletions(plant, "volumeattachments");
    let detached: Vec<&Deletion> = told.iter().filter(|one| volumes.contains(&one.name)).collect();
    assert!(!detached.is_empty());
    let left_until = of_member.at + TimeDelta::seconds(LEFT_TO_THE_CLUSTER_S);
    for one in detached {
        assert!(one.at >= of_member.at, "{one:?}");
        assert!(one.user != ACCOUNT || one.at >= left_until, "{one:?}");
    }
}

/// Some remediators write the whole list.
fn marks_that_another_program_has_wiped_are_put_back(plant: &Plant, node: &str) {
    let theirs = json!({ "spec": { "taints": [{ "key": OTHER, "effect": "NoSchedule" }] } });
    let wiped = block_in_place(|| plant.api().patch(&node_path(node), &theirs).unwrap());
    assert!(taint(&wiped, OUT_OF_SERVICE).is_none() && taint(&wiped, FENCED).is_none());
    let has_all = |node: &Value| is_isolated(node) && taint(node, OUT_OF_SERVICE).is_some();
    let node = until(plant, "both taints again", &node_path(node), has_all);
    assert!(taint(&node, OTHER).is_some(), "{}", node["spec"]);
}

/// The cluster's controllers have not heard of it for some time.
async fn it_is_taken_back_in_order(plant: &Plant, node: &Kubelet) {
    let before = marks(plant, node.name()).len();
    plant.controllers().fall_behind(BEHIND);
    node.cut_off(false);
    block_in_place(|| node.start_again().unwrap());
    until_taken_back(plant, node.name()).await;
    let landed = json!({
        "metadata": { "name": "landed" },
        "spec": { "nodeName": node.name(), "containers": [{ "name": "main", "image": "none" }] },
    });
    let uid = uid_of(&block_in_place(|| plant.api().post(PODS, &landed).unwrap()));
    let landed_at = marks(plant, node.name()).last().unwrap().at;
    let turns = plant.controllers().turns();
    while plant.controllers().turns() < turns + 3 {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let removed = deletions(plant, "pods");
    let is_theirs = |one: &&Deletion| one.user == OutOfService::USER && one.at >= landed_at;
    let on_the_node: Vec<String> = pods_on(plant, node.name()).iter().map(uid_of).collect();
    let removed: Vec<&Deletion> = removed.iter().filter(is_theirs).collect();
    let of_this = removed
        .iter()
        .filter(|one| one.uid == uid || on_the_node.contains(&one.uid));
    assert_eq!(of_this.count(), 0, "{removed:?}");
    let still = until(plant, "the pod running", &format!("{PODS}/landed"), |pod| {
        pod["status"]["phase"] == "Running"
    });
    assert_eq!(uid_of(&still), uid);

    let told = marks(plant, node.name()).split_off(before);
    let released = told.iter().position(|marks| !marks.is_isolated).unwrap();
    let in_service = told[..released]
        .iter()
        .position(|one| one.out_of_service.is_none());
    let in_service = in_service.unwrap_or_else(|| panic!("{told:?}"));
    assert!(
        told[in_service..].iter().all(|one| one.out_of_service.is_none()),
        "{told:?}"
    );
    assert_eq!([&told[in_service].user, &told[released].user], [ACCOUNT; 2]);
    let settled = told[released].at - told[in_service].at;
    assert!(settled >= TimeDelta::seconds(SETTLED_S), "{settled}: {told:?}");
    let now = get(plant, &node_path(node.name()));
    assert!(taint(&now, OTHER).is_some(), "{}", now["spec"]);
    take_all_taints(plant, node.name());
}

/// Other programs and people take their own away.
fn take_all_taints(plant: &Plant, node: &str) {
    let none = json!({ "spec": { "taints": null } });
    block_in_place(|| plant.api().patch(&node_path(node), &none).unwrap());
}

/// A person has vouched for the node before Ringfence has proven anything.
async fn a_taint_that_a_person_has_set_stays(plant: Arc<Plant>) {
    let members = list(&plant, PODS, |pod| {
        text(&pod["metadata"]["name"]).starts_with("db-")
    });
    let is_spare = |node: &&Kubelet| members.iter().all(|pod| pod["spec"]["nodeName"] != node.name());
    let node = plant.nodes.iter().find(is_spare).unwrap();
    let path = node_path(node.name());
    block_in_place(|| node.kill());
    let theirs = json!({ "key": OUT_OF_SERVICE, "value": "by-hand", "effect": "NoExecute" });
    let change = json!({ "spec": { "taints": [theirs] } });
    block_in_place(|| plant.api().patch(&path, &change).unwrap());

    let fence = fence(&plant, node).await;
    until_evacuated(&plant, node.name(), &fence).await;
    block_in_place(|| node.start_again().unwrap());
    let rejoin = until_taken_back(&plant, node.name()).await;
    let told = marks(&plant, node.name());
    assert!(told.iter().any(|marks| marks.is_isolated));
    let tainted = told.iter().skip_while(|marks| marks.out_of_service.is_none());
    let is_theirs = |marks: &MarksTold| marks.out_of_service.as_deref() == Some("by-hand");
    assert!(
        tainted.clone().next().is_some() && tainted.clone().all(is_theirs),
        "{told:?}"
    );
    let now = get(&plant, &path);
    assert!(taint(&now, FENCED).is_none() && now["spec"]["unschedulable"] != true);
    assert!(
        !now["metadata"]["annotations"]
            .to_string()
            .contains("ringfence.io")
    );
    let said = "its taint node.kubernetes.io/out-of-service stays, since it is not Ringfence's";
    assert!(rejoin.to_string().contains(said), "{rejoin}");
    take_all_taints(&plant, node.name());
}

/// It is back while its pods are being removed, and gone again while it is being taken back.
async fn a_node_that_comes_and_goes(plant: &Plant) {
    let member = plant.until_running("db-0", |_| true);
    let uid = uid_of(&member);
    let node = plant.node(&member["spec"]["nodeName"]);
    let name = node.name();
    let held = json!({
        "metadata": { "name": "held", "finalizers": ["example.com/held"] },
        "spec": { "nodeName": name, "containers": [{ "name": "main", "image": "none" }] },
    });
    block_in_place(|| plant.api().post(PODS, &held).unwrap());
    block_in_place(|| node.kill());
    fence(plant, node).await;
    until(plant, "the first pod gone", &format!("{PODS}/db-0"), |pod| {
        uid_of(pod) != uid
    });
    block_in_place(|| node.start_again().unwrap());
    plant.until_seen(name, "UP").await;
    let let_go = json!({ "metadata": { "finalizers": null } });
    block_in_place(|| plant.api().patch(&format!("{PODS}/held"), &let_go).unwrap());
    let evacuation = plant.until_ended(name, "evacuation").await;
    assert_eq!(evacuation["status"], "cancelled", "{evacuation}");
    assert!(
        text(&evacuation["detail"]).starts_with("the host is back"),
        "{evacuation}"
    );

    let in_service = |node: &Value| taint(node, OUT_OF_SERVICE).is_none();
    until(plant, "in service again", &node_path(name), in_service);
    block_in_place(|| node.kill());
    let died = marks(plant, name).len();
    plant.until_seen(name, "UNREACHABLE").await;
    let host = plant.stack.client.host(name).await;
    assert_eq!(host["fencing_state"], "FENCED", "{host}");
    // It would have been opened meanwhile.
    tokio::time::sleep(Duration::from_secs(16)).await;
    let told = marks(plant, name).split_off(died);
    assert!(
        told.iter()
            .all(|one| one.is_isolated && one.out_of_service.is_none()),
        "{told:?}"
    );
    let host = plant.stack.client.host(name).await;
    assert_eq!(host["fencing_state"], "FENCED", "{host}");

    let again = fence(plant, node).await;
    let evacuation = until_evacuated(plant, name, &again).await;
    let told = marks(plant, name).split_off(died);
    let begun_at: DateTime<Utc> = text(&evacuation["created_at"]).parse().unwrap();
    let out = told.iter().find(|marks| marks.out_of_service.is_some());
    assert!(out.is_some_and(|marks| marks.at >= begun_at), "{told:?}");
    assert!(told.iter().all(|marks| marks.is_isolated), "{told:?}");
    assert_left_by_all(plant, name);
    let next = plant.until_running("db-0", |next| uid_of(next) != uid);
    assert_ne!(next["spec"]["nodeName"], name);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_is_out_of_service_from_its_evacuation_until_it_is_taken_back() {
    // No attempt at a step of a rejoin may take more than 30 s then.
    let policy = json!({ "auto_rejoin": true, "rejoin_wait_s": 30, "evacuation": { "automatic": true } });
    let plant = Arc::new(Plant::start_newer(Ground::Standalone, policy).await);
    block_in_place(|| the_front_passes_on_what_it_is_asked(&plant));
    run_agents(&plant);
    let member = tokio::spawn(a_member_of_a_node_that_is_taken_out_of_service(Arc::clone(
        &plant,
    )));
    let foreign = tokio::spawn(a_taint_that_a_person_has_set_stays(Arc::clone(&plant)));
    for story in [member, foreign] {
        story.await.unwrap();
    }
    plant.controllers().fall_behind(Duration::ZERO);
    a_node_that_comes_and_goes(&plant).await;
    let twice = block_in_place(|| {
        running_twice(&plant.nodes)
            .unwrap()
            .map(|runs| format!("{runs:?}"))
    });
    assert_eq!(twice, None);
    Arc::into_inner(plant).unwrap().stack.stop().await;
}
