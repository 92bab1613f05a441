//! The engine's side of the bus, in the place of an engine.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use ringfence_bus::{
    Audience, Bus, BusError, ClaimReply, ClaimRequest, Deliveries, Delivery, DeviceReply, DeviceRequest,
    InProcessBus, Key, Keys, Message, Queue, ReplyTo, TaskMessage,
};
use ringfence_core::{
    AttemptId, FencingKind, FrozenMethod, Generation, HostId, Job, OperationId, Resource, TaskResult,
};
use ringfence_workers::{Driver, Drivers, Worker, WorkerConfig, WorkerHandle};
use tokio::sync::mpsc;
use tokio::time::timeout;
use uuid::Uuid;

use crate::method;

type Script = dyn Fn(&ClaimRequest) -> Option<ClaimReply> + Send + Sync;

pub fn granted(budget_ms: u64) -> ClaimReply {
    ClaimReply::Granted {
        budget_ms,
        lease_ms: 10_000,
    }
}

pub fn refused(why: &str) -> ClaimReply {
    ClaimReply::Refused { why: why.to_owned() }
}

pub fn keys(secret: u8) -> Keys {
    Keys::new(vec![Key::new("k1", &[secret; 32]).unwrap()]).unwrap()
}

pub struct Engine {
    pub bus: InProcessBus,
    pub keys: Keys,
    claims: Arc<Mutex<Vec<ClaimRequest>>>,
    results: mpsc::UnboundedReceiver<TaskResult>,
}

impl Engine {
    /// Answers claims with the script; `None` for no answer.
    pub async fn start(script: impl Fn(&ClaimRequest) -> Option<ClaimReply> + Send + Sync + 'static) -> Self {
        let bus = InProcessBus::new();
        let keys = keys(1);
        let claims = Arc::<Mutex<Vec<ClaimRequest>>>::default();
        let (out, results) = mpsc::unbounded_channel();
        let mut asked = bus.consume(&Queue::Claims, 100).await.unwrap();
        let mut said = bus.consume(&Queue::Results, 100).await.unwrap();
        let side = Side {
            bus: bus.clone(),
            keys: keys.clone(),
            script: Arc::new(script),
            claims: Arc::clone(&claims),
        };
        tokio::spawn(async move {
            while let Some(delivery) = asked.recv().await {
                side.answer(delivery).await;
            }
        });
        let believed = keys.clone();
        tokio::spawn(async move {
            while let Some(delivery) = said.recv().await {
                out.send(
                    believed
                        .open(&Audience::Queue(Queue::Results), &delivery.message)
                        .unwrap(),
                )
                .unwrap();
                delivery.settle.ack().await.unwrap();
            }
        });
        Self {
            bus,
            keys,
            claims,
            results,
        }
    }

    /// A bus without an engine.
    pub fn absent() -> Self {
        let (_, results) = mpsc::unbounded_channel();
        Self {
            bus: InProcessBus::new(),
            keys: keys(1),
            claims: Arc::default(),
            results,
        }
    }

    /// A worker with this driver under the name `simulated`.
    pub async fn worker(&self, driver: impl Driver + 'static, concurrency: usize) -> WorkerHandle {
        self.worker_on(self.bus.clone(), driver, concurrency).await
    }

    pub async fn worker_on(
        &self,
        bus: impl Bus,
        driver: impl Driver + 'static,
        concurrency: usize,
    ) -> WorkerHandle {
        let config = WorkerConfig {
            concurrency,
            ..WorkerConfig::new("w1", "z1")
        };
        let drivers = Drivers::default().with("simulated", Arc::new(driver));
        let new_id = Arc::new(Uuid::new_v4);
        let worker = Worker::start(config, Arc::new(bus), self.keys.clone(), drivers, new_id).unwrap();
        // The worker's queues must exist before a task is published.
        tokio::time::sleep(Duration::from_millis(50)).await;
        worker
    }

    pub async fn send(&self, task: &TaskMessage) {
        self.send_signed(task, &self.keys).await;
    }

    pub async fn send_signed(&self, task: &TaskMessage, keys: &Keys) {
        let message = keys
            .seal(Uuid::new_v4(), &Audience::Queue(tasks()), task)
            .unwrap();
        self.bus.publish(&tasks(), &message).await.unwrap();
    }

    pub async fn ask(&self, request: &DeviceRequest) -> DeviceReply {
        let queue = Queue::Devices {
            resource: Resource::Power,
            zone: "z1".to_owned(),
        };
        let message = self
            .keys
            .seal(Uuid::new_v4(), &Audience::Queue(queue.clone()), request)
            .unwrap();
        let reply = self
            .bus
            .request(&queue, &message, Duration::from_secs(10))
            .await
            .unwrap();
        self.keys.open(&Audience::Reply(message.id), &reply).unwrap()
    }

    pub async fn result(&mut self) -> TaskResult {
        timeout(Duration::from_secs(30), self.results.recv())
            .await
            .expect("a result")
            .unwrap()
    }

    /// Whether no message comes for a while.
    pub async fn stays_silent(&mut self) -> bool {
        timeout(Duration::from_millis(700), self.results.recv())
            .await
            .is_err()
    }

    pub fn claims(&self) -> Vec<ClaimRequest> {
        self.claims.lock().clone()
    }
}

/// A bus whose first publishes fail, or whose first answers are lost with the connection.
pub struct Flaky {
    bus: InProcessBus,
    failures: AtomicU32,
    lost_answers: AtomicU32,
}

impl Flaky {
    pub fn new(bus: InProcessBus, failures: u32) -> Self {
        Self {
            bus,
            failures: AtomicU32::new(failures),
            lost_answers: AtomicU32::new(0),
        }
    }

    pub fn losing_answers(bus: InProcessBus, lost: u32) -> Self {
        Self {
            lost_answers: AtomicU32::new(lost),
            ..Self::new(bus, 0)
        }
    }
}

/// Whether this is one of the first uses that must fail.
fn is_due(left: &AtomicU32) -> bool {
    left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1))
        .is_ok()
}

fn away() -> BusError {
    BusError::Unavailable {
        address: "here".to_owned(),
        source: None,
    }
}

#[async_trait]
impl Bus for Flaky {
    async fn publish(&self, queue: &Queue, message: &Message) -> Result<(), BusError> {
        if is_due(&self.failures) {
            return Err(away());
        }
        self.bus.publish(queue, message).await
    }

    async fn consume(&self, queue: &Queue, prefetch: u16) -> Result<Deliveries, BusError> {
        self.bus.consume(queue, prefetch).await
    }

    async fn request(
        &self,
        queue: &Queue,
        message: &Message,
        timeout: Duration,
    ) -> Result<Message, BusError> {
        let answer = self.bus.request(queue, message, timeout).await;
        if is_due(&self.lost_answers) {
            return Err(away());
        }
        answer
    }

    async fn respond(&self, to: &ReplyTo, request: &Message, answer: &Message) -> Result<(), BusError> {
        self.bus.respond(to, request, answer).await
    }

    async fn health(&self) -> Result<(), BusError> {
        self.bus.health().await
    }

    async fn close(&self) {
        self.bus.close().await;
    }
}

struct Side {
    bus: InProcessBus,
    keys: Keys,
    script: Arc<Script>,
    claims: Arc<Mutex<Vec<ClaimRequest>>>,
}

impl Side {
    async fn answer(&self, delivery: Delivery) {
        let request: ClaimRequest = self
            .keys
            .open(&Audience::Queue(Queue::Claims), &delivery.message)
            .unwrap();
        self.claims.lock().push(request.clone());
        if let Some(reply) = (self.script)(&request) {
            let audience = Audience::Reply(delivery.message.id);
            let sealed = self.keys.seal(Uuid::new_v4(), &audience, &reply).unwrap();
            self.bus
                .respond(&delivery.reply_to.unwrap(), &delivery.message, &sealed)
                .await
                .unwrap();
        }
        delivery.settle.ack().await.unwrap();
    }
}

pub fn tasks() -> Queue {
    Queue::Tasks {
        resource: Resource::Power,
        zone: "z1".to_owned(),
    }
}

/// The method of a task at a device.
pub fn method_of(task: &mut TaskMessage) -> &mut FrozenMethod {
    match &mut task.job {
        Job::Fencing { method, .. } => method,
        Job::Step { .. } => panic!("the job is a workload step"),
    }
}

/// The first attempt of an operation on `device`; the method has the device's name.
pub fn task(number: u32, device: &str) -> TaskMessage {
    let method = FrozenMethod {
        name: device.to_owned(),
        secrets: BTreeMap::new(),
        ..method("simulated", Resource::Power, &[("device", device)])
    };
    TaskMessage {
        host_id: HostId(Uuid::from_u128(3)),
        host: "h1".to_owned(),
        attempt: AttemptId {
            operation_id: OperationId(Uuid::from_u128(4)),
            number,
        },
        generation: Generation(5),
        job: Job::Fencing {
            kind: FencingKind::PowerOff,
            method,
        },
    }
}
