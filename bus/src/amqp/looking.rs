//! Looking at the dead letters, and removing them.

use std::time::Duration;

use async_trait::async_trait;
use chrono::DateTime;
use lapin::message::{BasicGetMessage, Delivery};
use lapin::options::{BasicAckOptions, BasicGetOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection};
use ringfence_core::Timestamp;
use tokio::time::timeout;

use super::AmqpBus;
use super::burial::{AT, BYTES, QUEUE, REASON};
use super::fault::{fault, unavailable};
use super::names::Names;
use super::topology::declare_dead_letters;
use super::wire::header;
use crate::dead_letters::{Counting, MOST};
use crate::limits::MAX_DEAD_LETTERS;
use crate::{BusError, DeadLetter, DeadLetters, MAX_BODY_BYTES, Survey};

/// For a thousand letters one after the other. A connection that has just died would be waited for without an end.
const LOOK_TIMEOUT: Duration = Duration::from_secs(60);

#[async_trait]
impl DeadLetters for AmqpBus {
    async fn dead_letter_count(&self) -> Result<u64, BusError> {
        let live = self.outgoing.live()?;
        self.in_time(count(&live.connection, self.outgoing.names())).await
    }

    async fn dead_letters(&self, limit: u16) -> Result<Vec<DeadLetter>, BusError> {
        let mut letters = Vec::new();
        self.walk(usize::from(limit.min(MOST)), |letter| {
            letters.push(letter);
            Fate::Stays
        })
        .await?;
        Ok(letters)
    }

    async fn survey_dead_letters(&self, limit: u16) -> Result<Survey, BusError> {
        let mut counting = Counting::new(limit);
        self.walk(MAX_DEAD_LETTERS, |letter| {
            counting.add(letter);
            Fate::Stays
        })
        .await?;
        Ok(counting.into_survey())
    }

    async fn remove_dead_letters(&self, queue: Option<&str>) -> Result<u64, BusError> {
        let mut removed = 0;
        self.walk(MAX_DEAD_LETTERS, |letter| {
            if !letter.is_of(queue) {
                return Fate::Stays;
            }
            removed += 1;
            Fate::Goes
        })
        .await?;
        Ok(removed)
    }
}

/// What becomes of a letter that was looked at.
enum Fate {
    Stays,
    Goes,
}

impl AmqpBus {
    async fn walk(
        &self,
        most: usize,
        look_at: impl FnMut(DeadLetter) -> Fate + Send,
    ) -> Result<(), BusError> {
        let live = self.outgoing.live()?;
        self.in_time(walk(&live.connection, self.outgoing.names(), most, look_at))
            .await
    }

    async fn in_time<T>(&self, looking: impl Future<Output = lapin::Result<T>>) -> Result<T, BusError> {
        let address = self.outgoing.address();
        timeout(LOOK_TIMEOUT, looking)
            .await
            .map_err(|_| unavailable(address, "it did not show the dead letters in time"))?
            .map_err(|error| fault(address, || "to show the dead letters".to_owned(), error))
    }
}

async fn count(connection: &Connection, names: &Names) -> lapin::Result<u64> {
    let passive = QueueDeclareOptions::durable().passive();
    let queue = channel(connection, names)
        .await?
        .queue_declare(names.dead_letters().into(), passive, FieldTable::default())
        .await?;
    Ok(queue.message_count().into())
}

async fn channel(connection: &Connection, names: &Names) -> lapin::Result<Channel> {
    let channel = connection.create_channel().await?;
    declare_dead_letters(&channel, names).await?;
    Ok(channel)
}

/// Looks at `most` letters, oldest first. The broker takes those that stay back, in their order, when the channel is closed.
async fn walk(
    connection: &Connection,
    names: &Names,
    most: usize,
    mut look_at: impl FnMut(DeadLetter) -> Fate,
) -> lapin::Result<()> {
    let channel = channel(connection, names).await?;
    for _ in 0..most {
        let got = channel
            .basic_get(names.dead_letters().into(), BasicGetOptions::default())
            .await?;
        let Some(BasicGetMessage { delivery, .. }) = got else {
            break;
        };
        let acker = delivery.acker.clone();
        match look_at(letter(delivery)) {
            Fate::Stays => {}
            Fate::Goes => {
                acker.ack(BasicAckOptions::default()).await?;
            }
        }
    }
    channel.close(200, "seen".into()).await
}

fn letter(delivery: Delivery) -> DeadLetter {
    let properties = &delivery.properties;
    let death = Death::of(properties);
    let text = |value: &Option<lapin::types::ShortString>| {
        value.as_ref().map(ToString::to_string).unwrap_or_default()
    };
    let sent = match value(properties, BYTES) {
        Some(AMQPValue::LongLongInt(bytes)) => u64::try_from(*bytes).ok(),
        _ => None,
    };
    DeadLetter {
        id: text(properties.message_id()),
        kind: text(properties.kind()),
        queue: death.queue.unwrap_or_default(),
        reason: death.reason.unwrap_or_default(),
        died_at: death.at,
        bytes: sent.unwrap_or(delivery.data.len() as u64),
        body: if delivery.data.len() > MAX_BODY_BYTES {
            Vec::new()
        } else {
            delivery.data
        },
    }
}

/// Where it was and why and since when it is there.
struct Death {
    queue: Option<String>,
    reason: Option<String>,
    at: Option<Timestamp>,
}

impl Death {
    /// Our own words if we put it there, the broker's otherwise.
    fn of(properties: &BasicProperties) -> Self {
        if let Some(reason) = header(properties, REASON) {
            return Self {
                queue: header(properties, QUEUE),
                reason: Some(reason),
                at: value(properties, AT).and_then(time),
            };
        }
        let history = value(properties, "x-death").and_then(AMQPValue::as_array);
        let last = history.and_then(|deaths| deaths.as_slice().first()?.as_field_table());
        Self {
            queue: header(properties, "x-first-death-queue"),
            reason: header(properties, "x-first-death-reason"),
            at: last.and_then(|death| death.inner().get("time")).and_then(time),
        }
    }
}

fn value<'a>(properties: &'a BasicProperties, name: &str) -> Option<&'a AMQPValue> {
    properties.headers().as_ref()?.inner().get(name)
}

/// AMQP counts seconds.
fn time(value: &AMQPValue) -> Option<Timestamp> {
    DateTime::from_timestamp(i64::try_from(value.as_timestamp()?).ok()?, 0)
}
