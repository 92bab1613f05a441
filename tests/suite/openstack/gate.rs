//! Nova's scheduler asks Ringfence before it places a server, and Nova's API before it evacuates a server or unforces a host.

use std::time::Duration;

use ringfence_lab::{Answer, Api, Call, NewServer, NovaApiOptions};
use ringfence_tests::Ground;
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::hook::Asked;
use super::plant::Plant;

/// A call as an admin would make it with `curl`, at this Nova or at the shared one.
fn ask(plant: &Plant, at: Option<&str>, method: &'static str, path: &str, body: Value) -> Answer {
    let call = Call {
        base: at.map(ToOwned::to_owned),
        ..Call::new(method, Api::Compute, path).json(body)
    };
    block_in_place(|| plant.cloud.ask(&call).unwrap())
}

fn evacuate(plant: &Plant, server: &str) -> Answer {
    let path = format!("/servers/{server}/action");
    ask(plant, None, "POST", &path, json!({ "evacuate": {} }))
}

fn unforce(plant: &Plant, at: Option<&str>, host: &str) -> Answer {
    let service = block_in_place(|| plant.cloud.compute_service(host).unwrap());
    let path = format!("/os-services/{}", service.id);
    ask(plant, at, "PUT", &path, json!({ "forced_down": false }))
}

#[track_caller]
fn assert_refused(answer: &Answer, message: &str) {
    assert_eq!(answer.status, 409, "{}", answer.body);
    assert_eq!(
        answer.body,
        json!({ "conflictingRequest": { "code": 409, "message": message } })
    );
}

/// Waits until a server is on one of these hosts.
async fn until_on(plant: &Plant, server: &str, hosts: &[&str]) {
    for _ in 0..120 {
        let server = block_in_place(|| plant.cloud.server(server).unwrap());
        if server.host.as_deref().is_some_and(|host| hosts.contains(&host)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    panic!("{server} did not come to {hosts:?} within 60 s");
}

/// Fences a host whose BMC does not answer, and which Nova sees up: the fence does not end.
async fn fence_without_end(plant: &Plant, host: &str) {
    let client = &plant.stack.client;
    let nowhere = json!({ "parameters": { "bmc": { "port": "1" } } });
    client.patch(&format!("/hosts/{host}"), nowhere).await.ok(200);
    for _ in 0..50 {
        // A second later the cloud's own observation reports the host UP again.
        client.seen(host, "UNREACHABLE").await.ok(200);
        let asked = client
            .post(&format!("/hosts/{host}/fence"), json!({ "reason": "a story" }))
            .await;
        if asked.status == 202 {
            return;
        }
    }
    panic!("no fence of {host} was accepted while the test reported it UNREACHABLE");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nova_neither_places_nor_evacuates_a_server_against_the_gates() {
    let names = ["gate-a", "gate-b", "gate-c"];
    let mut plant = Plant::start(Ground::Distributed, names, json!({})).await;
    let client = plant.stack.client.clone();
    let servers = plant.machines[0].with(|host| plant.cloud.boot(host, &["g1", "g2"], &[]).unwrap());
    let [first, second] = [0, 1].map(|index: usize| servers[index].id.clone());
    let not_fenced = |server: &str| format!("Cannot 'evacuate' instance {server}: the host is not FENCED");

    // A host that is being fenced gets no server, although Nova sees it up and enabled.
    fence_without_end(&plant, "gate-c").await;
    let new = ["n1", "n2", "n3", "n4", "n5", "n6"].map(NewServer::new);
    let placed = block_in_place(|| plant.cloud.boot_all(&new).unwrap());
    let is_on_c = |host: &Option<String>| host.as_deref() == Some("gate-c");
    assert!(placed.iter().all(|server| !is_on_c(&server.host)), "{placed:?}");
    let log = plant.cloud.description().folder.join("log/nova-scheduler.log");
    let log = std::fs::read_to_string(log).unwrap();
    let refusal = |line: &&str| line.contains("Ringfence refuses") && line.contains("gate-c (");
    assert!(
        log.lines().any(|line| refusal(&line)),
        "the scheduler's log has no refusal for gate-c"
    );
    let service = block_in_place(|| plant.cloud.compute_service("gate-c").unwrap());
    assert!(service.is_up() && service.status == "enabled", "{service:?}");

    // No server leaves a host before the host is FENCED, although Nova itself would allow it.
    assert_refused(&evacuate(&plant, &first), &not_fenced(&first));
    plant.machines[0].kill();
    plant.until_seen("gate-a", "UNREACHABLE").await;
    assert_refused(&evacuate(&plant, &first), &not_fenced(&first));
    client.fence("gate-a").await;
    let fence = plant.until_ended("gate-a", "fence").await;
    assert_eq!(fence["status"], "succeeded", "{fence}");
    let evacuated = evacuate(&plant, &first);
    assert_eq!(evacuated.status, 200, "{}", evacuated.body);
    until_on(&plant, &first, &["gate-b"]).await;
    plant.judge();

    // A FENCED host cannot be unforced.
    let refusal = "Unable to force up host gate-a: the host is FENCED; rejoin it";
    assert_refused(&unforce(&plant, None, "gate-a"), refusal);

    // Without the hook, `on_error` decides: one Nova is closed, the other open.
    let closed = NovaApiOptions {
        settings: "[ringfence]\non_error = closed\n".to_owned(),
        ..NovaApiOptions::default()
    };
    let closed = block_in_place(|| plant.cloud.nova_api(closed).unwrap());
    assert_refused(&unforce(&plant, Some(&closed.url()), "gate-a"), refusal);
    plant.asked = None;
    let unanswered = unforce(&plant, Some(&closed.url()), "gate-a");
    assert_eq!(unanswered.status, 503, "{}", unanswered.body);
    let words = unanswered.body["serviceUnavailable"]["message"].as_str().unwrap();
    assert!(words.starts_with("Ringfence cannot be asked"), "{words}");
    let evacuated = evacuate(&plant, &second);
    assert_eq!(evacuated.status, 200, "{}", evacuated.body);
    plant.asked = Some(Asked::start(&plant.cloud, &plant.stack).await);
    // Without the hook the filter lets servers on every host that Nova sees up.
    until_on(&plant, &second, &["gate-b", "gate-c"]).await;
    plant.judge();
    plant.stop().await;
}
