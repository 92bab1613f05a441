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
async fn the_doctor_finds_what_would_keep_a_host_from_being_fenced() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let (findings, code) = examine(&machine, &[]).await;
    assert_eq!(code, Some(1));
    let found = failed(&findings);
    assert!(
        found.iter().any(|f| f.contains("ringfence.claims: no service")),
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
    assert!(
        text("devices").contains("power: asked now, 2 of 2 devices tell their state: 2 on"),
        "{findings:#?}"
    );
    assert!(
        text("queues").contains("ringfence.tasks.power.default"),
        "{findings:#?}"
    );

    // A host in a zone without a worker; then the worker of the default zone ends as well.
    client
        .post("/hosts", json!({ "name": "far", "zone": "moon" }))
        .await
        .ok(201);
    drop(worker);
    let (findings, code) = examine(&machine, &[]).await;
    assert_eq!(code, Some(1));
    let found = failed(&findings).join("\n");
    assert!(
        found.contains("ringfence.tasks.power.moon: no service has ever served it"),
        "{found}"
    );
    assert!(
        found.contains("hosts: 3 of 3 cannot be fenced without a person: far, h1, h2"),
        "{found}"
    );
    drop((api, engine));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_asks_the_device_of_every_host() {
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let mut api = start_api(&machine);
    let _running = (
        start_engine(&machine, "engine-1"),
        start_worker(&machine, "worker-1"),
    );
    let url = api.until_it_listens("the API listens").await;
    let client = Client::new(&url, Some(&token));
    let dir = configure(&machine, &client, &["h1", "h2", "h3"], json!({})).await;
    let unused =
        json!({ "name": "spare", "driver": "simulated", "parameters": { "device": "${host.name}" } });
    client.post("/methods", unused).await.ok(201);
    std::fs::write(dir.join("h2"), "on fire").unwrap();

    let (findings, code) = examine(&machine, &["--devices"]).await;
    assert_eq!(code, Some(1), "{findings:#?}");
    // The broken device is the only device of h2.
    assert_eq!(
        failed(&findings),
        ["hosts: 1 of 3 cannot be fenced without a person: h2"]
    );
    let found = |findings: &[Value], state: &str| {
        let of = findings
            .iter()
            .filter(|f| f["part"] == "devices" && f["state"] == state);
        let found: Vec<String> = of.map(|f| f["found"].as_str().unwrap().to_owned()).collect();
        found
    };
    assert_eq!(
        found(&findings, "ok"),
        ["power: asked now, 2 of 3 devices tell their state: 2 on"]
    );
    let warned = found(&findings, "warning");
    assert!(warned[0].contains("no host's plan uses spare"), "{warned:?}");
    assert!(warned[1].starts_with("power for h2: "), "{warned:?}");

    // Only the named method and host are asked; other methods are not mentioned.
    let (findings, code) = examine(&machine, &["--devices", "--method", "power", "--host", "h3"]).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    let one = "power: asked now, 1 of 1 devices tell their state: 1 on";
    assert!(found(&findings, "ok").contains(&one.to_owned()), "{findings:#?}");
    for words in [["--devices", "--host", "h9"], ["--devices", "--method", "gone"]] {
        let (findings, code) = examine(&machine, &words).await;
        assert_eq!(code, Some(1), "{findings:#?}");
    }
    drop(api);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unreachable_peer_is_named_with_its_address_and_without_its_password() {
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
async fn the_doctor_examines_a_standalone_service_by_its_data_directory() {
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
    drop(service);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_device_is_a_warning_while_its_host_can_be_fenced_by_other_devices() {
    let machine = Machine::new().set("RINGFENCE_DATA_DIR", "data");
    let words = ["standalone", "--demo", "--listen", "127.0.0.1:0"];
    let mut service = machine.start("standalone", &words);
    service.until_it_listens("ready").await;
    let asked = machine.run(&["doctor", "--devices", "-o", "json"]).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");
    let report = asked.json();
    let both = "storage.fence by demo-storage, network.fence by demo-network";
    assert_eq!(
        report["hosts"],
        json!([
            {"hosts": ["sim-1", "sim-2", "sim-3", "sim-4", "sim-6"], "can_be_fenced": true,
             "by": ["power.off by demo-power", both], "not_by": []},
            {"hosts": ["sim-5"], "can_be_fenced": true, "by": [both],
             "not_by": ["demo-power: its device does not tell its state"]},
        ])
    );
    let shown = machine.run(&["doctor"]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    assert!(shown.out.contains("CAN BE FENCED"), "{shown:?}");
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_finds_hosts_that_a_standalone_service_cannot_fence() {
    let machine = Machine::new().set("RINGFENCE_DATA_DIR", "data");
    let words = ["standalone", "--demo", "--listen", "127.0.0.1:0"];
    let mut service = machine.start("standalone", &words);
    let url = service.until_it_listens("ready").await;
    let token = std::fs::read_to_string(machine.file("data/admin.token")).unwrap();
    let client = Client::new(&url, Some(token.trim()));
    // The service asks its devices itself.
    let (findings, code) = examine(&machine, &["--devices", "--host", "sim-1"]).await;
    assert_eq!(code, Some(0), "{findings:#?}");
    let told = Value::from(findings).to_string();
    assert!(
        told.contains("each of 6 can be fenced without a person"),
        "{told}"
    );
    for method in ["demo-power", "demo-storage", "demo-network"] {
        let said = format!("{method}: asked now, 1 of 1 devices tell their state");
        assert!(told.contains(&said), "{told}");
    }

    // A device that the method names for every host.
    let fixed = json!({
        "name": "fixed", "resource": "power", "driver": "simulated", "parameters": { "device": "psu-1" }
    });
    client.post("/methods", fixed).await.ok(201);
    let stages =
        json!([{ "tasks": [{ "kind": "power.off", "levels": [{ "level": 1, "methods": ["fixed"] }] }] }]);
    for name in ["x1", "x2"] {
        let scope = json!({ "kind": "host", "value": name });
        let plan = json!({ "name": name, "scope": scope, "stages": stages });
        client.post("/plans", plan).await.ok(201);
        client.post("/hosts", json!({ "name": name })).await.ok(201);
    }
    let (findings, code) = examine(&machine, &[]).await;
    assert_eq!(code, Some(1), "{findings:#?}");
    assert_eq!(
        failed(&findings),
        [
            "plans: fixed uses one device for x1, x2: its proof for one host would count for each of them",
            "hosts: 2 of 8 cannot be fenced without a person: x1, x2"
        ]
    );
    // A host's own parameter overrides the method's.
    client.delete("/hosts/x2").await.ok(204);
    let own = json!({ "name": "x2", "parameters": { "fixed": { "device": "psu-2" } } });
    client.post("/hosts", own).await.ok(201);
    let (findings, code) = examine(&machine, &[]).await;
    assert_eq!(code, Some(0), "{findings:#?}");

    // A plan without tasks whose scope matches h1 by mistake.
    let idle = json!({ "name": "idle", "scope": { "kind": "host", "value": "h1" }, "stages": [] });
    client.post("/plans", idle).await.ok(201);
    client.post("/hosts", json!({ "name": "h1" })).await.ok(201);
    let (findings, code) = examine(&machine, &[]).await;
    assert_eq!(code, Some(1), "{findings:#?}");
    let found = failed(&findings);
    assert_eq!(
        found,
        ["hosts: 1 of 9 cannot be fenced without a person: h1"],
        "{findings:#?}"
    );

    client
        .post(
            "/hosts",
            json!({ "name": "h2", "type": "simulated", "zone": "moon" }),
        )
        .await
        .ok(201);
    let (findings, _) = examine(&machine, &[]).await;
    let found = failed(&findings).join("\n");
    assert!(
        found.contains("own worker does not serve") && found.contains("power in moon"),
        "{found}"
    );
    assert!(found.contains("without a person: h1, h2"), "{found}");
    // The doctor reads the service's configuration.
    let zones = [("RINGFENCE_WORKER_ZONES", "default,moon")];
    let asked = machine.run_with(&["doctor"], &zones).await;
    assert!(!asked.out.contains("does not serve"), "{asked:?}");
    // The service asks its devices itself, and no worker serves the zone `moon`.
    let (findings, code) = examine(&machine, &["--devices", "--host", "h2"]).await;
    assert_eq!(code, Some(1), "{findings:#?}");
    let is_it = |finding: &Value| {
        let found = finding["found"].as_str().unwrap();
        finding["part"] == "devices" && found.contains("for h2") && found.contains("moon")
    };
    assert!(findings.iter().any(is_it), "{findings:#?}");
    service.stop().await;
    let (findings, code) = examine(&machine, &["--devices"]).await;
    assert_eq!(code, Some(1), "{findings:#?}");
    let found = failed(&findings);
    assert!(
        found
            .iter()
            .any(|found| found.contains("the standalone service does not run")),
        "{found:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_doctor_finds_a_nova_with_a_wrong_clock() {
    let nova = FakeNova::start(&["c1"]).with_clock(-3600);
    let machine = Machine::new();
    let file = machine.file("clouds.yaml");
    std::fs::write(&file, nova.clouds_file("lab")).unwrap();
    let set = [
        ("RINGFENCE_OPENSTACK_CLOUDS", "lab"),
        ("RINGFENCE_OPENSTACK_CLOUDS_FILE", file.to_str().unwrap()),
    ];
    let asked = machine.run_with(&["doctor"], &set).await;
    assert!(asked.out.contains("lab: Nova's clock is 3"), "{asked:?}");
    assert!(asked.out.contains("behind this machine's"), "{asked:?}");
    assert!(asked.out.contains("lab: Nova has 1 hosts; 1 are up"), "{asked:?}");
    // The simulated cloud has no Placement.
    assert!(asked.out.contains("cloud lab has no placement"), "{asked:?}");
}
