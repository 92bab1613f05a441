//! A topic exchange that announcements go to, on a connection of its own.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use lapin::options::{
    BasicPublishOptions, ConfirmSelectOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::protocol::{AMQPErrorKind, AMQPSoftError};
use lapin::types::{FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Confirmation, ErrorKind, ExchangeKind, PublisherConfirm};
use tokio::sync::Mutex;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::config::AmqpConfig;
use super::fault::{fault, short, unavailable};
use super::link::{Link, Live};
use super::wire::PERSISTENT;
use crate::wire::check_size;
use crate::{Announcement, Announcer, BusError};

/// After this a batch counts as not said, although it may have been: the caller says it again.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(10);

/// How the exchange is made if it is not there. One that is there is taken as it is.
#[derive(Clone, Debug)]
pub struct ExchangeConfig {
    /// Its name.
    pub name: String,
    /// Whether it is our own. An exchange of another program is made only if it is not there: the broker's log would tell of each try to make it otherwise.
    pub is_ours: bool,
    /// Whether it, and the queue, outlive a restart of the broker.
    pub durable: bool,
    /// A queue that takes what has its name as the routing key, so that nothing is lost before the first listener comes.
    pub queue: Option<String>,
}

/// A topic exchange. It reconnects by itself for as long as it exists.
pub struct AmqpExchange {
    config: ExchangeConfig,
    link: Link,
    /// The channel that is in use; it says what it is given in order.
    channel: Mutex<Option<(Channel, u64)>>,
    _closes_when_dropped: DropGuard,
}

impl AmqpExchange {
    /// Connects once the broker is there, and goes on trying until then. It has to be called within a runtime.
    pub fn connect_when_there(broker: AmqpConfig, config: ExchangeConfig) -> Self {
        let closed = CancellationToken::new();
        let link = Link::new(broker, "events", closed.clone());
        tokio::spawn(link.clone().supervise());
        Self {
            config,
            link,
            channel: Mutex::new(None),
            _closes_when_dropped: closed.drop_guard(),
        }
    }

    fn fault(&self, error: lapin::Error) -> BusError {
        let what = || format!("to take announcements for exchange {}", self.config.name);
        fault(self.link.address(), what, error)
    }

    async fn open(&self, live: &Live) -> Result<Channel, BusError> {
        let open = async {
            self.declare(live).await?;
            let channel = live.connection.create_channel().await?;
            channel.confirm_select(ConfirmSelectOptions::default()).await?;
            Ok(channel)
        };
        open.await.map_err(|error| self.fault(error))
    }

    /// An exchange that is there stays as it is: a failed try closes only its own channel.
    async fn declare(&self, live: &Live) -> lapin::Result<()> {
        let declare = async |passive| {
            let options = ExchangeDeclareOptions {
                passive,
                durable: self.config.durable,
                ..ExchangeDeclareOptions::default()
            };
            let channel = live.connection.create_channel().await?;
            let name = self.config.name.as_str().into();
            channel
                .exchange_declare(name, ExchangeKind::Topic, options, FieldTable::default())
                .await
        };
        let is_passive_first = !self.config.is_ours;
        if declare(is_passive_first).await.is_err() {
            declare(!is_passive_first).await?;
        }
        match &self.config.queue {
            Some(queue) => self.declare_queue(live, queue).await,
            None => Ok(()),
        }
    }

    async fn declare_queue(&self, live: &Live, queue: &str) -> lapin::Result<()> {
        let declare = async |passive| {
            let options = QueueDeclareOptions {
                passive,
                durable: self.config.durable,
                ..QueueDeclareOptions::default()
            };
            let channel = live.connection.create_channel().await?;
            let declared = channel.queue_declare(queue.into(), options, FieldTable::default());
            declared.await.map(|_| channel)
        };
        let is_passive_first = !self.config.is_ours;
        let channel = match declare(is_passive_first).await {
            Ok(channel) => channel,
            Err(_) => declare(!is_passive_first).await?,
        };
        let (queue, key, exchange) = (queue.into(), queue.into(), self.config.name.as_str().into());
        let (options, none) = (QueueBindOptions::default(), FieldTable::default());
        channel.queue_bind(queue, exchange, key, options, none).await
    }

    async fn send(&self, channel: &Channel, one: &Announcement) -> Result<PublisherConfirm, BusError> {
        check_size(one.body.len())?;
        let properties = BasicProperties::default()
            .with_content_type(one.content_type.into())
            .with_content_encoding("utf-8".into())
            .with_delivery_mode(PERSISTENT)
            .with_type(of_message(&one.kind)?)
            .with_message_id(of_message(&one.id.to_string())?);
        let sent = channel.basic_publish(
            short(&self.config.name)?,
            of_message(&one.routing_key)?,
            // An event without a listener is no error.
            BasicPublishOptions::default(),
            &one.body,
            properties,
        );
        sent.await.map_err(|error| self.publish_fault(error))
    }

    /// The broker closes a channel with these where it does not take a message for what the message is. It may say so of any that was
    /// sent on the channel.
    fn publish_fault(&self, error: lapin::Error) -> BusError {
        let is_of_message = match error.kind() {
            ErrorKind::ProtocolError(fault) => matches!(
                fault.kind(),
                AMQPErrorKind::Soft(AMQPSoftError::PRECONDITIONFAILED | AMQPSoftError::CONTENTTOOLARGE)
            ),
            _ => false,
        };
        if is_of_message {
            BusError::Unsendable {
                what: format!("the broker does not take it for exchange {}", self.config.name),
                source: Some(Box::new(error)),
            }
        } else {
            self.fault(error)
        }
    }

    async fn say(&self, announcements: &[Announcement]) -> Result<(), BusError> {
        let live = self.link.live()?;
        let mut slot = self.channel.lock().await;
        // Taken out: whatever stops this half-way leaves no channel that still owes confirms.
        let known = slot
            .take()
            .filter(|(channel, epoch)| *epoch == live.epoch && channel.status().connected());
        let channel = match known {
            Some((channel, _)) => channel,
            None => self.open(&live).await?,
        };
        let mut confirms = Vec::with_capacity(announcements.len());
        for one in announcements {
            confirms.push(self.send(&channel, one).await?);
        }
        let confirmations = try_join_all(confirms).await;
        let confirmations = confirmations.map_err(|error| self.publish_fault(error))?;
        let is_taken = |confirmation: &Confirmation| matches!(confirmation, Confirmation::Ack(_));
        if !confirmations.iter().all(is_taken) {
            return Err(BusError::Full {
                queue: self.config.name.clone(),
            });
        }
        *slot = Some((channel, live.epoch));
        Ok(())
    }
}

/// A short string that comes with the message.
fn of_message(text: &str) -> Result<ShortString, BusError> {
    ShortString::try_new(text).map_err(|error| BusError::Unsendable {
        what: format!("{text:.40}... is too long: {error}"),
        source: None,
    })
}

#[async_trait]
impl Announcer for AmqpExchange {
    async fn announce(&self, announcements: &[Announcement]) -> Result<(), BusError> {
        timeout(CONFIRM_TIMEOUT, self.say(announcements))
            .await
            .map_err(|_| unavailable(self.link.address(), "it did not confirm announcements in time"))?
    }
}
