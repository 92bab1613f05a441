//! Fences that begin by themselves, on hosts that carry a real Ceph.

use ringfence_core::Resource;
use ringfence_lab::{Ceph, CephPrograms};
use ringfence_tests::{Ground, Site, Stack, StackOptions, power_plan};
use serde_json::{Value, json};

use crate::api::refused;

/// A Ceph on hosts h1, h2 and h3 of five.
async fn on_three_of_five(ground: Ground) -> (Stack, Ceph) {
    let programs = CephPrograms::from_environment().unwrap_or_else(|| {
        panic!("RINGFENCE_TEST_CEPH is not set; run this through `cargo xtask test` or `cargo xtask lab`")
    });
    let ceph = tokio::task::spawn_blocking(move || Ceph::start_on(&programs, &["h1", "h2", "h3"]))
        .await
        .unwrap()
        .unwrap();
    let options = StackOptions {
        hosts: 5,
        ceph: Some(ceph.program()),
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(ground).await, options).await;
    let method = json!({
        "name": "main", "resource": "storage", "driver": "ceph",
        "parameters": { "conf": ceph.conf() },
        "secrets": { "keyring": format!("file:{}", ceph.keyring_file().unwrap().display()) },
    });
    stack.client.post("/methods", method).await.ok(201);
    stack.client.set_default_policy(policy(&["main"])).await.ok(200);
    stack.plan(power_plan()).await;
    stack.observe().await;
    (stack, ceph)
}

fn policy(ceph: &[&str]) -> Value {
    json!({ "fencing": { "automatic": true, "after_s": 0, "at_most": 10, "at_most_percent": 100, "ceph": ceph } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_whose_osds_are_up_is_fenced_and_the_next_one_waits_until_all_groups_are_clean_again() {
    let (stack, mut ceph) = on_three_of_five(Ground::Distributed).await;
    let told = stack.client.get("/hosts/h1/explanation").await.ok(200);
    let ruling = &told["fence"]["safeguards"][0];
    assert_eq!(
        (&ruling["safeguard"], &ruling["verdict"], &ruling["reason"]),
        (
            &json!("ceph"),
            &json!("allow"),
            &json!("Ceph main goes on without the 1 OSDs of the host")
        ),
        "{told}"
    );
    stack.hang("h1").await;
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;
    // Its OSD has gone with it, and Ceph has not noticed.
    stack.hang("h2").await;
    let lost = "those of h1, which are FENCED or being fenced, are counted as lost";
    let held = stack.until_held("ceph", "h2", "hold", lost).await;
    assert_eq!(
        held["held"]["by"][0]["release"], "placement groups that are all active and clean",
        "{held}"
    );
    ceph.kill_osd(0);
    // No OSD is on this one.
    stack.hang("h4").await;
    stack.client.until_fenced("h4").await;
    stack.until_held("ceph", "h2", "hold", "undersized").await;
    let ceph = tokio::task::spawn_blocking(move || ceph.replace_osd(0, "h5").map(|()| ceph))
        .await
        .unwrap()
        .unwrap();
    stack.client.until_fenced("h2").await;
    stack.judge("h2").await;
    drop(ceph);
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_whose_osds_are_down_is_not_held_by_its_own_failure_and_what_is_not_known_holds() {
    let (stack, mut ceph) = on_three_of_five(Ground::Standalone).await;
    ceph.kill_osd(0);
    while !ceph.is_down(0).unwrap() {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    stack.hang("h1").await;
    stack.client.until_fenced("h1").await;
    stack.judge("h1").await;
    ceph.silence_manager().unwrap();
    stack.hang("h2").await;
    let held = stack
        .until_held("ceph", "h2", "unknown", "Ceph main could not be asked")
        .await;
    // A person may say otherwise, and sees what is overridden.
    let detail = held["detail"].as_str().unwrap();
    assert!(
        detail.starts_with("held by ceph: Ceph main could not be asked"),
        "{held}"
    );
    stack.client.retry(&held, "its rack burns").await;
    stack.client.until_fenced("h2").await;
    ceph.wake_manager().unwrap();
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ceph_that_cannot_be_asked_is_refused_in_a_policy() {
    let stack = Stack::start(Ground::Standalone).await;
    stack.simulated_method("power", Resource::Power).await;
    let answer = stack.client.set_default_policy(policy(&["main", "power"])).await;
    let words = [
        "policy.fencing.ceph[0]: is \"main\", and no method has this name; the name of a method of driver ceph is allowed",
        "policy.fencing.ceph[1]: is \"power\", and its driver is simulated; the name of a method of driver ceph is allowed",
    ];
    refused(&answer, 400, "fencing.request.invalid", &words);
    let method = json!({ "name": "main", "resource": "storage", "driver": "ceph" });
    stack.client.post("/methods", method).await.ok(201);
    stack.client.set_default_policy(policy(&["main"])).await.ok(200);
    let answer = stack.client.delete("/methods/main").await;
    refused(
        &answer,
        409,
        "fencing.in_use",
        &["is named by policy.fencing.ceph of segment \"default\""],
    );
    stack.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_answers_no_monitor_and_keeps_its_image_open_is_up_until_its_client_is_gone() {
    let programs = CephPrograms::from_environment().unwrap();
    let start = move || {
        let ceph = Ceph::start(&programs)?;
        ceph.make_image("alive")?;
        let client = ceph.open_image("alive")?;
        Ok::<_, ringfence_lab::LabError>((ceph, client))
    };
    let (ceph, client) = tokio::task::spawn_blocking(start).await.unwrap().unwrap();
    let options = StackOptions {
        hosts: 2,
        ceph: Some(ceph.program()),
        ..StackOptions::default()
    };
    let stack = Stack::start_with(Site::new(Ground::Standalone).await, options).await;
    let method = json!({
        "name": "watch", "resource": "heartbeat", "driver": "rbd-watch",
        "parameters": {
            "pool": Ceph::POOL, "images": "alive", "conf": ceph.conf(), "user": Ceph::READING_USER,
            "watch_timeout_s": Ceph::WATCH_TIMEOUT_S, "silent_after_s": "15",
        },
        "secrets": { "keyring": format!("file:{}", ceph.reading_keyring_file().unwrap().display()) },
    });
    stack.client.post("/methods", method).await.ok(201);
    for (host, address) in [("h1", Ceph::ADDRESS), ("h2", "192.0.2.7")] {
        let parameters = json!({ "parameters": { "watch": { "host": address } } });
        stack
            .client
            .patch(&format!("/hosts/{host}"), parameters)
            .await
            .ok(200);
    }
    let heartbeats = json!({ "heartbeats": ["watch"] });
    stack.client.set_default_policy(heartbeats).await.ok(200);
    stack.observe().await;
    stack.hang("h1").await;
    let monitor = stack.client.keep_missing("h1", None);
    let soon = std::time::Duration::from_secs(90);
    let until = async |is_so: fn(&Value) -> bool| stack.client.until_within("/hosts/h1", soon, is_so).await;
    let up = until(|host| host["failure_state"] == "UP").await;
    assert_eq!(up["failure_source"], "heartbeat:watch", "{up}");
    let gates = stack.client.gates("h1").await;
    assert_eq!(gates["evacuate"]["allowed"], false, "{gates}");
    drop(client);
    let gone = until(|host| {
        let is_silent =
            |source: &Value| source["name"] == "heartbeat:watch" && source["state"] == "UNREACHABLE";
        host["sources"].as_array().unwrap().iter().any(is_silent)
    })
    .await;
    assert_eq!(gone["failure_state"], "UNREACHABLE", "{gone}");
    // It never had the image open.
    let other = stack.client.host("h2").await;
    assert_eq!(other["sources"].as_array().unwrap().len(), 1, "{other}");
    drop(monitor);
    drop(ceph);
    stack.stop().await;
}
