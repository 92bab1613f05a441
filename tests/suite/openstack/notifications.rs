//! Notifications on OpenStack's own broker, as a real consumer of Nova's notifications gets them.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use lapin::options::{
    BasicGetOptions, ExchangeDeclareOptions, ExchangeDeleteOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties, ExchangeKind};
use ringfence_bus::{AmqpConfig, AmqpExchange, ExchangeConfig};
use ringfence_engine::{EventSink, SinkForm};
use ringfence_lab::RabbitMq;
use ringfence_tests::{Client, Ground, Site, Stack, StackOptions, set_up, start_api, start_worker};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::block_in_place;
use tokio::time::timeout;

use super::plant::cloud;
use crate::processes::distributed::configure;

const EXCHANGE: &str = "nova";
const TOPIC: &str = "versioned_notifications";
const QUEUE: &str = "versioned_notifications.info";

/// A listener of oslo.messaging with a queue of its own, so that other listeners miss nothing.
struct Listener {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Listener {
    async fn start(url: &str) -> Self {
        let script = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/suite/subscriptions/oslo_listener.py"
        );
        let url = url.replacen("amqp://", "rabbit://", 1);
        // The oslo.messaging that OpenStack's services use.
        let mut process = Command::new("/usr/bin/python3")
            .args([script, &url, EXCHANGE, TOPIC, "ringfence-story"])
            .env_remove("PYTHONPATH")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut listener = Self {
            _process: process,
            lines,
        };
        assert_eq!(listener.next().await["listens"], true);
        listener
    }

    async fn next(&mut self) -> Value {
        let line = timeout(Duration::from_secs(60), self.lines.next_line()).await;
        // A minute without a notification fails the test.
        serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap()
    }

    /// The next notification of this type; Nova sends others between.
    async fn until(&mut self, event_type: &str) -> Value {
        loop {
            let heard = self.next().await;
            if heard["event_type"] == event_type {
                return heard;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_of_novas_notifications_is_notified_of_a_fenced_host() {
    let cloud = cloud();
    let broker = cloud.description().broker_url.clone();
    let mut listener = Listener::start(&broker).await;
    let site = Site::new(Ground::Distributed).await;
    let (machine, token) = set_up(&site).await;
    let machine = machine
        .set("RINGFENCE_OSLO_URL", &broker)
        .set("RINGFENCE_OSLO_EXCHANGE", EXCHANGE)
        .set("RINGFENCE_OSLO_TOPIC", TOPIC);
    let mut api = start_api(&machine);
    let url = api.until_it_listens("the API listens").await;
    let client = Client::new(&url, Some(&token));
    let engine = machine.start("engine-1", &["engine", "--name", "engine-1"]);
    let worker = start_worker(&machine, "worker-1");
    configure(&machine, &client, &["h1"], json!({})).await;
    client.fence("h1").await;
    let host = client.until_fenced("h1").await;

    let heard = listener.until("ringfence.host.fenced").await;
    assert_eq!(heard["priority"], "INFO");
    assert_eq!(heard["publisher_id"], "ringfence.default");
    let event = &heard["payload"];
    assert_eq!(
        (&event["host"], &event["type"], &event["generation"]),
        (&json!("h1"), &json!("host.fenced"), &host["generation"])
    );
    assert_eq!(heard["message_id"], event["id"]);
    // Nova goes on speaking through the exchange that both use.
    let computes = block_in_place(|| cloud.computes(["told-a"]).unwrap());
    listener.until("service.create").await;
    drop((computes, worker, engine));
}

fn event_sink(url: &str) -> EventSink {
    let config = ExchangeConfig {
        name: EXCHANGE.to_owned(),
        is_ours: false,
        durable: false,
        queue: Some(QUEUE.to_owned()),
    };
    let broker = AmqpConfig::new(url, "test").unwrap();
    EventSink {
        name: "oslo",
        form: SinkForm::Oslo {
            topic: TOPIC.to_owned(),
            publisher_id: "ringfence.test".to_owned(),
        },
        announcer: Arc::new(AmqpExchange::connect_when_there(broker, config)),
    }
}

async fn connect(url: &str) -> Connection {
    Connection::connect(url, ConnectionProperties::default())
        .await
        .unwrap()
}

/// Makes the exchange and the queue before Ringfence does, with other properties.
async fn make_durable(url: &str) {
    let channel = connect(url).await.create_channel().await.unwrap();
    let durable = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    channel
        .exchange_declare(
            EXCHANGE.into(),
            ExchangeKind::Topic,
            durable,
            FieldTable::default(),
        )
        .await
        .unwrap();
    let durable = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare(QUEUE.into(), durable, FieldTable::default())
        .await
        .unwrap();
    channel
        .queue_bind(
            QUEUE.into(),
            EXCHANGE.into(),
            QUEUE.into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await
        .unwrap();
}

/// Waits for the notification that a host of this name was added, and drops all notifications before it.
async fn until_told(url: &str, host: &str) {
    let connection = connect(url).await;
    for _ in 0..300 {
        // The queue may not exist yet: then the broker closes the channel.
        let channel = connection.create_channel().await.unwrap();
        let got = channel
            .basic_get(QUEUE.into(), BasicGetOptions { no_ack: true })
            .await;
        let Ok(Some(message)) = got else {
            tokio::time::sleep(Duration::from_millis(200)).await;
            continue;
        };
        let envelope: Value = serde_json::from_slice(&message.delivery.data).unwrap();
        let told: Value = serde_json::from_str(envelope["oslo.message"].as_str().unwrap()).unwrap();
        if told["event_type"] == "ringfence.host.created" && told["payload"]["host"] == host {
            return;
        }
    }
    panic!("no notification about {host} came");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn notifications_survive_a_foreign_exchange_a_deleted_exchange_and_an_outage_of_the_broker() {
    let mut broker = block_in_place(|| RabbitMq::start().unwrap());
    let url = broker.url();
    make_durable(&url).await;
    let site = Site::new(Ground::Distributed).await;
    let mut stack = Stack::start_with(
        site,
        StackOptions {
            hosts: 0,
            workers: 0,
            ..StackOptions::default()
        },
    )
    .await;
    for (engine, running) in &mut stack.engines {
        running.as_mut().unwrap().tell(engine, event_sink(&url));
    }
    let add = async |name: &str| stack.client.post("/hosts", json!({ "name": name })).await.ok(201);
    // A new event sink begins with the events after it.
    ringfence_tests::eventually(async || {
        let event_sinks = ringfence_db::list_event_sinks(&mut stack.api.db().reader()).await;
        !event_sinks.unwrap().is_empty()
    })
    .await;
    add("otherwise").await;
    until_told(&url, "otherwise").await;

    let channel = connect(&url).await.create_channel().await.unwrap();
    channel
        .exchange_delete(EXCHANGE.into(), ExchangeDeleteOptions::default())
        .await
        .unwrap();
    add("gone").await;
    until_told(&url, "gone").await;

    block_in_place(|| broker.stop());
    add("meanwhile").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    block_in_place(|| broker.start_again().unwrap());
    until_told(&url, "meanwhile").await;
    stack.stop().await;
}
