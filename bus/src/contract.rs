//! What both buses do.

use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::{BusError, DeadLetters, Message, Queue};

/// Where an answer goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyTo(pub String);

/// How a delivery is settled; exactly one call, by value.
#[async_trait]
pub trait Settle: Send {
    /// It was dealt with.
    async fn ack(self: Box<Self>) -> Result<(), BusError>;
    /// It was not: deliver it again (to any consumer that is free), or send it to the dead letters once it was delivered too often.
    async fn requeue(self: Box<Self>) -> Result<(), BusError>;
    /// It never will be: to the dead letters.
    async fn reject(self: Box<Self>) -> Result<(), BusError>;
}

/// A message as it was delivered. Dropped without being settled, it is delivered again.
pub struct Delivery {
    /// The message, not yet believed.
    pub message: Message,
    /// Whether it may have been delivered before.
    pub redelivered: bool,
    /// Where an answer goes, if one is wanted.
    pub reply_to: Option<ReplyTo>,
    /// How to settle it.
    pub settle: Box<dyn Settle>,
}

/// A queue at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLoad {
    /// Messages that no consumer has taken.
    pub messages: u32,
    /// Consumers that serve the queue.
    pub consumers: u32,
}

/// Messages of one queue, in the order of their delivery. It ends when the bus is closed; a lost connection it outlives.
pub type Deliveries = mpsc::Receiver<Delivery>;

/// A bus. A message may be delivered twice, late, or out of order; it is not lost once [`Bus::publish`] has returned `Ok`.
#[async_trait]
pub trait Bus: Send + Sync + 'static {
    /// Puts a message on a queue. `Ok` means that it is there for good: confirmed, and routed to a queue that exists.
    async fn publish(&self, queue: &Queue, message: &Message) -> Result<(), BusError>;

    /// Serves a queue, which is made if it is not there. At most `prefetch` deliveries are unsettled at a time; on a broker, messages
    /// that came together count as one.
    async fn consume(&self, queue: &Queue, prefetch: u16) -> Result<Deliveries, BusError>;

    /// Asks a question and waits for one answer. The question is dropped if no consumer takes it in time.
    async fn request(&self, queue: &Queue, message: &Message, timeout: Duration)
    -> Result<Message, BusError>;

    /// Answers a question. An asker that has gone away is no error.
    async fn respond(&self, to: &ReplyTo, request: &Message, answer: &Message) -> Result<(), BusError>;

    /// Whether the bus can be used at this moment, and if not, why.
    async fn health(&self) -> Result<(), BusError>;

    /// Since when it has been there, if it was empty then: nothing outlives it. `None` for one that outlives the process.
    fn began(&self) -> Option<Instant> {
        None
    }

    /// How a queue stands; `None` if it is not there, or is not to be looked at. Nothing is made or taken.
    async fn queue_load(&self, _queue: &Queue) -> Result<Option<QueueLoad>, BusError> {
        Ok(None)
    }

    /// Its dead letters, where they can be looked at.
    fn dead_letter_box(&self) -> Option<&dyn DeadLetters> {
        None
    }

    /// Stops serving and closes.
    async fn close(&self);
}
