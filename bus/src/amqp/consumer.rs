//! Deliveries of one queue, over as many connections as it takes.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use lapin::message::Delivery as Parcel;
use lapin::options::{
    BasicCancelOptions, BasicConsumeOptions, BasicNackOptions, BasicQosOptions, BasicRejectOptions,
};
use lapin::types::{FieldTable, ShortString};
use lapin::{Channel, Consumer};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::backoff::Backoff;
use super::bundle::{self, Piece};
use super::burial::Burial;
use super::fault::{fault, short, unavailable};
use super::link::{Link, Live};
use super::publisher::Publisher;
use super::settle::{Common, Share, Ticket};
use super::topology::{declare, holds_questions};
use super::wire::{self, Unfit};
use crate::{BusError, Delivery, Queue};

/// A queue whose leader is not there yet lets those who want to serve it wait, without an end.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// What serves one queue for one receiver.
pub(super) struct Server {
    link: Link,
    queue: Queue,
    name: ShortString,
    prefetch: u16,
    burial: Burial,
    out: mpsc::Sender<Delivery>,
}

/// A consumer on one connection.
pub(super) struct Session {
    channel: Channel,
    consumer: Consumer,
    epoch: u64,
}

enum End {
    /// Of this session: the connection went away, or the queue did.
    Lost,
    /// Of all: the bus was closed, or the receiver was dropped.
    Done,
}

impl Server {
    pub fn new(
        link: Link,
        queue: &Queue,
        prefetch: u16,
        publisher: Arc<Publisher>,
        out: mpsc::Sender<Delivery>,
    ) -> Result<Self, BusError> {
        let name = link.names().queue(queue);
        let short_name = short(&name)?;
        let burial = Burial {
            publisher,
            queue: name.into(),
            dead_letters: link.names().dead_letters().into(),
        };
        Ok(Self {
            link,
            queue: queue.clone(),
            name: short_name,
            prefetch,
            burial,
            out,
        })
    }

    /// Makes the queue and begins to take from it.
    pub async fn begin(&self, live: &Live) -> Result<Session, BusError> {
        timeout(BEGIN_TIMEOUT, self.subscribe(live))
            .await
            .map_err(|_| unavailable(self.link.address(), "it did not open a queue in time"))?
            .map_err(|error| fault(self.link.address(), || format!("to serve {}", self.queue), error))
    }

    async fn subscribe(&self, live: &Live) -> lapin::Result<Session> {
        let channel = live.connection.create_channel().await?;
        declare(&channel, self.link.names(), &self.queue).await?;
        channel
            .basic_qos(self.prefetch, BasicQosOptions::default())
            .await?;
        let options = BasicConsumeOptions::default();
        let consumer = channel
            .basic_consume(self.name.clone(), "".into(), options, FieldTable::default())
            .await?;
        Ok(Session {
            channel,
            consumer,
            epoch: live.epoch,
        })
    }

    /// Serves until the bus is closed or the receiver is dropped.
    pub async fn serve(self, mut session: Option<Session>) {
        let mut backoff = Backoff::new();
        let mut epoch = 0;
        loop {
            if let Some(session) = session.take() {
                epoch = session.epoch - 1;
                backoff.reset();
                if matches!(self.forward(session).await, End::Done) {
                    return;
                }
                // A queue that goes away as often as it is made must not keep us busy.
                self.link.pause(backoff.next()).await;
            }
            tokio::select! {
                () = self.out.closed() => return,
                again = self.again(epoch, &mut backoff) => match again {
                    Some(begun) => session = begun,
                    None => return,
                }
            }
        }
    }

    /// Tries once more; `None` when the bus is closed.
    async fn again(&self, epoch: u64, backoff: &mut Backoff) -> Option<Option<Session>> {
        let live = self.link.newer(epoch).await?;
        match self.begin(&live).await {
            Ok(session) => {
                tracing::info!(queue = %self.queue, "serving the queue again");
                Some(Some(session))
            }
            Err(error) => {
                tracing::warn!(
                    queue = %self.queue, error = &error as &dyn std::error::Error,
                    "the queue cannot be served; trying again"
                );
                self.link.pause(backoff.next()).await;
                Some(None)
            }
        }
    }

    async fn forward(&self, mut session: Session) -> End {
        loop {
            tokio::select! {
                biased;
                () = self.link.closed().cancelled() => return End::Done,
                () = self.out.closed() => {
                    release(session).await;
                    return End::Done;
                }
                next = session.consumer.next() => match next {
                    Some(Ok(parcel)) => self.deliver(&session.channel, parcel).await,
                    Some(Err(error)) => {
                        tracing::warn!(queue = %self.queue, error = &error as &dyn std::error::Error, "deliveries stopped");
                        return End::Lost;
                    }
                    None => return End::Lost,
                }
            }
        }
    }

    async fn deliver(&self, channel: &Channel, parcel: Parcel) {
        if bundle::is_one(&parcel.properties) {
            self.deliver_all(channel, parcel).await;
        } else {
            self.deliver_one(channel, parcel).await;
        }
    }

    /// The messages of a bundle, each as if it had come alone.
    async fn deliver_all(&self, channel: &Channel, parcel: Parcel) {
        let pieces = bundle::unbind(&parcel.data).and_then(|pieces| {
            let with_properties = |piece: Piece| {
                Ok((
                    wire::properties(&piece.message).map_err(|_| Unfit::Unreadable)?,
                    piece.message,
                ))
            };
            pieces
                .into_iter()
                .map(with_properties)
                .collect::<Result<Vec<_>, _>>()
        });
        let pieces = match pieces {
            Ok(pieces) => pieces,
            Err(unfit) => return self.refuse(parcel, unfit).await,
        };
        let reply_to = wire::reply_to(&parcel.properties);
        let ticket = Ticket::new(parcel.acker, channel.clone(), self.link.address());
        let common = Common::new(ticket, pieces.len());
        for (properties, message) in pieces {
            let share = Share::new(
                Arc::clone(&common),
                self.burial.clone(),
                properties,
                message.body.clone(),
            );
            let delivery = Delivery {
                message,
                redelivered: parcel.redelivered,
                reply_to: reply_to.clone(),
                settle: Box::new(share),
            };
            // There may be no room for all of them: then nothing else is taken until there is.
            let _ = self.out.send(delivery).await;
        }
    }

    async fn deliver_one(&self, channel: &Channel, mut parcel: Parcel) {
        let message = match wire::message(&mut parcel) {
            Ok(message) => message,
            Err(unfit) => return self.refuse(parcel, unfit).await,
        };
        let mut ticket = Ticket::new(parcel.acker, channel.clone(), self.link.address());
        let reply_to = wire::reply_to(&parcel.properties);
        if holds_questions(&self.queue) {
            ticket = ticket.with_burial(self.burial.clone(), parcel.properties, message.body.clone());
        }
        let delivery = Delivery {
            message,
            redelivered: parcel.redelivered,
            reply_to,
            settle: Box::new(ticket),
        };
        // If the receiver was dropped, the delivery is dropped and so returned to the broker. There is always room: the channel is as large
        // as the prefetch.
        let _ = self.out.send(delivery).await;
    }

    /// The receiver does not see it.
    async fn refuse(&self, parcel: Parcel, unfit: Unfit) {
        let reason = unfit.reason();
        tracing::warn!(queue = %self.queue, reason, bytes = parcel.data.len(), "a message was refused unread");
        let Parcel {
            acker,
            properties,
            data,
            ..
        } = parcel;
        let kept = self.burial.bury(reason, &properties, data).await;
        // The copy says why. Without it the broker's own dead letters have to do, where the queue has any.
        let done = match kept {
            Ok(()) => acker.ack(Default::default()).await,
            Err(_) => acker.reject(BasicRejectOptions { requeue: false }).await,
        };
        if let Err(error) = done {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "it will be delivered again"
            );
        }
    }
}

/// Stops consuming, and returns prefetched messages to the broker. Messages that were delivered can still be settled.
async fn release(mut session: Session) {
    let tag = session.consumer.tag();
    if session
        .channel
        .basic_cancel(tag, BasicCancelOptions::default())
        .await
        .is_err()
    {
        return;
    }
    while let Some(Ok(parcel)) = session.consumer.next().await {
        let _ = parcel
            .acker
            .nack(BasicNackOptions {
                multiple: false,
                requeue: true,
            })
            .now_or_never();
    }
}
