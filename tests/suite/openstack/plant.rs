//! A cloud with hosts, and a Ringfence that watches it.

use std::sync::Arc;
use std::time::Duration;

use ringfence_backends::openstack::{Cloud as Backend, CloudSettings};
use ringfence_engine::ObserverConfig;
use ringfence_lab::{Cloud, Compute, HOOK_CLOUD, HOOK_TOKEN, OPENSTACK_PASSWORD, User};

use ringfence_tests::{Client, Ground, Hypervisor, Site, Stack, StackOptions, eventually};
use serde_json::{Value, json};
use tokio::task::block_in_place;

use super::hook::Asked;
use super::judge::has_run_twice;

/// The cloud's name in every configuration of these tests.
pub const CLOUD: &str = HOOK_CLOUD;
/// Time after which a silent host is UNREACHABLE: the cloud's own computes report once a second.
const DOWN_AFTER_S: i64 = 8;

/// A cloud with some hosts, and a Ringfence that watches it.
pub struct Plant {
    pub cloud: Cloud,
    pub stack: Stack,
    pub machines: Vec<Hypervisor>,
    options: StackOptions,
    /// The hook that the cloud asks: every request passes Ringfence's filter and gate.
    pub asked: Option<Asked>,
    _settings: tempfile::TempDir,
}

/// The cloud of this run.
pub fn cloud() -> Cloud {
    let cloud = Cloud::from_environment().unwrap();
    let Some(cloud) = cloud else {
        panic!("RINGFENCE_TEST_OPENSTACK is not set; run this through `cargo xtask test`, with OpenStack");
    };
    cloud
}

/// Waits until the condition is true, for a minute at most.
pub fn until(is_so: impl Fn() -> bool) {
    let look = |_| {
        let is_so = is_so();
        if !is_so {
            std::thread::sleep(Duration::from_millis(100));
        }
        is_so
    };
    assert!(
        block_in_place(|| (0..600).any(look)),
        "the condition did not become true within 60 s"
    );
}

/// An entry of a `clouds.yaml`.
pub fn entry(cloud: &Cloud, user: User, password: &str, more: &str) -> String {
    let description = cloud.description();
    format!(
        "clouds:\n  {CLOUD}:\n    auth:\n      auth_url: {}\n      username: {}\n      password: {password}\n      project_name: {}\n      \
         user_domain_name: Default\n      project_domain_name: Default\n    region_name: {}\n{more}",
        description.auth_url,
        user.name(),
        user.project(),
        description.region,
    )
}

/// The cloud of this entry, as Ringfence's platform.
pub fn backend(folder: &tempfile::TempDir, entry: &str) -> Arc<Backend> {
    let file = folder.path().join("clouds.yaml");
    std::fs::write(&file, entry).unwrap();
    Arc::new(Backend::new(CloudSettings {
        name: CLOUD.to_owned(),
        file: Some(file),
        timeout: Duration::from_secs(20),
    }))
}

impl Plant {
    /// Starts hosts with these names, all known to Ringfence, with a BMC each.
    pub async fn start<const N: usize>(ground: Ground, names: [&str; N], policy: Value) -> Self {
        Self::start_on(Site::new(ground).await, None, names, policy).await
    }

    /// Starts them on these peers, with this Nova API or the cloud's own.
    pub async fn start_on<const N: usize>(
        site: Site,
        nova: Option<&str>,
        names: [&str; N],
        policy: Value,
    ) -> Self {
        let cloud = cloud();
        let folder = tempfile::tempdir().unwrap();
        let more = nova.map(|url| format!("    compute_endpoint_override: {url}\n"));
        let entry = entry(
            &cloud,
            User::Fencing,
            OPENSTACK_PASSWORD,
            &more.unwrap_or_default(),
        );
        let options = StackOptions {
            // Beside the cloud's hosts: a simulated host for simulated devices.
            hosts: 1,
            checks_every: Some(Duration::from_secs(60)),
            clouds: vec![backend(&folder, &entry)],
            observer: ObserverConfig {
                every: Duration::from_secs(1),
                down_after: chrono::TimeDelta::seconds(DOWN_AFTER_S),
                ..ObserverConfig::default()
            },
            ..StackOptions::default()
        };
        let computes = block_in_place(|| cloud.computes(names).unwrap());
        let machines = computes.into_iter().map(Hypervisor::new).collect();
        let stack = Stack::start_with(site, options.clone()).await;
        let asked = Asked::start(&cloud, &stack).await;
        let plant = Self {
            asked: Some(asked),
            cloud,
            stack,
            machines,
            options,
            _settings: folder,
        };
        plant.configure(policy).await;
        plant
    }

    async fn configure(&self, policy: Value) {
        let client = &self.stack.client;
        // The password is the simulator's own.
        let secret = self.stack.site.dir.path().join("bmc-password");
        std::fs::write(&secret, ringfence_lab::IpmiBmc::PASSWORD).unwrap();
        client
            .post(
                "/segments",
                json!({ "name": "rack", "policy": ringfence_tests::policy(policy) }),
            )
            .await
            .ok(201);
        let method = json!({
            "name": "bmc", "resource": "power", "driver": "ipmi",
            "parameters": { "address": "127.0.0.1", "username": ringfence_lab::IpmiBmc::USER, "cipher": "3" },
            "secrets": { "password": format!("file:{}", secret.display()) },
        });
        client.post("/methods", method).await.ok(201);
        let stages =
            json!([{ "tasks": [{ "kind": "power.off", "levels": [{ "level": 1, "methods": ["bmc"] }] }] }]);
        client
            .post("/plans", json!({ "name": "default", "stages": stages }))
            .await
            .ok(201);
        for machine in &self.machines {
            let host = json!({
                "name": machine.name, "segment": "rack", "backend": "nova", "cloud": CLOUD,
                "parameters": { "bmc": { "port": machine.bmc.port().to_string() } },
            });
            client.post("/hosts", host).await.ok(201);
        }
        for machine in &self.machines {
            self.until_seen(&machine.name, "UP").await;
        }
        self.until_open().await;
    }

    /// Waits until the hook that the cloud asks allows all hosts.
    async fn until_open(&self) {
        let hook = Client::new(
            &format!("http://{}", self.cloud.description().hook),
            Some(HOOK_TOKEN),
        );
        let hosts: Vec<&str> = self
            .machines
            .iter()
            .map(|machine| machine.name.as_str())
            .collect();
        let question = json!({ "cloud": HOOK_CLOUD, "hosts": hosts });
        eventually(|| async {
            let answer = hook.post("/nova/filter", question.clone()).await;
            answer.status == 200 && answer.body["refused"] == json!([])
        })
        .await;
    }

    pub async fn until_seen(&self, host: &str, state: &str) -> Value {
        let path = format!("/hosts/{host}");
        self.stack
            .client
            .until_within(&path, Duration::from_secs(60), |host| {
                host["failure_state"] == state
            })
            .await
    }

    /// Waits until the evacuation of a host knows which servers there are.
    pub async fn until_moving(&self, host: &str) {
        let path = format!("/operations?host={host}&kind=evacuation&limit=1");
        let is_there = |list: &Value| list["operations"].get(0).is_some();
        let client = &self.stack.client;
        let list = client
            .until_within(&path, Duration::from_secs(90), is_there)
            .await;
        let moves = format!(
            "/operations/{}/moves",
            list["operations"][0]["id"].as_str().unwrap()
        );
        let are_known = |list: &Value| list["moves"].get(0).is_some();
        client
            .until_within(&moves, Duration::from_secs(60), are_known)
            .await;
    }

    /// Waits for an operation of a host to end, and returns it.
    pub async fn until_ended(&self, host: &str, kind: &str) -> Value {
        let path = format!("/operations?host={host}&kind={kind}&sort=created_at:desc&limit=1");
        let is_over = |list: &Value| {
            let status = &list["operations"][0]["status"];
            status == "succeeded" || status == "needs_operator" || status == "cancelled"
        };
        let list = self
            .stack
            .client
            .until_within(&path, Duration::from_secs(120), is_over)
            .await;
        list["operations"][0].clone()
    }

    /// Kills the engine and starts another.
    pub async fn kill_engine(&mut self) {
        self.stack.replace_engine(&self.options).await;
    }

    /// The servers of an operation: name, status and destination of each.
    pub async fn moves(&self, operation: &Value) -> Vec<Value> {
        let id = operation["id"].as_str().unwrap();
        let answer = self.stack.client.get(&format!("/operations/{id}/moves")).await;
        answer.ok(200)["moves"].as_array().unwrap().clone()
    }

    /// Boots servers on one of the hosts, and returns their ids.
    pub fn boot(&self, machine: usize, names: &[&str]) -> Vec<String> {
        let boot = |compute: &mut Compute| self.cloud.boot(compute, names, &[]).unwrap();
        let servers = self.machines[machine].with(boot);
        servers.into_iter().map(|server| server.id).collect()
    }

    /// The hosts on which Nova shows these servers.
    pub fn hosts_of(&self, servers: &[String]) -> Vec<String> {
        let host = |id: &String| block_in_place(|| self.cloud.server(id).unwrap().host.unwrap_or_default());
        servers.iter().map(host).collect()
    }

    /// The judge: no guest runs on two hosts at once, and none ever has.
    pub fn judge(&self) {
        let history = |machine: &Hypervisor| {
            let changes = machine.with(|compute| compute.history().unwrap());
            (machine.name.clone(), changes)
        };
        let histories: Vec<_> = self.machines.iter().map(history).collect();
        assert_eq!(has_run_twice(&histories), None);
        let mut running: Vec<String> = self.machines.iter().flat_map(Hypervisor::running).collect();
        running.sort();
        let count = running.len();
        running.dedup();
        assert_eq!(running.len(), count, "a guest runs on two hosts");
    }

    /// Judges the whole test, and removes everything.
    pub async fn stop(self) {
        self.judge();
        drop(self.asked);
        self.stack.stop().await;
        for machine in self.machines {
            machine.remove(&self.cloud);
        }
    }
}
