//! How a delivery from the broker is settled.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use lapin::options::{BasicAckOptions, BasicNackOptions, BasicRejectOptions};
use lapin::{Acker, BasicProperties, Channel};
use parking_lot::Mutex;
use tokio::time::timeout;

use super::burial::Burial;
use super::fault::{fault, unavailable};
use crate::{BusError, Settle};

/// On a connection that has just died the client may wait without an end for the command to leave. The broker takes back what it
/// did not hear of.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(5);

const AGAIN: BasicNackOptions = BasicNackOptions {
    multiple: false,
    requeue: true,
};

/// A delivery that is being processed. When it is dropped, it is returned to the broker.
pub(super) struct Ticket {
    acker: Option<Acker>,
    address: String,
    burial: Option<(Burial, BasicProperties, Vec<u8>)>,
    /// Closed with its last handle, and the broker would take back what is not settled.
    _channel: Channel,
}

impl Ticket {
    pub fn new(acker: Acker, channel: Channel, address: &str) -> Self {
        Self {
            acker: Some(acker),
            address: address.to_owned(),
            burial: None,
            _channel: channel,
        }
    }

    /// For a queue whose dead letters the broker does not keep.
    pub fn with_burial(mut self, burial: Burial, properties: BasicProperties, body: Vec<u8>) -> Self {
        self.burial = Some((burial, properties, body));
        self
    }

    /// The client says `false` where the delivery's channel is gone: the broker has taken it back already.
    async fn settled(&self, command: impl Future<Output = lapin::Result<bool>>) -> Result<(), BusError> {
        let lost = || {
            unavailable(
                &self.address,
                "the connection was lost before the delivery was settled",
            )
        };
        match timeout(SETTLE_TIMEOUT, command).await.unwrap_or(Ok(false)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(lost()),
            Err(error) => Err(fault(&self.address, || "to settle a delivery".to_owned(), error)),
        }
    }
}

#[async_trait]
impl Settle for Ticket {
    async fn ack(mut self: Box<Self>) -> Result<(), BusError> {
        let Some(acker) = self.acker.take() else {
            return Ok(());
        };
        self.settled(acker.ack(BasicAckOptions::default())).await
    }

    async fn requeue(mut self: Box<Self>) -> Result<(), BusError> {
        let Some(acker) = self.acker.take() else {
            return Ok(());
        };
        self.settled(acker.nack(AGAIN)).await
    }

    async fn reject(mut self: Box<Self>) -> Result<(), BusError> {
        if let Some((burial, properties, body)) = self.burial.take() {
            burial.bury("rejected", &properties, body).await?;
        }
        let Some(acker) = self.acker.take() else {
            return Ok(());
        };
        self.settled(acker.reject(BasicRejectOptions { requeue: false }))
            .await
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Some(acker) = self.acker.take() {
            // The command is sent at the first poll; only its having left is what would be waited for.
            let _ = acker.nack(AGAIN).now_or_never();
        }
    }
}

/// The state that several messages share which were delivered as one. The delivery is settled with the last of them: acknowledged if all
/// were processed, and returned if one was; the messages that were processed then come twice.
pub(super) struct Common {
    state: Mutex<State>,
}

struct State {
    ticket: Option<Box<Ticket>>,
    left: usize,
    again: bool,
}

impl Common {
    pub fn new(ticket: Ticket, pieces: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                ticket: Some(Box::new(ticket)),
                left: pieces,
                again: false,
            }),
        })
    }

    /// One more is settled; the ticket if it was the last, and whether it goes back.
    fn count(&self, again: bool) -> Option<(Box<Ticket>, bool)> {
        let mut state = self.state.lock();
        state.again |= again;
        state.left = state.left.saturating_sub(1);
        if state.left > 0 {
            return None;
        }
        let again = state.again;
        state.ticket.take().map(|ticket| (ticket, again))
    }

    async fn settle(&self, again: bool) -> Result<(), BusError> {
        match self.count(again) {
            None => Ok(()),
            Some((ticket, false)) => ticket.ack().await,
            Some((ticket, true)) => ticket.requeue().await,
        }
    }
}

/// One of several messages that were delivered as one. When it is dropped, it counts as returned.
pub(super) struct Share {
    common: Option<Arc<Common>>,
    burial: Burial,
    properties: BasicProperties,
    body: Vec<u8>,
}

impl Share {
    pub fn new(common: Arc<Common>, burial: Burial, properties: BasicProperties, body: Vec<u8>) -> Self {
        Self {
            common: Some(common),
            burial,
            properties,
            body,
        }
    }

    async fn settle(&mut self, again: bool) -> Result<(), BusError> {
        match self.common.take() {
            Some(common) => common.settle(again).await,
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Settle for Share {
    async fn ack(mut self: Box<Self>) -> Result<(), BusError> {
        self.settle(false).await
    }

    async fn requeue(mut self: Box<Self>) -> Result<(), BusError> {
        self.settle(true).await
    }

    /// The broker can only take all of them to the dead letters; this one the bus takes there.
    async fn reject(mut self: Box<Self>) -> Result<(), BusError> {
        let body = std::mem::take(&mut self.body);
        self.burial.bury("rejected", &self.properties, body).await?;
        self.settle(false).await
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        // With the last share the ticket is dropped, which returns the delivery.
        if let Some(common) = self.common.take() {
            drop(common.count(true));
        }
    }
}
