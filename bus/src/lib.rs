//! Carries work to workers and their claims and results back.
//!
//! The bus is never the truth: losing every message loses no operation, and a message that arrives twice, late or out of order
//! changes nothing that it should not. There are two of them with one contract, [`Bus`]: RabbitMQ, and an in-process one for
//! standalone. Every message is signed ([`Keys`]), so that access to the broker is not enough to forge one.

mod amqp;
mod announce;
mod clock;
mod contract;
mod dead_letters;
mod error;
mod in_process;
mod keys;
mod limits;
mod message;
mod questions;
mod queue;
mod trace;
mod webhook_secret;
mod wire;

pub use amqp::{AmqpBus, AmqpConfig, AmqpExchange, ExchangeConfig};
pub use announce::{Announcement, Announcer};
pub use contract::{Bus, Deliveries, Delivery, QueueLoad, ReplyTo, Settle};
pub use dead_letters::{About, DeadLetter, DeadLetters, Survey};
pub use error::BusError;
pub use in_process::InProcessBus;
pub use keys::{Key, Keys, MIN_KEY_BYTES};
pub use limits::{DELIVERY_LIMIT, MAX_DEAD_LETTERS, MAX_OPEN_QUESTIONS, MAX_QUEUE_LENGTH};
pub use message::{
    CheckRequest, ClaimReply, ClaimRequest, DeviceReply, DeviceRequest, HeartbeatsRequest, KdumpHeard,
    KdumpReply, KdumpRequest, Payload, QueryRequest, SurveyRequest, TaskMessage, ValidateRequest,
};
pub use queue::{DEAD_LETTERS, Queue};
pub use trace::Trace;
pub use webhook_secret::WebhookSecret;
pub use wire::{Audience, MAX_BODY_BYTES, Message};
