//! The fence agent `deploy/pacemaker/fence_ringfence`, called by hand and by Pacemaker's own fencer. The services are processes.

mod agent;
mod fencer;
mod races;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ringfence_lab::IpmiBmc;
use ringfence_tests::{
    Client, Ground, Machine, Run, Service, Site, post_until_taken, power_plan, set_up, start_api,
    start_engine, start_worker,
};
use serde_json::{Value, json};

/// The agent of the source tree.
fn agent() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/pacemaker/fence_ringfence")
}

/// A Ringfence with a plan for hosts that have a BMC, and a token for Pacemaker.
struct Place {
    // Services are dropped before the machine to which they write.
    services: [Service; 3],
    client: Client,
    machine: Machine,
    _site: Site,
}

impl Place {
    async fn start() -> Self {
        let site = Site::new(Ground::Distributed).await;
        let (machine, token) = set_up(&site).await;
        for (name, role) in [("pacemaker", "service"), ("onlooker", "reader")] {
            let made = machine
                .run(&["token", "create", "--name", name, "--role", role])
                .await;
            assert_eq!(made.code, Some(0), "{made:?}");
            write(&machine, &format!("{name}.token"), &made.out);
        }
        let mut api = start_api(&machine);
        let engine = start_engine(&machine, "engine-1");
        let worker = start_worker(&machine, "worker-1");
        let client = Client::new(&api.until_it_listens("the API listens").await, Some(&token));
        let password = write(&machine, "bmc-password", IpmiBmc::PASSWORD);
        let method = json!({
            "name": "power", "driver": "ipmi",
            "parameters": { "address": "127.0.0.1", "username": IpmiBmc::USER, "cipher": "3" },
            "secrets": { "password": format!("file:{password}") },
            "times": { "attempt_timeout_s": 8, "timeout_s": 8, "retries": 0, "pause_ms": 0 },
        });
        post_until_taken(&client, "/methods", method).await;
        let plan = json!({ "name": "default", "stages": power_plan() });
        client.post("/plans", plan).await.ok(201);
        Self {
            services: [api, engine, worker],
            client,
            machine,
            _site: site,
        }
    }

    /// Adds a host in this failure state, whose BMC does not answer.
    async fn host(&self, name: &str, seen: &str) {
        // No BMC listens on this port. The ports differ, because two hosts must not share a device.
        let port = 1 + name.bytes().map(u16::from).sum::<u16>() % 500;
        let parameters = json!({ "power": { "port": port.to_string() } });
        let host = json!({ "name": name, "parameters": parameters });
        self.client.post("/hosts", host).await.ok(201);
        self.client.seen(name, seen).await.ok(200);
    }

    /// Adds a host in this failure state, with a BMC.
    async fn host_with_bmc(&self, name: &str, seen: &str) -> IpmiBmc {
        let bmc = tokio::task::spawn_blocking(|| IpmiBmc::start().unwrap())
            .await
            .unwrap();
        let parameters = json!({ "power": { "port": bmc.port().to_string() } });
        let host = json!({ "name": name, "parameters": parameters });
        self.client.post("/hosts", host).await.ok(201);
        self.client.seen(name, seen).await.ok(200);
        bmc
    }

    /// The parameters of every device of this agent; `more` overrides them.
    fn parameters(&self, more: &[(&str, &str)]) -> Vec<(String, String)> {
        let mut all = vec![
            ("url".to_owned(), self.client.base().to_owned()),
            ("token_file".to_owned(), self.file("pacemaker.token")),
            ("program".to_owned(), Machine::program().display().to_string()),
        ];
        all.retain(|(name, _)| more.iter().all(|(other, _)| name != other));
        all.extend(
            more.iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
        );
        all
    }

    fn file(&self, name: &str) -> String {
        self.machine.file(name).display().to_string()
    }

    /// Calls the agent with its parameters on standard input, as Pacemaker does.
    async fn call(&self, more: &[(&str, &str)]) -> Run {
        ended(self.begin(more)).await
    }

    /// Starts the agent without a cluster, so that it cannot check a topology.
    fn begin(&self, more: &[(&str, &str)]) -> Child {
        let parameters = self.parameters(&[more, &[("check_topology", "0")]].concat());
        let lines: String = parameters
            .iter()
            .map(|(name, value)| format!("{name}={value}\n"))
            .collect();
        let mut child = Command::new(agent())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(lines.as_bytes()).unwrap();
        child
    }

    /// A script that takes the place of `ringfence`.
    fn script(&self, name: &str, text: &str) -> String {
        let path = write(&self.machine, name, &format!("#!/bin/sh\n{text}"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
        path
    }

    /// Whether the API has refused a confirmation.
    fn has_refused_a_confirmation(&self) -> bool {
        let [api, ..] = &self.services;
        let printed = api.printed();
        printed
            .lines()
            .any(|line| line.contains("/confirm-fenced") && line.contains("status=409"))
    }

    async fn is_fenced(&self, host: &str) -> bool {
        self.client.host(host).await["fencing_state"] == "FENCED"
    }
}

fn write(machine: &Machine, name: &str, text: &str) -> String {
    let path = machine.file(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    path.display().to_string()
}

async fn ended(child: Child) -> Run {
    let done = tokio::task::spawn_blocking(|| child.wait_with_output());
    let done = done.await.unwrap().unwrap();
    Run {
        code: done.status.code(),
        out: String::from_utf8(done.stdout).unwrap(),
        err: String::from_utf8(done.stderr).unwrap(),
    }
}

/// Asserts that the agent has failed with these words.
#[track_caller]
fn failed(run: &Run, words: &[&str]) {
    assert_eq!(run.code, Some(1), "{run:?}");
    for word in words {
        assert!(run.err.contains(word), "{word:?} is not in {run:?}");
    }
}

/// Kind and source of every proof of a host.
fn proofs(host: &Value) -> Vec<(String, String)> {
    let text = |proof: &Value, key: &str| proof[key].as_str().unwrap().to_owned();
    let proofs = host["proofs"].as_array().unwrap().iter();
    proofs
        .map(|proof| (text(proof, "kind"), text(proof, "source")))
        .collect()
}
