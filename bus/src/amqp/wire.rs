//! Messages as AMQP carries them.

use lapin::BasicProperties;
use lapin::message::Delivery;
use lapin::types::{AMQPValue, FieldTable};
use uuid::Uuid;

use super::fault::short;
use crate::{BusError, MAX_BODY_BYTES, Message, ReplyTo};

const KEY: &str = "ringfence-key";
const SIGNATURE: &str = "ringfence-signature";
const TRACE: &str = "traceparent";
pub(super) const PERSISTENT: u8 = 2;

/// Begins the name of each queue for answers. An answer is sent nowhere else, whatever a question says.
pub(super) const REPLIES: &str = "ringfence.replies.";

/// Why a delivery is not even looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    TooLarge,
    Unreadable,
}

impl Unfit {
    pub fn reason(self) -> &'static str {
        match self {
            Self::TooLarge => "too_large",
            Self::Unreadable => "unreadable",
        }
    }
}

pub(super) fn properties(message: &Message) -> Result<BasicProperties, BusError> {
    let mut headers = FieldTable::default();
    headers.insert(KEY.into(), text(message.key_id.as_str()));
    headers.insert(SIGNATURE.into(), text(hex::encode(&message.signature)));
    if let Some(trace) = &message.trace {
        headers.insert(TRACE.into(), text(trace.as_str()));
    }
    Ok(BasicProperties::default()
        .with_content_type("application/json".into())
        .with_delivery_mode(PERSISTENT)
        .with_type(short(&message.kind)?)
        .with_message_id(short(&message.id.to_string())?)
        .with_headers(headers))
}

pub(super) fn message(delivery: &mut Delivery) -> Result<Message, Unfit> {
    if delivery.data.len() > MAX_BODY_BYTES {
        return Err(Unfit::TooLarge);
    }
    let properties = &delivery.properties;
    let id = properties
        .message_id()
        .as_ref()
        .and_then(|id| Uuid::try_parse(id.as_str()).ok());
    let signature = header(properties, SIGNATURE).and_then(|signature| hex::decode(signature).ok());
    Ok(Message {
        id: id.ok_or(Unfit::Unreadable)?,
        kind: properties.kind().as_ref().ok_or(Unfit::Unreadable)?.to_string(),
        key_id: header(properties, KEY).ok_or(Unfit::Unreadable)?,
        signature: signature.ok_or(Unfit::Unreadable)?,
        trace: header(properties, TRACE),
        body: std::mem::take(&mut delivery.data),
    })
}

pub(super) fn reply_to(properties: &BasicProperties) -> Option<ReplyTo> {
    let queue = properties.reply_to().as_ref()?.as_str();
    queue.starts_with(REPLIES).then(|| ReplyTo(queue.to_owned()))
}

pub(super) fn correlation(properties: &BasicProperties) -> Option<Uuid> {
    Uuid::try_parse(properties.correlation_id().as_ref()?.as_str()).ok()
}

pub(super) fn header(properties: &BasicProperties, name: &str) -> Option<String> {
    match properties.headers().as_ref()?.inner().get(name)? {
        AMQPValue::LongString(text) => String::from_utf8(text.as_bytes().to_vec()).ok(),
        _ => None,
    }
}

pub(super) fn text(text: impl Into<Vec<u8>>) -> AMQPValue {
    AMQPValue::LongString(text.into().into())
}
