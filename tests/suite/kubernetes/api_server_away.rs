//! The API server is away for a minute in each phase: nothing is taken for silence, and what was begun goes on when it is back.

use std::time::Duration;

use ringfence_lab::{Component, Kubelet, running_twice};
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;
use tokio::time::{Instant, sleep};

use super::plant::Plant;

/// Longer than a silent node takes to become UNREACHABLE, than a call to the API server may take, and than most pauses between tries.
const AWAY: Duration = Duration::from_mins(1);

/// A node for each phase.
struct Phases<'a> {
    /// Falls silent while the API server is away; no fence is asked for.
    silent: &'a Kubelet,
    /// Is fenced meanwhile.
    fenced: &'a Kubelet,
    /// Is being emptied.
    emptied: &'a Kubelet,
    /// Is being taken back.
    taken_back: &'a Kubelet,
    /// Nothing happens to it.
    alive: &'a Kubelet,
}

impl<'a> Phases<'a> {
    /// Those that have members are emptied.
    fn of(plant: &'a Plant) -> Self {
        let of_member = |name| plant.node(&plant.until_running(name, |_| true)["spec"]["nodeName"]);
        let (taken_back, emptied) = (of_member("db-0"), of_member("db-1"));
        let has_none = |node: &&Kubelet| node.name() != taken_back.name() && node.name() != emptied.name();
        let others: Vec<&Kubelet> = plant.nodes.iter().filter(has_none).collect();
        let &[silent, fenced, alive] = others.as_slice() else {
            panic!("there are {} other nodes", others.len());
        };
        Self {
            silent,
            fenced,
            emptied,
            taken_back,
            alive,
        }
    }
}

impl Plant {
    fn lose_api_server(&self) {
        block_in_place(|| self.plane.kill(Component::ApiServer));
    }

    fn find_api_server(&self) {
        block_in_place(|| self.plane.start_again(Component::ApiServer).unwrap());
    }

    /// While the API server is away, no controller says of a node that fell silent that it is not Ready: when it is back, a pod may still be
    /// given to that node, and waits there for the person who has it fenced.
    fn give_no_pods(&self, node: &Kubelet) {
        let taint = json!({ "key": "example.org/kept-free", "effect": "NoSchedule" });
        let change = json!({ "spec": { "taints": [taint] } });
        let path = format!("/api/v1/nodes/{}", node.name());
        block_in_place(|| self.api().patch(&path, &change).unwrap());
    }

    async fn host(&self, node: &Kubelet) -> Value {
        let path = format!("/hosts/{}", node.name());
        self.stack.client.get(&path).await.ok(200)
    }

    async fn ask(&self, node: &Kubelet, what: &str) {
        let path = format!("/hosts/{}/{what}", node.name());
        let reason = json!({ "reason": "its member is missed" });
        self.stack.client.post(&path, reason).await.ok(202);
    }

    async fn until_succeeded(&self, node: &Kubelet, kind: &str) {
        let ended = self.until_ended(node.name(), kind).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
    }
}

/// For as long as the API server is away: no node is taken for silent, and no operation waits for a person.
async fn assert_nothing_is_concluded(plant: &Plant, phases: &Phases<'_>) {
    let begun = Instant::now();
    while begun.elapsed() < AWAY {
        for node in [phases.silent, phases.alive] {
            let host = plant.host(node).await;
            assert_ne!(host["failure_state"], "UNREACHABLE", "{host}");
        }
        for (node, kind) in [(phases.emptied, "evacuation"), (phases.taken_back, "rejoin")] {
            let operation = plant.host(node).await["operation"].clone();
            let told = [&operation["kind"], &operation["status"]];
            assert_eq!(told, [kind, "running"], "{operation}");
        }
        sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_server_that_is_away_is_no_silence_and_holds_up_what_it_is_needed_for_alone() {
    // A try that is counted against a pod is one too many.
    let policy = json!({ "evacuation": { "retries": 0 } });
    let plant = Plant::start_with_nodes(Ground::Standalone, policy, &["n1", "n2", "n3", "n4", "n5"]).await;
    let phases = Phases::of(&plant);
    plant.give_no_pods(phases.silent);
    for node in [phases.fenced, phases.emptied, phases.taken_back] {
        block_in_place(|| node.kill());
    }
    for node in [phases.fenced, phases.emptied, phases.taken_back] {
        plant.until_seen(node.name(), "UNREACHABLE").await;
    }
    for node in [phases.emptied, phases.taken_back] {
        plant.stack.client.fence(node.name()).await;
        plant.until_succeeded(node, "fence").await;
    }
    plant.ask(phases.taken_back, "evacuate").await;
    plant.until_succeeded(phases.taken_back, "evacuation").await;

    block_in_place(|| {
        phases.taken_back.start_again().unwrap();
        // Without its volume driver it starts no member for minutes.
        phases.taken_back.until_ready().unwrap();
    });
    plant.ask(phases.taken_back, "rejoin").await;
    plant.ask(phases.emptied, "evacuate").await;
    plant.lose_api_server();
    block_in_place(|| phases.silent.kill());
    plant.stack.client.fence(phases.fenced.name()).await;
    assert_nothing_is_concluded(&plant, &phases).await;
    // Its proof does not rest on the API server. The gate needs to know that the host is silent.
    let fenced = plant.host(phases.fenced).await;
    assert_eq!(fenced["fencing_state"], "FENCED", "{fenced}");
    plant.find_api_server();

    plant.until_seen(phases.silent.name(), "UNREACHABLE").await;
    plant.until_seen(phases.alive.name(), "UP").await;
    plant.until_succeeded(phases.fenced, "fence").await;
    plant.until_seen(phases.fenced.name(), "UNREACHABLE").await;
    plant.until_succeeded(phases.emptied, "evacuation").await;
    let name = phases.emptied.name();
    plant.until_running("db-1", |next| next["spec"]["nodeName"] != name);
    plant.until_succeeded(phases.taken_back, "rejoin").await;
    plant.until_seen(phases.taken_back.name(), "UP").await;
    assert_eq!(block_in_place(|| running_twice(&plant.nodes).unwrap()), None);
    plant.stack.stop().await;
}
