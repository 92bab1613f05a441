//! A confirmed publish, with the product's size of message and kinds of queue.

use std::time::Instant;

use futures_util::StreamExt;
use lapin::options::{
    BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use tokio::task::JoinHandle;

use crate::error::BenchError;

const PERSISTENT: u8 = 2;
/// About the size of a task message, in bytes.
const BODY_BYTES: usize = 1200;

/// A kind of queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Queues for tasks, requests and results.
    Quorum,
    /// Queues for answers to one process.
    Answers,
}

/// Measures publishes to a queue of its own, whose messages are read at once.
pub struct Publishes {
    connection: Connection,
    channel: Channel,
    queue: String,
    reader: JoinHandle<()>,
}

impl Publishes {
    pub async fn prepare(url: &str, kind: Kind) -> Result<Self, BenchError> {
        let connection = Connection::connect(url, ConnectionProperties::default()).await?;
        let queue = format!("floor-{}", uuid::Uuid::new_v4());
        let consuming = connection.create_channel().await?;
        let mut arguments = FieldTable::default();
        let options = match kind {
            Kind::Quorum => {
                arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
                QueueDeclareOptions::durable()
            }
            Kind::Answers => QueueDeclareOptions::exclusive().auto_delete(),
        };
        consuming
            .queue_declare(queue.clone().into(), options, arguments)
            .await?;
        let options = BasicConsumeOptions {
            no_ack: true,
            ..BasicConsumeOptions::default()
        };
        let mut consumer = consuming
            .basic_consume(queue.clone().into(), "".into(), options, FieldTable::default())
            .await?;
        let reader = tokio::spawn(async move {
            let _open = consuming;
            while let Some(Ok(_)) = consumer.next().await {}
        });
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(Self {
            connection,
            channel,
            queue,
            reader,
        })
    }

    /// Publishes once and waits for the confirm; returns the milliseconds.
    pub async fn once(&self) -> Result<f64, BenchError> {
        let body = vec![b'x'; BODY_BYTES];
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
        let begun = Instant::now();
        self.channel
            .basic_publish("".into(), self.queue.clone().into(), options, &body, properties)
            .await?
            .await?;
        Ok(begun.elapsed().as_secs_f64() * 1000.0)
    }

    /// Deletes the queue and closes the connection.
    pub async fn close(self) -> Result<(), BenchError> {
        self.channel
            .queue_delete(self.queue.into(), QueueDeleteOptions::default())
            .await?;
        // The reader's channel may be closing by itself because its queue is gone; then an error of the close does not matter.
        let _ = self.connection.close(200, "done".into()).await;
        // The reader is dropped last: dropped on an open connection, it would send a cancellation whose answer no task reads.
        self.reader.abort();
        Ok(())
    }
}
