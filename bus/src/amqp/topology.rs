//! The queues as they are on the broker.

use lapin::Channel;
use lapin::options::QueueDeclareOptions;
use lapin::types::{AMQPValue, FieldTable};

use super::names::Names;
use super::wire::text;
use crate::Queue;
use crate::limits::{DELIVERY_LIMIT, MAX_DEAD_LETTERS, MAX_QUEUE_LENGTH};

const MAX_DEAD_LETTER_BYTES: i64 = 64 * 1024 * 1024;
/// Looking at a dead letter counts as a delivery, and must not be what removes it.
const MAX_LOOKS: i64 = 1_000_000_000;

/// Whether a queue holds questions, which are of no use once they were not answered in time. The broker would send each
/// one that expires to the dead letters, where they would push out what matters; so these queues have none, and what
/// is refused there the bus takes to the dead letters itself.
pub(super) fn holds_questions(queue: &Queue) -> bool {
    match queue {
        Queue::Claims | Queue::Kdump | Queue::Devices { .. } => true,
        Queue::Tasks { .. } | Queue::Results => false,
    }
}

/// Makes a queue, and the one for its dead letters first, if they are not there.
pub(super) async fn declare(channel: &Channel, names: &Names, queue: &Queue) -> lapin::Result<()> {
    declare_dead_letters(channel, names).await?;
    channel
        .queue_declare(
            names.queue(queue).into(),
            QueueDeclareOptions::durable(),
            arguments(queue, &names.dead_letters()),
        )
        .await?;
    Ok(())
}

pub(super) async fn declare_dead_letters(channel: &Channel, names: &Names) -> lapin::Result<()> {
    let mut arguments = quorum();
    arguments.insert("x-delivery-limit".into(), AMQPValue::LongLongInt(MAX_LOOKS));
    arguments.insert("x-max-length".into(), number(MAX_DEAD_LETTERS));
    arguments.insert(
        "x-max-length-bytes".into(),
        AMQPValue::LongLongInt(MAX_DEAD_LETTER_BYTES),
    );
    channel
        .queue_declare(
            names.dead_letters().into(),
            QueueDeclareOptions::durable(),
            arguments,
        )
        .await?;
    Ok(())
}

fn arguments(queue: &Queue, dead_letters: &str) -> FieldTable {
    let mut arguments = quorum();
    arguments.insert(
        "x-delivery-limit".into(),
        AMQPValue::LongLongInt(DELIVERY_LIMIT.into()),
    );
    arguments.insert("x-max-length".into(), number(MAX_QUEUE_LENGTH));
    arguments.insert("x-overflow".into(), text("reject-publish"));
    if !holds_questions(queue) {
        arguments.insert("x-dead-letter-exchange".into(), text(""));
        arguments.insert("x-dead-letter-routing-key".into(), text(dead_letters));
    }
    arguments
}

fn quorum() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments
}

fn number(value: usize) -> AMQPValue {
    AMQPValue::LongLongInt(i64::try_from(value).unwrap_or(i64::MAX))
}
