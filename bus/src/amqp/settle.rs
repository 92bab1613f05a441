//! How a delivery from the broker is settled.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use lapin::options::{BasicAckOptions, BasicNackOptions, BasicRejectOptions};
use lapin::{Acker, BasicProperties, Channel};
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

/// A delivery that is out. Dropped, it is given back.
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
