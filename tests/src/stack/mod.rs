//! Engines, workers and an API on one site.

mod options;
mod parts;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringfence_api::Role;
use ringfence_backends::kubernetes::{Cluster, ClusterSettings};
use ringfence_backends::openstack::{Cloud, Nova};
use ringfence_bus::{Bus, Queue};
use ringfence_core::{FailureState, Resource, Segment};
use ringfence_db::Database;
use ringfence_engine::{Engine, Running};
use ringfence_operator::Operator;
use ringfence_simulators::{Condition, Fault, Handle, Simulators, World};
use ringfence_workers::{DriverSettings, Drivers, Worker, WorkerConfig, WorkerHandle};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::options::StackOptions;
pub use self::parts::keys;
use self::parts::{engine, serve, token};
use crate::client::{Client, now};
use crate::{DyingBus, Ground, Site, eventually};

/// A running stack.
pub struct Stack {
    pub site: Site,
    pub engines: Vec<(Engine, Option<Running>)>,
    operators: Vec<Operator>,
    pub workers: Vec<WorkerHandle>,
    pub simulators: Handle,
    attempt_timeout_s: u32,
    clouds: Vec<Arc<Cloud>>,
    clusters: Vec<ClusterSettings>,
    ceph: Option<PathBuf>,
    /// A client with the role `admin`.
    pub client: Client,
    pub api: Engine,
    /// Cancelled when the process of the API and the first engine has died.
    pub died: Option<CancellationToken>,
    stop: CancellationToken,
}

impl Stack {
    /// One engine, one worker, one simulated host.
    pub async fn start(ground: Ground) -> Self {
        Self::start_with(Site::new(ground).await, StackOptions::default()).await
    }

    /// A stack whose attempts have short deadlines, for devices that never do what they should.
    pub async fn start_with_short_attempts(ground: Ground) -> Self {
        Self::start_with(
            Site::new(ground).await,
            StackOptions {
                attempt_timeout_s: 3,
                ..StackOptions::default()
            },
        )
        .await
    }

    /// A stack without workers: its tasks wait until [`Stack::add_worker`].
    pub async fn start_without_workers(ground: Ground) -> Self {
        let options = StackOptions {
            workers: 0,
            ..StackOptions::default()
        };
        Self::start_with(Site::new(ground).await, options).await
    }

    pub async fn start_with(site: Site, options: StackOptions) -> Self {
        crate::logs::show();
        let db = Database::open(&site.database_url, 10).await.unwrap();
        ringfence_db::migrate(&db).await.unwrap();
        let mut world = World::default();
        for number in 1..=options.hosts {
            if number == 1 && options.supplies > 0 {
                world.add_bare_host("h1").unwrap();
                for letter in (b'a'..).take(usize::from(options.supplies)).map(char::from) {
                    world
                        .add_device(&format!("h1-{letter}"), "h1", &[Resource::Power])
                        .unwrap();
                }
                continue;
            }
            world.add_host(&format!("h{number}")).unwrap();
        }
        let simulators = Simulators::start("127.0.0.1:0".parse().unwrap(), None, world).unwrap();
        let mut bus = site.bus("api").await;
        let mut died = None;
        if let Some((uses, after)) = options.dies {
            let dying = DyingBus::new(bus, uses, after);
            died = Some(dying.dead());
            bus = dying;
        }
        let api = engine(&site, &options, "api", bus).await;
        api.ensure_default_segment().await.unwrap();
        let_nothing_settle(&db).await;
        let (address, stop) = serve(&site, api.clone(), &options);
        let mut stack = Self {
            engines: Vec::new(),
            operators: Vec::new(),
            workers: Vec::new(),
            client: Client::new(&format!("http://{address}"), Some(&token(Role::Admin))),
            simulators,
            attempt_timeout_s: options.attempt_timeout_s,
            clouds: options.clouds.clone(),
            clusters: options.clusters.clone(),
            ceph: options.ceph.clone(),
            api,
            died,
            stop,
            site,
        };
        if options.dies.is_some() {
            // API and first engine are one process: both end together.
            let running = stack.api.start();
            stack.engines.push((stack.api.clone(), Some(running)));
        }
        for _ in stack.engines.len()..options.engines {
            stack.add_engine(&options).await;
        }
        for _ in 0..options.workers {
            stack.add_worker().await;
        }
        if options.workers > 0 {
            until_served(&*stack.site.bus("onlooker").await).await;
        }
        for number in 1..=options.hosts {
            stack
                .client
                .post("/hosts", json!({ "name": format!("h{number}") }))
                .await
                .ok(201);
        }
        stack
    }

    /// Adds an engine with all its loops.
    pub async fn add_engine(&mut self, options: &StackOptions) {
        let name = format!("engine-{}", self.engines.len() + 1);
        let engine = engine(&self.site, options, &name, self.site.bus(&name).await).await;
        let running = engine.start();
        if options.has_operator {
            self.operators
                .push(Operator::start(&engine, options.clusters.clone()));
        }
        self.engines.push((engine, Some(running)));
    }

    /// Makes an engine on this site without starting its loops.
    pub async fn unstarted_engine(&self) -> Engine {
        let bus = self.site.bus("unstarted").await;
        engine(&self.site, &StackOptions::default(), "unstarted", bus).await
    }

    /// Ends the process of the first engine at once, and starts another.
    pub async fn replace_engine(&mut self, options: &StackOptions) {
        drop(self.engines.remove(0));
        self.operators.drain(..1.min(self.operators.len()));
        self.add_engine(options).await;
    }

    /// Adds a worker for everything in the default zone.
    pub async fn add_worker(&mut self) {
        self.add_worker_with(self.drivers()).await;
    }

    /// Adds a worker with these drivers.
    pub async fn add_worker_with(&mut self, drivers: Drivers) {
        let name = format!("worker-{}", self.workers.len() + 1);
        let bus = self.site.bus(&name).await;
        self.workers
            .push(start(WorkerConfig::new(name, "default"), bus, drivers));
    }

    pub fn worker(&self, config: WorkerConfig, bus: Arc<dyn Bus>) -> WorkerHandle {
        start(config, bus, self.drivers())
    }

    /// The drivers of every worker.
    pub fn drivers(&self) -> Drivers {
        let usual = DriverSettings::new(Arc::new(now));
        let settings = DriverSettings {
            simulator: Some(self.simulators.url().parse().unwrap()),
            clouds: self.clouds.clone(),
            clusters: self
                .clusters
                .iter()
                .cloned()
                .map(Cluster::new)
                .map(Arc::new)
                .collect(),
            ceph: self.ceph.clone().unwrap_or_else(|| usual.ceph.clone()),
            ..usual
        };
        let mut platforms = Nova::on(&self.clouds);
        platforms.extend(Cluster::of(self.clusters.clone()));
        Drivers::new(&settings).with_platforms(&platforms, &settings.clock)
    }

    /// A client with this role.
    pub fn as_role(&self, role: Role) -> Client {
        self.client.with_token(Some(&token(role)))
    }

    /// Adds a method on simulated devices, one per host, named as the host.
    pub async fn simulated_method(&self, name: &str, resource: Resource) -> Value {
        self.method_on(name, resource, "${host.name}").await
    }

    /// Adds a method on one simulated device.
    pub async fn method_on(&self, name: &str, resource: Resource, device: &str) -> Value {
        let body = json!({
            "name": name, "resource": resource.as_str(), "driver": "simulated", "parameters": { "device": device },
            "times": { "attempt_timeout_s": self.attempt_timeout_s, "timeout_s": self.attempt_timeout_s * 3, "retries": 1, "pause_ms": 100 },
        });
        self.client.post("/methods", body).await.ok(201)
    }

    /// Methods `power`, `storage` and `network`, and a default plan with these stages.
    pub async fn plan(&self, stages: Value) -> Value {
        for resource in [Resource::Power, Resource::Storage, Resource::Network] {
            self.simulated_method(resource.as_str(), resource).await;
        }
        self.client
            .post("/plans", json!({ "name": "default", "stages": stages }))
            .await
            .ok(201)
    }

    /// Gives a device of a simulated host a fault, or takes the fault away.
    pub fn set_fault(&self, host: &str, resource: Resource, fault: Option<Fault>) {
        self.simulators.set_fault(host, resource, fault).unwrap();
    }

    /// Makes the host hang: it still runs and writes, and answers no monitor.
    pub async fn hang(&self, host: &str) {
        self.simulators.set_condition(host, Condition::Hung).unwrap();
        self.client.seen(host, "UNREACHABLE").await.ok(200);
    }

    /// Reports the failure state of all simulated hosts, as a monitor would see them now.
    pub async fn observe(&self) {
        for host in self.simulators.observe() {
            let state = match host.failure_state {
                FailureState::Up => "UP",
                FailureState::Unreachable => "UNREACHABLE",
                FailureState::Unknown => "UNKNOWN",
            };
            self.client
                .seen_with_boot(&host.name, state, host.boot_id.as_deref())
                .await
                .ok(200);
        }
    }

    /// The judge: while the evacuate gate of a FENCED host is open, the host must not be able to write.
    pub async fn judge(&self, host: &str) {
        let gates = self.client.gates(host).await;
        let may_leave = gates["evacuate"]["allowed"] == true;
        assert!(
            !(may_leave && self.simulators.may_write(host)),
            "{host} still writes while its evacuate gate is open"
        );
    }

    /// The fence of a host that this safeguard holds first, once what it says contains these words.
    pub async fn until_held(&self, safeguard: &str, host: &str, verdict: &str, words: &str) -> Value {
        let is_held = |list: &Value| {
            let ruling = &list["operations"][0]["held"]["by"][0];
            let reason = ruling["reason"].as_str().unwrap_or_default();
            ruling["safeguard"] == safeguard && ruling["verdict"] == verdict && reason.contains(words)
        };
        let path = format!("/operations?host={host}&status=held");
        let list = self.client.until(&path, is_held).await;
        assert!(self.simulators.may_write(host), "{host} was fenced: {list}");
        list["operations"][0].clone()
    }

    /// The audit trail of a host, newest first.
    pub async fn audit(&self, host: &str) -> Vec<ringfence_db::AuditEntry> {
        let id = self.client.host(host).await["id"]
            .as_str()
            .unwrap()
            .parse()
            .unwrap();
        let filter = ringfence_db::AuditFilter {
            host_id: Some(id),
            ..ringfence_db::AuditFilter::default()
        };
        ringfence_db::audit_page(&mut self.api.db().reader(), &filter, None, 1000)
            .await
            .unwrap()
            .into_iter()
            .map(|row| row.entry)
            .collect()
    }

    /// Waits until the host's audit trail holds this action.
    pub async fn until_audited(&self, host: &str, action: &str) {
        self.until_audited_times(host, action, 1).await;
    }

    pub async fn until_audited_times(&self, host: &str, action: &str, times: usize) {
        for _ in 0..1000 {
            if self
                .audit(host)
                .await
                .iter()
                .filter(|entry| entry.action == action)
                .count()
                >= times
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the audit trail did not record {action} {times} times");
    }

    /// Whether no claim for the host was granted, after workers had time to ask.
    pub async fn claims_refused_or_none(&self, host: &str) -> bool {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let operations = self.client.get(&format!("/operations?host={host}")).await.ok(200);
        let text = operations.to_string();
        !text.contains("\"claimed_at\":\"")
    }

    /// Stops everything in order.
    pub async fn stop(mut self) {
        self.stop.cancel();
        for operator in self.operators.drain(..) {
            operator.stop().await;
        }
        for worker in self.workers.drain(..) {
            worker.shutdown(Duration::from_secs(5)).await;
        }
        for (_, running) in self.engines.drain(..) {
            if let Some(running) = running {
                running.stop().await;
            }
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn start(config: WorkerConfig, bus: Arc<dyn Bus>, drivers: Drivers) -> WorkerHandle {
    Worker::start(config, bus, keys(), drivers, Arc::new(Uuid::new_v4)).unwrap()
}

/// Waits until a worker consumes the queues. A task that is published earlier is published again only when the clock moves on, which a
/// clock that the test sets by hand does not do.
async fn until_served(bus: &dyn Bus) {
    let is_broker = bus.began().is_none();
    for resource in [Resource::Power, Resource::Storage, Resource::Network] {
        let queue = Queue::Tasks {
            resource,
            zone: "default".to_owned(),
        };
        let is_served = async || matches!(bus.queue_load(&queue).await, Ok(Some(load)) if load.consumers > 0);
        if is_broker {
            eventually(is_served).await;
        }
    }
    if is_broker {
        bus.close().await;
    }
}

/// Removes the settling time from the default segment, as the site's administrator would.
async fn let_nothing_settle(db: &Database) {
    let mut reader = db.reader();
    let known = ringfence_db::segment(&mut reader, "default")
        .await
        .unwrap()
        .unwrap();
    let segment = Segment {
        policy: serde_json::from_value(crate::policy(json!({}))).unwrap(),
        ..known
    };
    ringfence_db::update_segment(&mut reader, &segment, segment.revision)
        .await
        .unwrap();
}

/// One stage with one task: power, by the method `power`.
pub fn power_plan() -> Value {
    json!([{ "tasks": [{ "kind": "power.off", "levels": [{ "level": 1, "methods": ["power"] }] }] }])
}
