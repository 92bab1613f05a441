//! A site: an array, hosts with BMCs, a monitor, and a Ringfence that can fence the first host.

use std::sync::Arc;
use std::time::Duration;

use ringfence_lab::{IpmiBmc, VmHost, VmImage, VmStore};
use ringfence_tests::{Client, Machine, Service, eventually, post_until_taken};
use serde_json::{Value, json};

use super::monitor::Monitor;
use super::{Booted, Verdict};

/// The host that is fenced.
pub const HOST: &str = "host1";
/// Many times the duration of a boot.
const PATIENCE: Duration = Duration::from_secs(240);
const WORDS: [&str; 5] = ["standalone", "--listen", "127.0.0.1:0", "--data-dir", "data"];

/// A running site.
pub struct Place {
    // Dropped in this order.
    pub monitor: Monitor,
    _ringfence: Service,
    pub client: Client,
    host: Arc<VmHost>,
    pub store: Arc<VmStore>,
    machine: Machine,
}

impl Place {
    /// A site with one host, which is UP and writes, and which has this plan.
    pub async fn start(stages: Value, sufficient_sets: Value) -> (Self, Booted) {
        let store = blocking(|| VmStore::start(&[HOST]).unwrap()).await;
        Self::on(Arc::new(store), stages, sufficient_sets).await
    }

    /// A site with one such host, on an array that other hosts may use as well.
    pub async fn on(store: Arc<VmStore>, stages: Value, sufficient_sets: Value) -> (Self, Booted) {
        let host = start_host(&store, HOST).await;
        let (machine, ringfence, client) = start_ringfence().await;
        add_methods(&client, &machine, &store).await;
        let port = host.bmc().port().to_string();
        let known = json!({ "name": HOST, "parameters": { "power": { "port": port } } });
        client.post("/hosts", known).await.ok(201);
        let monitor = Monitor::of(&client, HOST, host.address());
        let place = Self {
            monitor,
            _ringfence: ringfence,
            client,
            host: Arc::clone(&host),
            store,
            machine,
        };
        place.plan(stages, sufficient_sets).await;
        let boot = first_boot(&host).await;
        place.until_seen("UP").await;
        place.until_it_writes(&boot).await;
        (place, Booted { host, boot })
    }

    /// Changes the plan of the host.
    pub async fn plan(&self, stages: Value, sufficient_sets: Value) {
        let plan = json!({ "name": "plan", "stages": stages, "sufficient_sets": sufficient_sets });
        let made = self.client.post("/plans", plan.clone()).await;
        if made.status != 201 {
            self.client.put("/plans/plan", plan).await.ok(200);
        }
    }

    /// Changes the deadline of the only attempt by power.
    pub async fn set_power_attempt_s(&self, seconds: u32) {
        let method = power(&self.machine, seconds);
        self.client.put("/methods/power", method).await.ok(200);
    }

    /// The power state that the BMC reads; empty if the BMC does not answer.
    pub async fn power_reads(&self) -> String {
        let asked = json!({ "host": HOST });
        let check = self.client.post("/methods/power/check", asked).await;
        let state = check.body["observation"]["state"].as_str();
        state.unwrap_or_default().to_owned()
    }

    /// Asks for a fence; returns the operation and its judge.
    pub async fn fence(&self) -> (Value, Verdict) {
        let verdict = Verdict::on(&self.client, &self.store, HOST);
        (self.client.fence(HOST).await, verdict)
    }

    /// Asks for a rejoin.
    pub async fn rejoin(&self) {
        let asked = json!({ "reason": "repaired" });
        self.client
            .post(&format!("/hosts/{HOST}/rejoin"), asked)
            .await
            .ok(202);
    }

    /// Waits until the monitor has reported this failure state.
    pub async fn until_seen(&self, state: &str) {
        self.until(|host| host["failure_state"] == state).await;
    }

    /// Waits until the host is UNFENCED, and returns it.
    pub async fn until_unfenced(&self) -> Value {
        self.until(|host| host["fencing_state"] == "UNFENCED").await
    }

    async fn until(&self, is: impl Fn(&Value) -> bool) -> Value {
        self.client
            .until_within(&format!("/hosts/{HOST}"), PATIENCE, is)
            .await
    }

    pub async fn is_fenced(&self) -> bool {
        self.client.host(HOST).await["fencing_state"] == "FENCED"
    }

    /// Whether the host's workloads may be started elsewhere.
    pub async fn may_be_evacuated(&self) -> bool {
        self.client.gates(HOST).await["evacuate"]["allowed"] == true
    }

    /// Waits for new records of this boot.
    pub async fn until_it_writes(&self, boot: &str) {
        const SOME: usize = 10;
        let before = self.count(boot);
        eventually(async || self.count(boot) >= before + SOME).await;
    }

    /// Waits long enough for dozens of writes of a running host, and then until every write that the array has accepted has landed. The
    /// second wait closes and opens the host's path to the array, which would silence a running host, and so comes last.
    pub async fn until_all_has_landed(&self) {
        self.monitor.goes_on().await;
        let store = Arc::clone(&self.store);
        blocking(move || {
            store.cut(HOST).unwrap();
            store.restore(HOST).unwrap();
        })
        .await;
    }

    /// How many records of this boot have landed.
    pub fn count(&self, boot: &str) -> usize {
        let landed = self.store.landed().unwrap();
        landed.iter().filter(|landed| landed.record.boot == boot).count()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let boots = self.host.boots();
            ringfence_tests::tell(&format!(
                "boots of the host: {boots:?}; it is on: {}",
                self.host.is_on()
            ));
        }
    }
}

/// A stage with these tasks in parallel: `power.off` by the BMC, `storage.fence` by the array.
pub fn stage(kinds: &[&str]) -> Value {
    let tasks = kinds.iter().map(|&kind| {
        let (method, _) = kind.split_once('.').unwrap();
        json!({ "kind": kind, "levels": [{ "level": 1, "methods": [method] }] })
    });
    json!({ "tasks": tasks.collect::<Vec<_>>() })
}

/// Starts a host with this name.
pub async fn start_host(store: &Arc<VmStore>, name: &'static str) -> Arc<VmHost> {
    let Some(image) = VmImage::from_environment() else {
        panic!("RINGFENCE_TEST_VM is not set; run the tests with `cargo xtask test`");
    };
    let store = Arc::clone(store);
    Arc::new(blocking(move || VmHost::start(&image, &store, name).unwrap()).await)
}

/// The id of the host's first boot, once the host has booted.
pub async fn first_boot(host: &Arc<VmHost>) -> String {
    nth_boot(host, 1).await
}

/// The id of the host's boot with this number, once the host has booted.
pub async fn nth_boot(host: &Arc<VmHost>, number: usize) -> String {
    let host = Arc::clone(host);
    blocking(move || host.until_boot(number).unwrap()).await
}

async fn start_ringfence() -> (Machine, Service, Client) {
    let machine = Machine::new();
    VmStore::install_agent(machine.path()).unwrap();
    std::fs::write(machine.file("bmc-password"), IpmiBmc::PASSWORD).unwrap();
    let agents = machine.path().display().to_string();
    let machine = machine.set("RINGFENCE_WORKER_AGENTS_DIR", agents);
    let mut ringfence = machine.start("standalone", &WORDS);
    let url = ringfence.until_it_listens("ready").await;
    let token = std::fs::read_to_string(machine.file("data/admin.token")).unwrap();
    let client = Client::new(&url, Some(token.trim()));
    (machine, ringfence, client)
}

async fn add_methods(client: &Client, machine: &Machine, store: &VmStore) {
    post_until_taken(client, "/methods", power(machine, 12)).await;
    let socket = store.control().display().to_string();
    let storage = json!({
        "name": "storage", "resource": "storage", "driver": "fence-agent",
        "parameters": { "agent": VmStore::AGENT, "socket": socket, "plug": "${host.name}" },
        "times": { "attempt_timeout_s": 60, "timeout_s": 120, "retries": 2, "pause_ms": 500 },
    });
    post_until_taken(client, "/methods", storage).await;
}

/// A method with one attempt and this deadline, so that a test with a faulty BMC sees the fence end.
fn power(machine: &Machine, attempt_s: u32) -> Value {
    let password = format!("file:{}", machine.file("bmc-password").display());
    json!({
        "name": "power", "resource": "power", "driver": "ipmi",
        "parameters": { "address": "127.0.0.1", "username": IpmiBmc::USER, "cipher": "3" },
        "secrets": { "password": password },
        "times": { "attempt_timeout_s": attempt_s, "timeout_s": attempt_s, "retries": 0, "pause_ms": 0 },
    })
}

/// Runs blocking work on a thread that may wait.
pub async fn blocking<T: Send + 'static>(wait: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(wait).await.unwrap()
}
