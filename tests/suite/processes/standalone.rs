//! `ringfence standalone --demo`.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use ringfence_tests::{Client, Machine, Service, eventually, tell};
use serde_json::{Value, json};

use super::{assert_gapless, times_fenced, until_told};

/// A running demonstration.
struct Demo {
    /// Dropped before its machine, to which it prints.
    service: Service,
    machine: Machine,
    /// A client with the role `admin`.
    client: Client,
    simulators: Client,
}

const WORDS: [&str; 6] = [
    "standalone",
    "--demo",
    "--listen",
    "127.0.0.1:0",
    "--data-dir",
    "data",
];

impl Demo {
    async fn start(machine: Machine) -> Self {
        let mut service = machine.start("standalone", &WORDS);
        let url = service.until_it_listens("ready").await;
        let token = std::fs::read_to_string(machine.file("data/admin.token")).unwrap();
        let printed = service.printed();
        let (_, simulators) = printed.split_once("curl -X PUT ").unwrap();
        let (simulators, _) = simulators.split_once("/hosts/").unwrap();
        Self {
            client: Client::new(&url, Some(token.trim())),
            simulators: Client::new(simulators, None),
            machine,
            service,
        }
    }

    /// Kills the service with SIGKILL, and starts it again with an equal command.
    async fn start_again(mut self) -> Self {
        self.service.kill();
        Self::start(self.machine).await
    }

    /// Runs an operator's command on the demonstration's machine.
    async fn run(&self, words: &[&str]) -> ringfence_tests::Run {
        let words: Vec<_> = words.iter().chain(&["--data-dir", "data"]).copied().collect();
        self.machine.run(&words).await
    }

    /// Makes the host hang, and waits until the demonstration's monitor reports it.
    async fn hang(&self, host: &str) {
        let hung = json!({ "condition": "hung" });
        assert_eq!(
            self.simulators.put(&format!("/hosts/{host}"), hung).await.status,
            204
        );
        self.until_seen(host, "UNREACHABLE").await;
    }

    async fn until_seen(&self, host: &str, state: &str) {
        self.client
            .until(&format!("/hosts/{host}"), |host| host["failure_state"] == state)
            .await;
    }

    /// Whether the simulated host may really write.
    async fn may_write(&self, host: &str) -> bool {
        let hosts = self.simulators.get("/hosts").await.ok(200);
        let hosts = hosts["hosts"].as_array().unwrap();
        hosts.iter().find(|known| known["name"] == host).unwrap()["may_write"] == true
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_starts_the_demonstration_with_one_command_and_fences_a_host() {
    let machine = Machine::new();
    // A data directory that was made by hand, readable for every user.
    std::fs::create_dir(machine.file("data")).unwrap();
    let demo = Demo::start(machine).await;
    let mode = std::fs::metadata(demo.machine.file("data/admin.token"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    for (name, wanted) in [("data", 0o700), ("data/ringfence.db", 0o600)] {
        let mode = std::fs::metadata(demo.machine.file(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, wanted, "{name}");
    }
    let listed = demo.run(&["host", "list", "--output", "json"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert_eq!(listed.json()["hosts"].as_array().unwrap().len(), 6);
    demo.until_seen("sim-2", "UP").await;
    let up = demo
        .run(&["host", "fence", "sim-2", "--reason", "test", "--wait"])
        .await;
    assert_eq!(up.code, Some(3), "{up:?}");
    let unknown = demo.run(&["host", "fence", "sim-9", "--reason", "test"]).await;
    assert_eq!(unknown.code, Some(4), "{unknown:?}");
    demo.hang("sim-1").await;
    assert!(demo.may_write("sim-1").await);
    let fenced = demo
        .run(&["host", "fence", "sim-1", "--reason", "no heartbeat", "--wait"])
        .await;
    assert_eq!(fenced.code, Some(0), "{fenced:?}");
    assert!(
        fenced.out.contains("FENCED") && !fenced.out.contains("UNFENCED"),
        "{fenced:?}"
    );
    assert!(!demo.may_write("sim-1").await);
    let shown = demo
        .run(&["host", "show", "sim-1", "--output", "json"])
        .await
        .json();
    assert_eq!(shown["fencing_state"], "FENCED");
    let back = demo
        .run(&["host", "rejoin", "sim-1", "--reason", "checked", "--wait"])
        .await;
    assert_eq!(back.code, Some(0), "{back:?}");
    assert!(back.out.contains("UNFENCED"), "{back:?}");
    demo.service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_simulated_world_has_its_former_address_after_a_restart() {
    let demo = Demo::start(Machine::new()).await;
    let before = demo.simulators.base().to_owned();
    let demo = demo.start_again().await;
    assert_eq!(demo.simulators.base(), before);
    // Another program takes the simulator's port.
    let Demo {
        mut service, machine, ..
    } = demo;
    service.kill();
    let taken = std::net::TcpListener::bind(before.trim_start_matches("http://")).unwrap();
    let demo = Demo::start(machine).await;
    assert_ne!(demo.simulators.base(), before);
    assert_eq!(demo.simulators.get("/hosts").await.status, 200);
    drop(taken);
    demo.service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_monitor_of_the_demonstration_repeats_unchanged_reports() {
    let demo = Demo::start(Machine::new()).await;
    demo.until_seen("sim-2", "UP").await;
    let seen = demo.client.host("sim-2").await["failure_observed_at"].clone();
    demo.client
        .until("/hosts/sim-2", |host| {
            host["failure_observed_at"] != seen && host["failure_state"] == "UP"
        })
        .await;
    demo.service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standalone_service_without_hosts_prints_the_first_commands() {
    let machine = Machine::new();
    let words = ["standalone", "--listen", "127.0.0.1:0", "--data-dir", "data"];
    let mut service = machine.start("standalone", &words);
    let url = service.until_it_listens("ready").await;
    let printed = service.printed();
    for said in [
        format!("Ringfence runs on {url} "),
        "export RINGFENCE_DATA_DIR=".to_owned(),
        "$R method add bmc".to_owned(),
        "$R plan add".to_owned(),
        "$R host add node-1".to_owned(),
        "$R doctor".to_owned(),
    ] {
        assert!(printed.contains(&said), "{said}: {printed}");
    }
    // `token create` finds the service by its data directory, as every other command does.
    let made = machine
        .run(&[
            "token",
            "create",
            "--name",
            "ci",
            "--role",
            "admin",
            "--data-dir",
            "data",
        ])
        .await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let client = Client::new(&url, Some(made.out.trim()));
    eventually(async || client.get("/hosts").await.status == 200).await;
    client.post("/hosts", json!({ "name": "node-1" })).await.ok(201);
    service.stop().await;
    let mut service = machine.start("standalone", &words);
    service.until_it_listens("ready").await;
    let printed = service.printed();
    let again = printed.rsplit("Ringfence runs on").next().unwrap();
    assert!(
        again.contains("$R host list") && !again.contains("$R method add"),
        "{again}"
    );
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_serves_one_process_at_a_time() {
    let demo = Demo::start(Machine::new()).await;
    let second = demo.machine.run(&WORDS).await;
    assert_eq!(second.code, Some(2), "{second:?}");
    assert!(
        second
            .err
            .contains("another ringfence runs on the data directory"),
        "{second:?}"
    );
    // The first process goes on.
    assert_eq!(demo.run(&["host", "list"]).await.code, Some(0));
    demo.service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_say_that_a_killed_or_stopped_service_does_not_run() {
    let mut demo = Demo::start(Machine::new()).await;
    demo.service.kill();
    let killed = demo.run(&["host", "list"]).await;
    assert_eq!(killed.code, Some(6), "{killed:?}");
    for word in ["was killed", "ringfence standalone --data-dir data"] {
        assert!(killed.err.contains(word), "{killed:?}");
    }
    let demo = Demo::start(demo.machine).await;
    let (machine, service) = (demo.machine, demo.service);
    service.stop().await;
    assert!(!machine.file("data/api.json").exists());
    let stopped = machine.run(&["host", "list", "--data-dir", "data"]).await;
    assert_eq!(stopped.code, Some(6), "{stopped:?}");
    assert!(stopped.err.contains("ringfence standalone"), "{stopped:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_with_a_lying_and_a_silent_bmc_are_fenced_by_storage_and_network() {
    let demo = Demo::start(Machine::new()).await;
    for host in ["sim-3", "sim-5"] {
        demo.hang(host).await;
        demo.client.fence(host).await;
    }
    for host in ["sim-3", "sim-5"] {
        let path = format!("/hosts/{host}");
        let is_fenced = |host: &Value| host["fencing_state"] == "FENCED";
        let fenced = demo
            .client
            .until_within(&path, Duration::from_secs(120), is_fenced)
            .await;
        let kinds: Vec<_> = fenced["proofs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p["kind"].clone())
            .collect();
        assert!(
            kinds.contains(&json!("storage.fence")) && kinds.contains(&json!("network.fence")),
            "{kinds:?}"
        );
        assert!(!demo.may_write(host).await);
    }
    demo.service.stop().await;
}

/// The kill comes later in each round: before the request arrives, after its commit, during the attempt, and after.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standalone_service_killed_at_any_moment_continues_its_fences() {
    let mut demo = Demo::start(Machine::new()).await;
    shorten_attempts(&demo).await;
    for round in 0..8 {
        let host = ["sim-1", "sim-2", "sim-6"][round % 3];
        demo.hang(host).await;
        let client = demo.client.clone();
        let path = format!("/hosts/{host}/fence");
        let request = client
            .request(reqwest::Method::POST, &path)
            .json(&json!({ "reason": "test" }));
        let asked = tokio::spawn(async move { request.send().await.is_ok() });
        tokio::time::sleep(Duration::from_millis(7 * round as u64)).await;
        demo = demo.start_again().await;
        let answered = asked.await.unwrap();
        let told = if answered { "answered" } else { "not answered" };
        tell(&format!("round {round}: the request was {told} before the kill"));
        if answered {
            // An answered request was committed: the fence needs no second request.
            demo.client.until_fenced(host).await;
        }
        let again = demo.client.post(&path, json!({ "reason": "again" })).await;
        assert!(matches!(again.status, 200 | 202), "{}", again.body);
        let fenced = demo.client.until_fenced(host).await;
        assert!(!demo.may_write(host).await, "{host} is FENCED and writes");
        let events = until_told(&demo.client, host, &fenced["generation"]).await;
        assert_gapless(&events);
        assert_eq!(times_fenced(&events, host, &fenced["generation"]), 1, "{events}");
        take_back(&demo, host).await;
    }
    demo.service.stop().await;
}

/// The bus of standalone is lost with its process, and tasks that waited in it are sent again by the next process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_unclaimed_at_the_kill_of_standalone_are_carried_out_after_its_restart() {
    let one_by_one = Machine::new().set("RINGFENCE_WORKER_CONCURRENCY", "1");
    let mut demo = Demo::start(one_by_one).await;
    power_alone(&demo).await;
    let waiting = ["sim-1", "sim-2", "sim-6"];
    // The BMC of sim-4 takes seconds to answer, and the worker does nothing else meanwhile.
    demo.hang("sim-4").await;
    for host in waiting {
        demo.hang(host).await;
    }
    demo.client.fence("sim-4").await;
    until_claimed(&demo, "sim-4").await;
    let mut operations = Vec::new();
    for host in waiting {
        operations.push(demo.client.fence(host).await);
    }
    // After two seconds every message has left the outbox and waits in the bus.
    tokio::time::sleep(Duration::from_secs(2)).await;
    demo = demo.start_again().await;
    for operation in &operations {
        let ended = demo.client.until_settled(operation).await;
        assert_eq!(ended["status"], "succeeded", "{ended}");
    }
    demo.service.stop().await;
}

/// Waits until a worker has claimed the first task of the host's operation.
async fn until_claimed(demo: &Demo, host: &str) {
    let claimed = |list: &Value| {
        let task = &list["operations"][0]["stages"][0]["tasks"][0];
        task["attempts"][0]["status"] == "claimed"
    };
    let path = format!("/operations?host={host}&status=running");
    demo.client.until(&path, claimed).await;
}

/// Gives the hosts a plan by power alone, with little time for its task.
async fn power_alone(demo: &Demo) {
    let method = json!({
        "name": "demo-power", "resource": "power", "driver": "simulated", "parameters": { "device": "${host.name}" },
        "times": { "attempt_timeout_s": 13, "timeout_s": 15, "retries": 1 },
    });
    demo.client.put("/methods/demo-power", method).await.ok(200);
    let known = demo.client.get("/plans/demo").await.ok(200);
    let plan = json!({
        "name": "demo", "scope": known["scope"], "stages": [known["stages"][0]],
        "sufficient_sets": known["sufficient_sets"],
    });
    demo.client.put("/plans/demo", plan).await.ok(200);
}

/// Gives every attempt a short deadline: an attempt of a killed process counts as running until its deadline, and blocks the device.
async fn shorten_attempts(demo: &Demo) {
    for resource in ["power", "storage", "network"] {
        let method = json!({
            "name": format!("demo-{resource}"), "resource": resource, "driver": "simulated",
            "parameters": { "device": "${host.name}" },
            "times": { "attempt_timeout_s": 3, "timeout_s": 60, "retries": 3, "pause_ms": 100 },
        });
        demo.client
            .put(&format!("/methods/demo-{resource}"), method)
            .await
            .ok(200);
    }
}

async fn take_back(demo: &Demo, host: &str) {
    let path = format!("/operations?host={host}&status=running");
    demo.client
        .until(&path, |list| list["operations"].as_array().unwrap().is_empty())
        .await;
    let back = demo
        .run(&[
            "host",
            "rejoin",
            host,
            "--reason",
            "checked",
            "--wait",
            "--timeout",
            "60s",
        ])
        .await;
    assert_eq!(back.code, Some(0), "{back:?}");
    assert!(demo.may_write(host).await);
}

/// A program whose writes beyond a limit of the file size fail, without a signal that ends the program.
fn machine_with_limits() -> (tempfile::TempDir, Machine) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ringfence");
    let text = format!(
        "#!/bin/sh\ntrap '' XFSZ\nexec '{}' \"$@\"\n",
        Machine::program().display()
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let machine = Machine::with_build(&Machine::new(), path);
    (folder, machine)
}

/// Limits the size of every file of the service.
fn limit_files(service: &Service, bytes: &str) {
    let limited = std::process::Command::new("prlimit")
        .args(["--pid", &service.pid().to_string(), &format!("--fsize={bytes}:")])
        .status();
    assert!(limited.unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_is_an_outage_that_loses_nothing() {
    let (_folder, machine) = machine_with_limits();
    let demo = Demo::start(machine).await;
    for host in ["sim-1", "sim-2", "sim-4"] {
        demo.hang(host).await;
    }
    demo.client.fence("sim-1").await;
    demo.client.until_fenced("sim-1").await;
    // The BMC of sim-4 takes seconds: its result comes while nothing can be written.
    demo.client.fence("sim-4").await;
    until_claimed(&demo, "sim-4").await;
    limit_files(&demo.service, "1");
    let refused = demo
        .client
        .post("/hosts/sim-2/fence", json!({ "reason": "test" }))
        .await;
    assert_eq!(
        (refused.status, refused.code()),
        (503, "fencing.database.unavailable"),
        "{}",
        refused.body
    );
    assert!(refused.headers.contains_key("retry-after"));
    let mut health = Value::Null;
    eventually(async || {
        let answer = demo.client.get("/healthcheck").await;
        health = answer.body;
        answer.status == 503
    })
    .await;
    assert!(
        health["database"]
            .as_str()
            .unwrap()
            .contains("writes nothing down"),
        "{health}"
    );
    // Reads still work.
    assert_eq!(demo.client.gates("sim-1").await["evacuate"]["allowed"], true);
    assert_eq!(demo.client.host("sim-2").await["fencing_state"], "UNFENCED");
    // Time for the result to come.
    tokio::time::sleep(Duration::from_secs(15)).await;
    limit_files(&demo.service, "unlimited");
    demo.client.until_fenced("sim-4").await;
    let said = demo.service.printed();
    assert!(!said.contains("went to the dead letters"), "{said}");
    eventually(async || demo.client.get("/healthcheck").await.status == 200).await;
    demo.client.fence("sim-2").await;
    demo.client.until_fenced("sim-2").await;
    // A service that stops waits for its workers' attempts.
    demo.client
        .until("/operations?status=running", |list| {
            list["operations"] == json!([])
        })
        .await;
    demo.service.stop().await;
}
