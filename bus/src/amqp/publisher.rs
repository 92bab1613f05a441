//! Confirmed publishes, many at a time.

use std::time::Duration;

use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::{BasicProperties, Channel, Confirmation};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::fault::{fault, short, unavailable};
use super::link::{Link, Live};
use crate::BusError;

/// The most publishes that wait for their confirm at one time; more wait for a channel.
const CHANNELS: usize = 64;
/// After this a publish counts as not done, although it may have been: the caller sends it again.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);

/// A channel that carries one publish at a time. An unroutable message is returned and then acknowledged, and nothing but
/// the order ties the two together; the client pairs returns and confirms by order as well, and may give a return to
/// another publish that is under way on this channel, which would call a lost message sent. So each publish under
/// way has a channel to itself, and they overlap on the connection.
struct PublishChannel {
    channel: Channel,
    epoch: u64,
}

pub(super) struct Publisher {
    link: Link,
    idle: Mutex<Vec<PublishChannel>>,
    room: Semaphore,
}

impl Publisher {
    pub fn new(link: Link) -> Self {
        Self {
            link,
            idle: Mutex::default(),
            room: Semaphore::new(CHANNELS),
        }
    }

    /// Puts a message on a queue; `Ok` once the broker has it for good.
    pub async fn publish(
        &self,
        queue: &str,
        properties: BasicProperties,
        body: &[u8],
    ) -> Result<(), BusError> {
        let live = self.link.live()?;
        timeout(CONFIRM_TIMEOUT, self.send(&live, queue, properties, body))
            .await
            .map_err(|_| unavailable(self.link.address(), "it did not confirm a message in time"))?
    }

    async fn send(
        &self,
        live: &Live,
        queue: &str,
        properties: BasicProperties,
        body: &[u8],
    ) -> Result<(), BusError> {
        let routing_key = short(queue)?;
        let fault = |error| {
            fault(
                self.link.address(),
                || format!("to take a message for {queue}"),
                error,
            )
        };
        let _turn = self.room.acquire().await.map_err(|_| BusError::Closed)?;
        let channel = self.channel(live).await.map_err(fault)?;
        let options = BasicPublishOptions {
            mandatory: true,
            ..BasicPublishOptions::default()
        };
        let sent = channel
            .channel
            .basic_publish("".into(), routing_key, options, body, properties);
        let confirmation = sent.await.map_err(fault)?.await.map_err(fault)?;
        // Only here: a channel whose publish was given up, or failed, may still hear of it.
        self.lock().push(channel);
        match confirmation {
            Confirmation::Ack(None) => Ok(()),
            Confirmation::Ack(Some(_)) | Confirmation::Nack(Some(_)) => Err(BusError::Unroutable {
                queue: queue.to_owned(),
            }),
            Confirmation::Nack(None) => Err(BusError::Full {
                queue: queue.to_owned(),
            }),
            Confirmation::NotRequested => Err(unavailable(self.link.address(), "a channel does not confirm")),
        }
    }

    async fn channel(&self, live: &Live) -> lapin::Result<PublishChannel> {
        if let Some(channel) = self.idle(live.epoch) {
            return Ok(channel);
        }
        let channel = live.connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok(PublishChannel {
            channel,
            epoch: live.epoch,
        })
    }

    fn idle(&self, epoch: u64) -> Option<PublishChannel> {
        let mut idle = self.lock();
        idle.retain(|channel| channel.epoch == epoch && channel.channel.status().connected());
        idle.pop()
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Vec<PublishChannel>> {
        self.idle.lock()
    }
}
