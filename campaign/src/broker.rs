//! An intruder on the broker, who reads every message, and sends messages again, late, or forged.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::{BasicConsumeOptions, BasicPublishOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use parking_lot::Mutex;
use ringfence_lab::RabbitMq;
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::error::CampaignError;
use crate::rng::Dice;

/// Number of messages that are kept.
const REMEMBERED: usize = 400;
/// The exchange on which the broker publishes a copy of every message.
const TOLD: &str = "amq.rabbitmq.trace";

/// A message as it was sent.
#[derive(Clone)]
pub struct Heard {
    queue: String,
    properties: BasicProperties,
    body: Vec<u8>,
    at: Instant,
}

/// What the intruder does with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mischief {
    /// Sends the message once more.
    Doubled,
    /// Sends an old message again.
    Late,
    /// Sends the message with another body under the old signature.
    Forged,
    /// Sends the message to another queue.
    Misled,
}

/// Reads messages until it is dropped.
pub struct Tap {
    heard: Arc<Mutex<VecDeque<Heard>>>,
    url: String,
    _listening: AbortOnDropHandle<()>,
}

impl Tap {
    /// Reads the messages to the queues with this prefix.
    pub fn on(url: &str, prefix: &str, rabbit: Arc<tokio::sync::Mutex<RabbitMq>>) -> Self {
        let heard = Arc::new(Mutex::new(VecDeque::new()));
        let (url, prefix, memory) = (url.to_owned(), prefix.to_owned(), Arc::clone(&heard));
        let of = url.clone();
        let listening = tokio::spawn(async move {
            loop {
                // After an outage the broker has forgotten that it must copy messages.
                let _ = listen(&url, &prefix, &rabbit, &memory).await;
                sleep(Duration::from_millis(500)).await;
            }
        });
        Self {
            heard,
            url: of,
            _listening: AbortOnDropHandle::new(listening),
        }
    }

    /// Does this with a message that was read, if one fits. Returns a description.
    pub async fn play(&self, mischief: Mischief, dice: &mut Dice) -> Result<Option<String>, CampaignError> {
        let Some(heard) = self.choose(mischief, dice) else {
            return Ok(None);
        };
        let played = spoil(heard, mischief, dice, &self.queues());
        let kind = played.properties.kind().as_ref().map(ToString::to_string);
        let age_s = played.at.elapsed().as_secs();
        let connection = Connection::connect(&self.url, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        channel
            .basic_publish(
                "".into(),
                played.queue.as_str().into(),
                BasicPublishOptions::default(),
                &played.body,
                played.properties,
            )
            .await?;
        // The message must be sent before the connection closes.
        let _ = timeout(Duration::from_secs(2), connection.close(200, "done".into())).await;
        Ok(Some(format!(
            "{} of {age_s} s ago on {}",
            kind.unwrap_or_default(),
            played.queue
        )))
    }

    fn choose(&self, mischief: Mischief, dice: &mut Dice) -> Option<Heard> {
        let heard = self.heard.lock();
        let is_old = |heard: &&Heard| heard.at.elapsed() >= Duration::from_secs(3);
        let fits: Vec<_> = match mischief {
            Mischief::Late => heard.iter().filter(is_old).collect(),
            Mischief::Doubled | Mischief::Forged | Mischief::Misled => heard.iter().rev().take(20).collect(),
        };
        if fits.is_empty() {
            return None;
        }
        Some((*dice.pick(&fits)).clone())
    }

    fn queues(&self) -> Vec<String> {
        let heard = self.heard.lock();
        heard.iter().map(|heard| heard.queue.clone()).collect()
    }
}

fn spoil(mut heard: Heard, mischief: Mischief, dice: &mut Dice, queues: &[String]) -> Heard {
    match mischief {
        Mischief::Doubled | Mischief::Late => {}
        Mischief::Forged => heard.body = forged(&heard.body),
        Mischief::Misled => heard.queue.clone_from(dice.pick(queues)),
    }
    heard
}

/// The body of a forged result.
fn forged(body: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    let better = text
        .replace("\"unknown\"", "\"confirmed\"")
        .replace("\"refused\"", "\"confirmed\"")
        .replace("\"on\"", "\"off\"")
        .replace("\"unfenced\"", "\"fenced\"");
    let changed = if better == text {
        format!("{better} ")
    } else {
        better
    };
    changed.into_bytes()
}

async fn listen(
    url: &str,
    prefix: &str,
    rabbit: &tokio::sync::Mutex<RabbitMq>,
    memory: &Mutex<VecDeque<Heard>>,
) -> Result<(), CampaignError> {
    let (program, environment) = rabbit.lock().await.control();
    let asked = tokio::process::Command::new(program)
        .args(["trace_on", "--quiet"])
        .envs(environment)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true)
        .status();
    asked
        .await
        .map_err(CampaignError::system("ask the broker to tell"))?;
    let connection = Connection::connect(url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    let queue = bind(&channel).await?;
    let options = BasicConsumeOptions {
        no_ack: true,
        ..BasicConsumeOptions::default()
    };
    let mut told = channel
        .basic_consume(queue.as_str().into(), "".into(), options, FieldTable::default())
        .await?;
    while let Some(delivery) = told.next().await {
        if let Some(heard) = heard(delivery?, prefix) {
            let mut memory = memory.lock();
            if memory.len() >= REMEMBERED {
                memory.pop_front();
            }
            memory.push_back(heard);
        }
    }
    Ok(())
}

async fn bind(channel: &Channel) -> Result<String, CampaignError> {
    let options = QueueDeclareOptions {
        exclusive: true,
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    let mut bounds = FieldTable::default();
    bounds.insert("x-max-length".into(), AMQPValue::LongInt(1_000));
    let queue = channel.queue_declare("".into(), options, bounds).await?;
    let name = queue.name().to_string();
    channel
        .queue_bind(
            name.as_str().into(),
            TOLD.into(),
            "publish.#".into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await?;
    Ok(name)
}

/// A copied message: its queue and properties are in the headers of the copy.
fn heard(delivery: Delivery, prefix: &str) -> Option<Heard> {
    let headers = delivery.properties.headers().as_ref()?.inner();
    let AMQPValue::FieldArray(keys) = headers.get("routing_keys")? else {
        return None;
    };
    let queue = text(keys.as_slice().first()?)?;
    let AMQPValue::FieldTable(properties) = headers.get("properties")? else {
        return None;
    };
    queue.starts_with(prefix).then(|| Heard {
        queue,
        properties: as_sent(properties),
        body: delivery.data,
        at: Instant::now(),
    })
}

fn as_sent(told: &FieldTable) -> BasicProperties {
    let of = |name: &str| told.inner().get(name).and_then(text);
    let mut properties = BasicProperties::default()
        .with_content_type("application/json".into())
        .with_delivery_mode(2);
    if let Some(kind) = of("type") {
        properties = properties.with_type(kind.into());
    }
    if let Some(id) = of("message_id") {
        properties = properties.with_message_id(id.into());
    }
    if let Some(reply_to) = of("reply_to") {
        properties = properties.with_reply_to(reply_to.into());
    }
    if let Some(correlation) = of("correlation_id") {
        properties = properties.with_correlation_id(correlation.into());
    }
    match told.inner().get("headers") {
        Some(AMQPValue::FieldTable(headers)) => properties.with_headers(headers.clone()),
        _ => properties,
    }
}

fn text(value: &AMQPValue) -> Option<String> {
    match value {
        AMQPValue::LongString(text) => String::from_utf8(text.as_bytes().to_vec()).ok(),
        AMQPValue::ShortString(text) => Some(text.to_string()),
        _ => None,
    }
}
