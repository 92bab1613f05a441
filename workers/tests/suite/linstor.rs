//! The controller of a LINSTOR as its published API describes it, and what is none.

use std::collections::BTreeMap;

use ringfence_core::{FrozenMethod, Heartbeat, ObservedState, Resource};
use ringfence_workers::{Secrets, WorkerError};
use serde_json::{Value, json};

use crate::http::{Answer, Asked, Server};
use crate::{drivers, method, seconds};

const TOKEN: &str = "linstor-token-1";

fn method_of(server: &Server) -> FrozenMethod {
    method("linstor", Resource::Heartbeat, &[("url", &server.address)])
}

async fn read(server: &Server, hosts: &[&str]) -> Result<BTreeMap<String, Heartbeat>, WorkerError> {
    let hosts: Vec<String> = hosts.iter().copied().map(str::to_owned).collect();
    let driver = drivers().get("linstor").unwrap();
    let secrets: Secrets = [("token", TOKEN)].into_iter().collect();
    driver
        .heartbeats(&method_of(server), &secrets, &hosts, seconds(2))
        .await
}

fn node(name: &str, kind: &str, status: &str) -> Value {
    json!({
        "name": name, "type": kind, "connection_status": status, "flags": [], "props": {},
        "net_interfaces": [{ "name": "default", "address": "192.0.2.7", "satellite_port": 3366, "is_active": true }],
    })
}

/// A cluster in all states, of which `n1` alone is known to live.
fn cluster(asked: &Asked) -> Answer {
    let path = asked.path.split('?').next().unwrap();
    match path.strip_prefix("/v1/physical-storage/") {
        None => Answer::new(
            200,
            json!([
                node("N1", "SATELLITE", "ONLINE"),
                node("n2", "Satellite", "OFFLINE"),
                node("n3", "COMBINED", "ONLINE"),
                node("n4", "Satellite", "ONLINE"),
                node("n5", "REMOTE_SPDK", "ONLINE"),
                node("n6", "Satellite", "ONLINE"),
                node("n7", "Satellite", "VERSION_MISMATCH"),
            ]),
        ),
        Some("N1") => Answer::new(200, json!([{ "device": "/dev/vdb", "size": 1_073_741_824 }])),
        // Of a satellite that was stopped, which its controller has not noticed.
        Some("n3") => Answer::silent(),
        Some("n6") => Answer::new(200, json!({ "devices": [] })),
        Some("n7") => Answer::new(500, json!([{ "ret_code": -1, "message": "not connected" }])),
        Some("n4") => Answer::empty(302).header("location", "/v1/physical-storage/N1"),
        Some(other) => panic!("{other} is asked"),
    }
}

#[track_caller]
fn assert_unclear(heartbeat: &Heartbeat, words: &str) {
    let Heartbeat::Unclear { why } = heartbeat else {
        panic!("{heartbeat:?}");
    };
    assert!(why.contains(words), "{why}");
}

#[tokio::test]
async fn a_satellite_that_answers_is_a_sign_of_life_and_the_status_of_its_node_is_none() {
    let server = Server::start(cluster).await;
    let hosts = ["n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8"];
    let read = read(&server, &hosts).await.unwrap();
    let heard = Heartbeat::Heard {
        by: "the satellite of N1 has answered".to_owned(),
        within_s: 0,
    };
    assert_eq!((&read["n1"], &read["n2"]), (&heard, &Heartbeat::Unheard));
    assert_unclear(&read["n3"], "shows ONLINE, and the satellite has not answered");
    assert_unclear(&read["n4"], "HTTP 302; redirects are not followed");
    assert_unclear(&read["n5"], "is a remote_spdk, which has no satellite of its own");
    assert_unclear(&read["n6"], "otherwise than LINSTOR does");
    assert_unclear(&read["n7"], "shows VERSION_MISMATCH");
    assert_unclear(&read["n8"], "no node \"n8\"");
    let asked = server.asked();
    let first = &asked[0];
    assert_eq!(first.header("authorization"), Some(&*format!("Bearer {TOKEN}")));
    assert!(first.path.contains("&nodes=n1&nodes=n2&"), "{first:?}");
}

#[tokio::test]
async fn what_is_no_controller_says_nothing_of_any_host() {
    let large = || json!([node(&"n".repeat(2 * 1024 * 1024), "Satellite", "ONLINE")]);
    type Make = Box<dyn Fn() -> Answer + Send + Sync>;
    let odd: [(Make, &str); 6] = [
        (Box::new(Answer::silent), "did not answer in time"),
        (
            Box::new(move || Answer::new(200, large())),
            "has more than 1048576 bytes",
        ),
        (
            Box::new(|| Answer::new(200, json!({ "nodes": [] }))),
            "otherwise than LINSTOR does",
        ),
        (
            Box::new(|| Answer::new(200, json!([{ "name": "n1" }]))),
            "otherwise than LINSTOR does",
        ),
        (
            Box::new(|| Answer::empty(307).header("location", "http://192.0.2.1/")),
            "redirects are not followed",
        ),
        (
            Box::new(|| Answer::new(401, json!([{ "message": "no" }]))),
            "HTTP 401",
        ),
    ];
    for (answer, words) in odd {
        let server = Server::start(move |_| answer()).await;
        let why = read(&server, &["n1"]).await.unwrap_err().to_string();
        assert!(why.contains(words) && !why.contains(TOKEN), "{why}");
    }
}

#[tokio::test]
async fn a_check_says_whether_the_controller_and_a_satellite_answer() {
    let server = Server::start(cluster).await;
    let driver = drivers().get("linstor").unwrap();
    let mut method = method_of(&server);
    let none = Secrets::default();
    let seen = driver.observe(&method, &none, seconds(2)).await.unwrap();
    assert_eq!(seen.detail, "the storage can be read");
    for (host, state, words) in [
        ("n1", ObservedState::Readable, "within 0 s: the satellite of N1"),
        ("n2", ObservedState::Readable, "does not hear the host"),
        ("n3", ObservedState::Unknown, "has not answered"),
    ] {
        method.parameters.insert("host".to_owned(), host.to_owned());
        let seen = driver.observe(&method, &none, seconds(2)).await.unwrap();
        assert_eq!(seen.state, state, "{seen:?}");
        assert!(seen.detail.contains(words), "{seen:?}");
    }
}
