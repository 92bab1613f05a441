//! `ringfence doctor` on the machine of a service.

use ringfence_tests::{
    Client, FakeNova, Ground, Machine, Site, set_up, start_api, start_engine, start_worker,
};
use serde_json::{Value, json};

use super::distributed::configure;

/// Every finding as `state part`, and the exit code.
async fn examine(machine: &Machine, more: &[&str]) -> (Vec<Value>, Option<i32>) {
    let asked = machine.run(&[&["doctor", "-o", "json"], more].concat()).await;
    let report: Value = serde_json::from_str(&asked.out).unwrap_or_else(|_| panic!("{asked:?}"));
    (report["findings"].as_array().unwrap().clone(), asked.code)
}

fn failed(findings: &[Value]) -> Vec<String> {
    findings
        .iter()
        .filter(|finding| finding["state"] == "failed")
        .map(|finding| {
            assert!(finding["remedy"].is_string(), "{finding}");
            format!(
                "{}: {}",
                finding["part"].as_str().unwrap(),
                finding["found"].as_str().unwrap()
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_keeps_a_host_from_being_fenced_is_found_before_it_has_to_be() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let (findings, code) = examine(&machine, &[]).await;
    assert_eq!(code, Some(1));
    let found = failed(&findings);
    assert!(
        found.iter().any(|f| f.contains("ringfence.claims: nobody")),
        "{found:#?}"
    );

    let mut api = start_api(&machine);
    let engine = start_engine(&machine, "engine-1");
    let worker = start_worker(&machine, "worker-1");
    let url = api.until_it_listens("the API listens").await;
    let client = Client::new(&url, Some(&token));
    configure(&machine, &client, &["h1", "h2"], json!({})).await;
    let (findings, code) = examine(&machine, &["--devices"]).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    assert_eq!(failed(&findings), Vec::<String>::new());
    let text = |part: &str| {
        let of = findings.iter().filter(|finding| finding["part"] == part);
        of.map(|finding| finding["found"].to_string())
            .collect::<Vec<_>>()
            .join("\n")
    };
    assert!(text("devices").contains("power: on after"), "{findings:#?}");
    assert!(
        text("queues").contains("ringfence.tasks.power.default"),
        "{findings:#?}"
    );

    // A host in a zone that nobody serves, and one whose plan names a parameter that it has to give.
    client
        .post("/hosts", json!({ "name": "far", "zone": "moon" }))
        .await
        .ok(201);
    drop(worker);
    let (findings, code) = examine(&machine, &[]).await;
    assert_eq!(code, Some(1));
    let found = failed(&findings).join("\n");
    assert!(
        found.contains("ringfence.tasks.power.moon: nobody has ever served it"),
        "{found}"
    );
    assert!(
        found.contains("only a person could prove a fence now for far, h1, h2"),
        "{found}"
    );
    drop((api, engine));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_away_is_named_with_its_address_and_without_its_password() {
    let machine = Machine::new()
        .set(
            "RINGFENCE_DATABASE_URL",
            "postgres://ringfence:hushhush@127.0.0.1:1/ringfence",
        )
        .set("RINGFENCE_BUS_URL", "amqp://ringfence:hushhush@127.0.0.1:1");
    let asked = machine.run(&["doctor"]).await;
    assert_eq!(asked.code, Some(1), "{asked:?}");
    assert!(asked.out.contains("127.0.0.1:1"), "{asked:?}");
    assert!(!format!("{asked:?}").contains("hushhush"), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standalone_service_is_examined_where_it_has_its_data() {
    let machine = Machine::new();
    let asked = machine.run(&["doctor"]).await;
    assert_eq!(asked.code, Some(1), "{asked:?}");
    assert!(
        asked
            .out
            .contains("no standalone service has left a database here"),
        "{asked:?}"
    );
    let mut service = machine.start("standalone", &["standalone", "--listen", "127.0.0.1:0"]);
    service.until_it_listens("ready").await;
    let asked = machine.run(&["doctor"]).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");
    assert!(asked.out.contains("has the schema of this build"), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nova_whose_clock_goes_wrong_is_told() {
    let nova = FakeNova::start(&["c1"]).with_clock(-3600);
    let machine = Machine::new();
    let file = machine.file("clouds.yaml");
    let auth = format!(
        "auth: {{ auth_url: {}, username: u, password: p, project_name: p }}",
        nova.auth_url()
    );
    std::fs::write(
        &file,
        format!("clouds:\n  lab:\n    {auth}\n    region_name: RegionOne\n"),
    )
    .unwrap();
    let set = [
        ("RINGFENCE_OPENSTACK_CLOUDS", "lab"),
        ("RINGFENCE_OPENSTACK_CLOUDS_FILE", file.to_str().unwrap()),
    ];
    let asked = machine.run_with(&["doctor"], &set).await;
    assert!(asked.out.contains("lab: Nova's clock is 3"), "{asked:?}");
    assert!(asked.out.contains("behind this machine's"), "{asked:?}");
    assert!(asked.out.contains("lab: Nova has 1 hosts; 1 are up"), "{asked:?}");
    // It has no Placement at all.
    assert!(asked.out.contains("cloud lab has no placement"), "{asked:?}");
}
