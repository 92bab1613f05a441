//! What can go wrong on the bus.

use std::time::Duration;

use ringfence_core::error_chain;

/// A fault of the bus or of a message.
#[derive(Debug, thiserror::Error)]
pub enum BusError {
    /// The broker did not take the message, or took it and has no queue for it.
    #[error("queue {queue} does not exist: nothing serves it")]
    Unroutable {
        /// The queue's name.
        queue: String,
    },
    /// The broker is not there, or went away.
    #[error("the broker at {address} cannot be reached")]
    Unavailable {
        /// Host and port, without credentials.
        address: String,
        /// What the client saw.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The broker said no.
    #[error("the broker refused {what}")]
    Refused {
        /// What was asked.
        what: String,
        /// What the client saw.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// This message can never be sent, whatever is done about the broker.
    #[error("a message cannot be sent: {what}")]
    Unsendable {
        /// What of it is wrong.
        what: String,
        /// What the client saw.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// No service answered a request in time.
    #[error("no answer from queue {queue} within {} ms", .waited.as_millis())]
    NoAnswer {
        /// The queue's name.
        queue: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The queue is at its bound.
    #[error("queue {queue} takes no messages at the moment: it is full, or is being made")]
    Full {
        /// The queue's name.
        queue: String,
    },
    /// The signature is missing, unknown or wrong. The message was not read.
    #[error("a message of type {kind:?} has no valid signature")]
    BadSignature {
        /// What it claims to be.
        kind: String,
    },
    /// The message is signed but is not what was expected.
    #[error("a message of type {kind:?} cannot be read as {wanted}")]
    Unreadable {
        /// What it claims to be.
        kind: String,
        /// What was expected.
        wanted: &'static str,
        /// Why.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// The message is larger than any that Ringfence sends.
    #[error("a message has {bytes} bytes; at most {allowed} are allowed")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The bound.
        allowed: usize,
    },
    /// A key or an address in the configuration is unusable. The text names no secret.
    #[error("{0}")]
    Configuration(String),
    /// The bus was shut down.
    #[error("the bus is closed")]
    Closed,
}

impl BusError {
    /// Whether it is the message itself, so that it is no use to send it again, and others can be sent.
    #[must_use]
    pub fn is_of_the_message(&self) -> bool {
        matches!(self, Self::Unsendable { .. } | Self::TooLarge { .. })
    }

    /// A copy for another message that met with this error; what the client saw becomes words.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Unroutable { queue } => Self::Unroutable { queue: queue.clone() },
            Self::Full { queue } => Self::Full { queue: queue.clone() },
            Self::Closed => Self::Closed,
            Self::Configuration(what) => Self::Configuration(what.clone()),
            Self::BadSignature { kind } => Self::BadSignature { kind: kind.clone() },
            Self::Unavailable { address, source } => Self::Unavailable {
                address: address.clone(),
                source: words(source),
            },
            Self::Refused { what, source } => Self::Refused {
                what: what.clone(),
                source: words(source),
            },
            Self::Unsendable { what, source } => Self::Unsendable {
                what: what.clone(),
                source: words(source),
            },
            Self::NoAnswer { queue, waited } => Self::NoAnswer {
                queue: queue.clone(),
                waited: *waited,
            },
            &Self::TooLarge { bytes, allowed } => Self::TooLarge { bytes, allowed },
            Self::Unreadable { kind, wanted, source } => Self::Unreadable {
                kind: kind.clone(),
                wanted,
                source: source.as_ref().map(serde::de::Error::custom),
            },
        }
    }
}

type Source = Option<Box<dyn std::error::Error + Send + Sync>>;

fn words(source: &Source) -> Source {
    Some(error_chain(source.as_deref()?).into())
}
