//! Notifications, as a listener of oslo.messaging gets them.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use ringfence_bus::{AmqpConfig, AmqpExchange, ExchangeConfig};
use ringfence_engine::{EventSink, SinkForm};
use ringfence_tests::{Ground, Site, Stack, StackOptions, eventually, power_plan};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::all_numbers;

/// A listener of oslo.messaging; it ends when the value is dropped.
struct Listener {
    _process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Listener {
    fn start(stack: &Stack, name: &str) -> Self {
        let url = stack.site.amqp_url.as_deref().unwrap();
        let mut process = Command::new(python())
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/suite/subscriptions/oslo_listener.py"
            ))
            .args([&url.replacen("amqp://", "rabbit://", 1), name, name])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self {
            _process: process,
            lines,
        }
    }

    async fn next(&mut self) -> Value {
        let line = timeout(Duration::from_secs(60), self.lines.next_line()).await;
        // A minute without a notification fails the test.
        serde_json::from_str(&line.unwrap().unwrap().unwrap()).unwrap()
    }
}

/// The Python with oslo.messaging, which Keystone depends on.
fn python() -> PathBuf {
    let Some(manage) = std::env::var_os("RINGFENCE_TEST_KEYSTONE") else {
        panic!("RINGFENCE_TEST_KEYSTONE is not set; run the tests with `cargo xtask test`");
    };
    PathBuf::from(manage).with_file_name("python")
}

fn event_sink(stack: &Stack, name: &str) -> EventSink {
    EventSink {
        name: "oslo",
        form: SinkForm::Oslo {
            topic: name.to_owned(),
            publisher_id: "ringfence.test".to_owned(),
        },
        announcer: Arc::new(AmqpExchange::connect_when_there(
            AmqpConfig::new(stack.site.amqp_url.as_deref().unwrap(), "test").unwrap(),
            ExchangeConfig {
                name: name.to_owned(),
                is_ours: false,
                durable: false,
                queue: Some(format!("{name}.info")),
            },
        )),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_of_oslo_messaging_gets_every_event_also_earlier_ones() {
    let site = Site::new(Ground::Distributed).await;
    let mut stack = Stack::start_with(site, StackOptions::default()).await;
    stack.plan(power_plan()).await;
    let name = format!("{}-oslo", stack.site.prefix);
    let event_sink = event_sink(&stack, &name);
    for (engine, running) in &mut stack.engines {
        running.as_mut().unwrap().tell(engine, event_sink.clone());
    }
    let told_up_to = async || {
        let event_sinks = ringfence_db::list_event_sinks(&mut stack.api.db().reader())
            .await
            .unwrap();
        event_sinks.first().map_or(0, |(_, number)| *number)
    };
    eventually(async || told_up_to().await > 0).await;
    let from = told_up_to().await;
    stack.hang("h1").await;
    let operation = stack.client.fence("h1").await;
    stack.client.until_settled(&operation).await;
    let expected = all_numbers(&stack, from).await;
    eventually(async || told_up_to().await >= *expected.last().unwrap()).await;
    // The queue has kept notifications from before the listener.
    let mut listener = Listener::start(&stack, &name);
    let listed = stack
        .client
        .get(&format!("/events?after={from}&limit=1000"))
        .await
        .ok(200);
    for event in listed["events"].as_array().unwrap() {
        let heard = listener.next().await;
        assert_eq!(&heard["payload"], event);
        assert_eq!(heard["priority"], "INFO");
        assert_eq!(heard["publisher_id"], "ringfence.test");
        assert_eq!(heard["message_id"], event["id"]);
        let kind = event["type"].as_str().unwrap();
        assert_eq!(heard["event_type"], format!("ringfence.{kind}"));
    }
    stack.client.seen("h1", "UP").await.ok(200);
    let heard = listener.next().await;
    assert_eq!(heard["event_type"], "ringfence.host.failure_state");
    assert_eq!(heard["payload"]["data"]["to"], "UP");
    stack.stop().await;
}
