//! How full a queue is, and who serves it.

use std::time::Duration;

use lapin::options::QueueDeclareOptions;
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::{FieldTable, ShortString};
use lapin::{Connection, ErrorKind};
use tokio::time::timeout;

use super::AmqpBus;
use super::fault::{fault, unavailable};
use super::link::Live;
use crate::{BusError, Queue, QueueLoad};

/// One question to the broker takes milliseconds; a connection that has just died would never answer.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

impl AmqpBus {
    /// How a queue stands; `None` if it is not there.
    pub(super) async fn look_at(&self, queue: &Queue) -> Result<Option<QueueLoad>, BusError> {
        let live = self.live_again().await?;
        let name = self.outgoing.names().queue(queue);
        let address = self.outgoing.address();
        timeout(LOOK_TIMEOUT, look(&live.connection, name))
            .await
            .map_err(|_| unavailable(address, "it did not show a queue in time"))?
            .map_err(|error| fault(address, || format!("to show {queue}"), error))
    }
}

impl AmqpBus {
    /// A connection that has just been lost is back within moments, as a rule.
    async fn live_again(&self) -> Result<Live, BusError> {
        match self.outgoing.live() {
            Err(BusError::Closed) => Err(BusError::Closed),
            Err(error) => {
                let newer = timeout(LOOK_TIMEOUT, self.outgoing.newer(0)).await;
                newer.ok().flatten().ok_or(error)
            }
            Ok(live) => Ok(live),
        }
    }
}

/// On a channel of its own: a queue that is not there ends it.
async fn look(connection: &Connection, name: String) -> lapin::Result<Option<QueueLoad>> {
    // No queue has such a name.
    let Ok(name) = ShortString::try_new(name) else {
        return Ok(None);
    };
    let channel = connection.create_channel().await?;
    let passive = QueueDeclareOptions::durable().passive();
    let load = match channel.queue_declare(name, passive, FieldTable::default()).await {
        Ok(queue) => Some(QueueLoad {
            messages: queue.message_count(),
            consumers: queue.consumer_count(),
        }),
        Err(error) if is_missing(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    channel.close(200, "seen".into()).await?;
    Ok(load)
}

fn is_missing(error: &lapin::Error) -> bool {
    let ErrorKind::ProtocolError(fault) = error.kind() else {
        return false;
    };
    matches!(fault.kind(), AMQPErrorKind::Soft(AMQPSoftError::NOTFOUND))
}
