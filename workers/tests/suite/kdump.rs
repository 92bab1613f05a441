//! kdump messages: the real sender, and thousands of datagrams from elsewhere.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use chrono::TimeDelta;
use parking_lot::Mutex;
use ringfence_bus::{Audience, Bus, InProcessBus, KdumpReply, KdumpRequest, Queue};
use ringfence_core::{EngineTime, Timestamp};
use ringfence_lab::KdumpSender;
use ringfence_workers::{Drivers, Worker, WorkerConfig, WorkerHandle};
use uuid::Uuid;

use crate::engine::keys;
use crate::runtime::until;

const LITTLE_ENDIAN: [u8; 8] = [0x40, 0x2a, 0x30, 0x1b, 1, 0, 0, 0];
const BIG_ENDIAN: [u8; 8] = [0x1b, 0x30, 0x2a, 0x40, 0, 0, 0, 1];
/// Addresses of hosts.
const HOSTS: [&str; 3] = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// From where messages came, and whether each says when it was heard.
type Seen = Arc<Mutex<Vec<(IpAddr, bool)>>>;

/// An engine that knows the hosts, and a worker that listens.
struct Listening {
    worker: WorkerHandle,
    seen: Seen,
    at: SocketAddr,
}

impl Listening {
    async fn start() -> Self {
        let bus = InProcessBus::new();
        let seen = Seen::default();
        tokio::spawn(answer(bus.clone(), Arc::clone(&seen)));
        until(|| bus.began().is_some()).await;
        let config = WorkerConfig {
            kdump_listen: Some("127.0.0.1:0".parse().unwrap()),
            ..WorkerConfig::new("w1", "z1")
        };
        let new_id = Arc::new(Uuid::new_v4);
        let worker = Worker::start(config, Arc::new(bus), keys(1), Drivers::default(), new_id).unwrap();
        let at = worker.kdump_address().unwrap();
        let listening = Self { worker, seen, at };
        // It hears no host before it knows the addresses of hosts.
        let probe = listening.socket(HOSTS[2]);
        until(|| {
            probe.send_to(&LITTLE_ENDIAN, at).unwrap();
            listening.worker.metrics().kdump_heard > 0
        })
        .await;
        until(|| listening.has_seen(HOSTS[2])).await;
        listening
    }

    fn socket(&self, from: &str) -> UdpSocket {
        UdpSocket::bind((address(from), 0)).unwrap()
    }

    fn send(&self, from: &str, datagram: &[u8]) {
        self.socket(from).send_to(datagram, self.at).unwrap();
    }

    fn has_seen(&self, host: &str) -> bool {
        let seen = self.seen.lock();
        seen.iter()
            .any(|(from, is_dated)| *from == address(host) && *is_dated)
    }
}

/// The engine's side. Each answer names one address, so that a worker has to ask for more.
async fn answer(bus: InProcessBus, seen: Seen) {
    let (start, began_at) = (Timestamp::UNIX_EPOCH, Instant::now());
    let now = || start + TimeDelta::from_std(began_at.elapsed()).unwrap();
    let mut asked = bus.consume(&Queue::Kdump, 10).await.unwrap();
    while let Some(delivery) = asked.recv().await {
        let keys = keys(1);
        let request = keys
            .open(&Audience::Queue(Queue::Kdump), &delivery.message)
            .unwrap();
        let reply = match request {
            KdumpRequest::Addresses { after } => {
                let later = |host: &IpAddr| after.is_none_or(|after| *host > after);
                let next = HOSTS.map(address).into_iter().find(later);
                KdumpReply::Addresses {
                    addresses: next.into_iter().collect(),
                    time: EngineTime {
                        at: now(),
                        clock_set_at: None,
                    },
                }
            }
            KdumpRequest::Seen { messages } => {
                let dated = |after: EngineTime| after.at >= start && after.at < now();
                let told = messages
                    .into_iter()
                    .map(|heard| (heard.from, heard.after.is_some_and(dated)));
                seen.lock().extend(told);
                KdumpReply::Taken
            }
        };
        let audience = Audience::Reply(delivery.message.id);
        let reply = keys.seal(Uuid::new_v4(), &audience, &reply).unwrap();
        let to = delivery.reply_to.unwrap();
        bus.respond(&to, &delivery.message, &reply).await.unwrap();
        delivery.settle.ack().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_message_of_the_real_sender_is_told_with_the_address_of_its_host() {
    let listening = Listening::start().await;
    let at = listening.at;
    let sender = tokio::task::spawn_blocking(move || KdumpSender::start(at))
        .await
        .unwrap()
        .unwrap();
    until(|| listening.has_seen("127.0.0.1")).await;
    tokio::task::spawn_blocking(move || drop(sender)).await.unwrap();
    assert_eq!(listening.worker.metrics().kdump_unreadable, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_of_the_other_byte_order_is_heard() {
    let listening = Listening::start().await;
    listening.send("127.0.0.2", &BIG_ENDIAN);
    until(|| listening.has_seen("127.0.0.2")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_messages_from_elsewhere_reach_no_engine_and_hide_no_host() {
    let listening = Listening::start().await;
    let told_before = listening.seen.lock().len();
    let foreign: Vec<_> = (10..250)
        .map(|last| listening.socket(&format!("127.0.1.{last}")))
        .collect();
    let host = listening.socket("127.0.0.1");
    for round in 0..50 {
        for (number, socket) in foreign.iter().enumerate() {
            let datagram: &[u8] = match (round + number) % 4 {
                0 => &BIG_ENDIAN,
                1 => b"GET / HTTP/1.1",
                _ => &LITTLE_ENDIAN,
            };
            socket.send_to(datagram, listening.at).unwrap();
        }
        host.send_to(&LITTLE_ENDIAN, listening.at).unwrap();
        // The socket's buffer is not what is tested.
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    until(|| listening.has_seen("127.0.0.1")).await;
    let counted = listening.worker.metrics();
    assert!(
        counted.kdump_foreign > 5_000 && counted.kdump_unreadable > 1_500,
        "{counted:?}"
    );
    let told = listening.seen.lock()[told_before..].to_vec();
    assert!(
        told.iter().all(|(from, _)| *from == address("127.0.0.1")) && told.len() <= 2,
        "{told:?}"
    );
}

#[tokio::test]
async fn a_worker_that_cannot_listen_says_where() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let config = WorkerConfig {
        kdump_listen: Some(taken.local_addr().unwrap()),
        ..WorkerConfig::new("w1", "z1")
    };
    let bus = Arc::new(InProcessBus::new());
    let started = Worker::start(config, bus, keys(1), Drivers::default(), Arc::new(Uuid::new_v4));
    let error = started.err().unwrap().to_string();
    assert!(
        error.contains(&taken.local_addr().unwrap().to_string()),
        "{error}"
    );
}
