//! Looking at the dead letters.

use async_trait::async_trait;
use lapin::message::{BasicGetMessage, Delivery};
use lapin::options::{BasicGetOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection};

use super::AmqpBus;
use super::burial::{BYTES, QUEUE, REASON};
use super::fault::fault;
use super::names::Names;
use super::topology::declare_dead_letters;
use super::wire::header;
use crate::{BusError, DeadLetter, DeadLetters, MAX_BODY_BYTES};

/// The most that one look takes: all of them are in memory for the time.
const MOST: u16 = 100;

#[async_trait]
impl DeadLetters for AmqpBus {
    async fn dead_letter_count(&self) -> Result<u64, BusError> {
        let live = self.outgoing.live()?;
        count(&live.connection, self.outgoing.names())
            .await
            .map_err(|error| self.look_fault(error))
    }

    async fn dead_letters(&self, limit: u16) -> Result<Vec<DeadLetter>, BusError> {
        let live = self.outgoing.live()?;
        look(&live.connection, self.outgoing.names(), limit.min(MOST))
            .await
            .map_err(|error| self.look_fault(error))
    }
}

impl AmqpBus {
    fn look_fault(&self, error: lapin::Error) -> BusError {
        fault(
            self.outgoing.address(),
            || "to show the dead letters".to_owned(),
            error,
        )
    }
}

async fn channel(connection: &Connection, names: &Names) -> lapin::Result<Channel> {
    let channel = connection.create_channel().await?;
    declare_dead_letters(&channel, names).await?;
    Ok(channel)
}

async fn count(connection: &Connection, names: &Names) -> lapin::Result<u64> {
    let passive = QueueDeclareOptions::durable().passive();
    let queue = channel(connection, names)
        .await?
        .queue_declare(names.dead_letters().into(), passive, FieldTable::default())
        .await?;
    Ok(queue.message_count().into())
}

/// The broker takes all of them back, in their order, when the channel is closed.
async fn look(connection: &Connection, names: &Names, limit: u16) -> lapin::Result<Vec<DeadLetter>> {
    let channel = channel(connection, names).await?;
    let mut letters = Vec::new();
    for _ in 0..limit {
        match channel
            .basic_get(names.dead_letters().into(), BasicGetOptions::default())
            .await?
        {
            Some(BasicGetMessage { delivery, .. }) => letters.push(letter(delivery)),
            None => break,
        }
    }
    channel.close(200, "seen".into()).await?;
    Ok(letters)
}

fn letter(delivery: Delivery) -> DeadLetter {
    let properties = &delivery.properties;
    let (queue, reason) = death(properties);
    let text = |value: &Option<lapin::types::ShortString>| {
        value.as_ref().map(ToString::to_string).unwrap_or_default()
    };
    let sent = match properties
        .headers()
        .as_ref()
        .and_then(|headers| headers.inner().get(BYTES))
    {
        Some(AMQPValue::LongLongInt(bytes)) => u64::try_from(*bytes).ok(),
        _ => None,
    };
    DeadLetter {
        id: text(properties.message_id()),
        kind: text(properties.kind()),
        queue: queue.unwrap_or_default(),
        reason: reason.unwrap_or_default(),
        bytes: sent.unwrap_or(delivery.data.len() as u64),
        body: if delivery.data.len() > MAX_BODY_BYTES {
            Vec::new()
        } else {
            delivery.data
        },
    }
}

/// Where it was and why it is there: our own words if we put it there, the broker's otherwise.
fn death(properties: &BasicProperties) -> (Option<String>, Option<String>) {
    let ours = (header(properties, QUEUE), header(properties, REASON));
    if ours.1.is_some() {
        return ours;
    }
    (
        header(properties, "x-first-death-queue"),
        header(properties, "x-first-death-reason"),
    )
}
