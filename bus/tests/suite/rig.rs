//! The buses under test, and test messages.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use ringfence_bus::{
    AmqpBus, AmqpConfig, Audience, Bus, DeadLetter, DeadLetters, Deliveries, Delivery, InProcessBus, Key,
    Keys, Message, Payload, Queue,
};
use ringfence_core::Resource;
use serde::{Deserialize, Serialize};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::rabbit::Rabbit;

/// The time limit of a wait, long enough for a busy machine.
pub const SOON: Duration = Duration::from_secs(20);
/// Time after which no message counts as none.
pub const A_WHILE: Duration = Duration::from_millis(300);

pub trait TestedBus: Bus + DeadLetters {}
impl<T: Bus + DeadLetters> TestedBus for T {}

/// A bus, with names that no other test uses.
pub struct Rig {
    pub bus: Arc<dyn TestedBus>,
    pub keys: Keys,
    zone: String,
    broker: Option<Arc<Broker>>,
}

impl Rig {
    pub async fn in_process() -> Self {
        Self::new(Arc::new(InProcessBus::new()), None)
    }

    pub async fn amqp() -> Self {
        let broker = broker();
        let config = AmqpConfig::new(&broker.url(), "bus-suite").unwrap();
        let bus = AmqpBus::connect(config).await.unwrap();
        Self::new(Arc::new(bus), Some(broker))
    }

    fn new(bus: Arc<dyn TestedBus>, broker: Option<Arc<Broker>>) -> Self {
        Self {
            bus,
            keys: keys(),
            zone: Uuid::new_v4().simple().to_string(),
            broker,
        }
    }

    pub fn is_amqp(&self) -> bool {
        self.broker.is_some()
    }

    pub fn url(&self) -> String {
        self.broker.as_ref().expect("a broker").url()
    }

    pub fn tasks(&self) -> Queue {
        Queue::Tasks {
            resource: Resource::Power,
            zone: self.zone.clone(),
        }
    }

    pub fn elsewhere(&self) -> Queue {
        Queue::Tasks {
            resource: Resource::Storage,
            zone: self.zone.clone(),
        }
    }

    pub fn questions(&self) -> Queue {
        Queue::Devices {
            resource: Resource::Power,
            zone: self.zone.clone(),
        }
    }

    pub async fn put(&self, queue: &Queue, number: u64) -> Message {
        let message = note(&self.keys, Audience::Queue(queue.clone()), number);
        self.bus.publish(queue, &message).await.unwrap();
        message
    }

    /// The dead letters of a queue, once there are any. A test that reads at that moment may hide some.
    pub async fn dead_letters_of(&self, queue: &Queue) -> Vec<DeadLetter> {
        let name = queue.to_string();
        let look = async {
            loop {
                let letters = self.bus.dead_letters(100).await.unwrap();
                let ours: Vec<_> = letters
                    .into_iter()
                    .filter(|letter| letter.queue == name)
                    .collect();
                if !ours.is_empty() {
                    return ours;
                }
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(SOON, look).await.expect("no dead letter came in time")
    }
}

/// A payload of this test suite: the bus carries any type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub number: u64,
}

impl Payload for Note {
    const KIND: &'static str = "note.v1";
}

pub fn key(id: &str, byte: u8) -> Key {
    Key::new(id, &[byte; 32]).unwrap()
}

pub fn keys() -> Keys {
    Keys::new(vec![key("site", 7)]).unwrap()
}

pub fn note(keys: &Keys, audience: Audience, number: u64) -> Message {
    keys.seal(Uuid::new_v4(), &audience, &Note { number }).unwrap()
}

pub fn number(delivery: &Delivery) -> u64 {
    serde_json::from_slice::<Note>(&delivery.message.body)
        .unwrap()
        .number
}

pub async fn next(deliveries: &mut Deliveries) -> Delivery {
    timeout(SOON, deliveries.recv())
        .await
        .expect("no delivery came in time")
        .expect("the bus was closed")
}

pub async fn nothing(deliveries: &mut Deliveries) {
    if let Ok(Some(delivery)) = timeout(A_WHILE, deliveries.recv()).await {
        panic!("note {} came, and no message was expected", number(&delivery));
    }
}

/// Tries until one attempt succeeds.
pub async fn eventually<T, E: std::fmt::Debug>(mut attempt: impl AsyncFnMut() -> Result<T, E>) -> T {
    let deadline = tokio::time::Instant::now() + SOON;
    loop {
        match attempt().await {
            Ok(value) => return value,
            Err(error) => assert!(tokio::time::Instant::now() < deadline, "still {error:?}"),
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// The broker of the environment, or one that this process starts for the tests that run at the time.
enum Broker {
    Given(String),
    Ours(Rabbit),
}

impl Broker {
    fn url(&self) -> String {
        match self {
            Self::Given(url) => url.clone(),
            Self::Ours(rabbit) => rabbit.url(),
        }
    }
}

fn broker() -> Arc<Broker> {
    static SHARED: Mutex<Weak<Broker>> = Mutex::new(Weak::new());
    let mut shared = SHARED.lock();
    if let Some(broker) = shared.upgrade() {
        return broker;
    }
    let broker = match std::env::var("RINGFENCE_TEST_AMQP_URL") {
        Ok(url) => Broker::Given(url),
        Err(_) => {
            Broker::Ours(Rabbit::start().expect("install rabbitmq-server or set RINGFENCE_TEST_AMQP_URL"))
        }
    };
    let broker = Arc::new(broker);
    *shared = Arc::downgrade(&broker);
    broker
}
