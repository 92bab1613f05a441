//! Dead letters that the bus keeps itself.

use std::sync::Arc;

use lapin::BasicProperties;
use lapin::types::AMQPValue;

use super::publisher::Publisher;
use super::wire::text;
use crate::clock::now;
use crate::{BusError, MAX_BODY_BYTES};

pub(super) const QUEUE: &str = "ringfence-dead-queue";
pub(super) const REASON: &str = "ringfence-dead-reason";
pub(super) const BYTES: &str = "ringfence-dead-bytes";
pub(super) const AT: &str = "ringfence-dead-at";

/// The way from one queue to the dead letters.
#[derive(Clone)]
pub(super) struct Burial {
    pub publisher: Arc<Publisher>,
    pub queue: Arc<str>,
    /// The name of the dead letters' queue.
    pub dead_letters: Arc<str>,
}

impl Burial {
    /// Puts a copy among the dead letters, without its body if that is too large.
    pub async fn bury(&self, reason: &str, was: &BasicProperties, mut body: Vec<u8>) -> Result<(), BusError> {
        let bytes = body.len();
        if bytes > MAX_BODY_BYTES {
            body.clear();
        }
        let mut headers = was.headers().clone().unwrap_or_default();
        headers.insert(QUEUE.into(), text(self.queue.as_bytes()));
        headers.insert(REASON.into(), text(reason));
        headers.insert(
            BYTES.into(),
            AMQPValue::LongLongInt(i64::try_from(bytes).unwrap_or(i64::MAX)),
        );
        let at_s = u64::try_from(now().timestamp()).unwrap_or_default();
        headers.insert(AT.into(), AMQPValue::Timestamp(at_s));
        let mut properties = BasicProperties::default()
            .with_delivery_mode(2)
            .with_headers(headers);
        if let Some(kind) = was.kind() {
            properties = properties.with_type(kind.clone());
        }
        if let Some(id) = was.message_id() {
            properties = properties.with_message_id(id.clone());
        }
        self.publisher
            .publish(&self.dead_letters, properties, &body)
            .await
    }
}
