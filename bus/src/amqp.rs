//! The bus on RabbitMQ.
//!
//! Queues are quorum queues. Publishes are mandatory and confirmed. There are two connections, since a broker that is short
//! of memory stops reading from those that publish, and deliveries have to be settled even then.

mod backoff;
mod bundle;
mod burial;
mod config;
mod consumer;
mod exchange;
mod fault;
mod link;
mod load;
mod looking;
mod names;
mod publisher;
mod replies;
mod settle;
mod together;
mod topology;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::bundle::Piece;
pub use self::config::AmqpConfig;
use self::consumer::Server;
pub use self::exchange::{AmqpExchange, ExchangeConfig};
use self::fault::{fault, unavailable};
use self::link::Link;
use self::publisher::Publisher;
use self::replies::Replies;
use self::together::{Place, Together};
use crate::wire::check_size;
use crate::{Bus, BusError, DeadLetters, Deliveries, Message, Queue, QueueLoad, ReplyTo};

/// How long the first connection waits for its queue for answers.
const READY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long what is to be said waits for its connection while the other one stands. A caller that asks waits longer for the answer.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(2);
const HEALTH_TIMEOUT: Duration = Duration::from_secs(2);
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A bus on a broker. It reconnects by itself for as long as it exists.
pub struct AmqpBus {
    incoming: Link,
    outgoing: Link,
    publisher: Arc<Publisher>,
    together: Arc<Together>,
    replies: Replies,
    tasks: TaskTracker,
    closed: CancellationToken,
    _closes_when_dropped: DropGuard,
}

impl AmqpBus {
    /// Connects; an error if the broker is not there now, or does not let us in.
    pub async fn connect(config: AmqpConfig) -> Result<Self, BusError> {
        let bus = Self::new(config);
        bus.outgoing.open(1).await?;
        bus.incoming.open(1).await?;
        bus.start();
        bus.replies.address(Instant::now() + READY_TIMEOUT).await?;
        Ok(bus)
    }

    /// Connects once the broker is there, and goes on trying until then: [`Bus::health`] says how it stands. Queues can be
    /// consumed at once; publishes are [`BusError::Unavailable`] until there is a connection.
    pub fn connect_when_there(config: AmqpConfig) -> Self {
        let bus = Self::new(config);
        bus.start();
        bus
    }

    fn new(config: AmqpConfig) -> Self {
        let closed = CancellationToken::new();
        let incoming = Link::new(config, "in", closed.clone());
        let outgoing = incoming.beside("out");
        let publisher = Arc::new(Publisher::new(outgoing.clone()));
        Self {
            together: Arc::new(Together::new(Arc::clone(&publisher))),
            publisher,
            replies: Replies::new(incoming.clone()),
            incoming,
            outgoing,
            tasks: TaskTracker::new(),
            _closes_when_dropped: closed.clone().drop_guard(),
            closed,
        }
    }

    fn start(&self) {
        self.tasks.spawn(self.incoming.clone().supervise());
        self.tasks.spawn(self.outgoing.clone().supervise());
        self.tasks.spawn(self.replies.clone().serve());
    }
}

impl AmqpBus {
    /// What engines read goes together with others: an engine decides together what comes together. What workers read goes alone, so
    /// that each of them takes as much as it can do.
    async fn put(&self, place: Place, queue: &Queue, message: &Message) -> Result<(), BusError> {
        self.outgoing.follow(&self.incoming, FOLLOWS_WITHIN).await;
        match queue {
            Queue::Claims | Queue::Results => {
                let piece = Piece {
                    message: message.clone(),
                    question: None,
                };
                self.together.publish(place, piece).await
            }
            Queue::Tasks { .. } | Queue::Devices { .. } | Queue::Kdump => {
                let properties = place.address(wire::properties(message)?)?;
                self.publisher
                    .publish(&place.queue, properties, &message.body)
                    .await
            }
        }
    }
}

#[async_trait]
impl Bus for AmqpBus {
    async fn publish(&self, queue: &Queue, message: &Message) -> Result<(), BusError> {
        check_size(message.body.len())?;
        let place = Place {
            queue: self.outgoing.names().queue(queue),
            reply_to: None,
            expires_ms: None,
        };
        self.put(place, queue, message).await
    }

    async fn consume(&self, queue: &Queue, prefetch: u16) -> Result<Deliveries, BusError> {
        // To the broker, none would be no bound at all.
        let prefetch = prefetch.max(1);
        let (out, deliveries) = mpsc::channel(usize::from(prefetch));
        let server = Server::new(
            self.incoming.clone(),
            queue,
            prefetch,
            self.publisher.clone(),
            out,
        )?;
        let session = match self.incoming.live() {
            Err(BusError::Closed) => return Err(BusError::Closed),
            Err(_) => None,
            Ok(live) => match server.begin(&live).await {
                Ok(session) => Some(session),
                Err(error @ BusError::Refused { .. }) => return Err(error),
                Err(_) => None,
            },
        };
        self.tasks.spawn(server.serve(session));
        Ok(deliveries)
    }

    async fn request(
        &self,
        queue: &Queue,
        message: &Message,
        patience: Duration,
    ) -> Result<Message, BusError> {
        check_size(message.body.len())?;
        let deadline = Instant::now() + patience;
        let name = self.outgoing.names().queue(queue);
        let mut question = self.replies.questions.ask(message.id)?;
        let place = Place {
            queue: name.clone(),
            reply_to: Some(self.replies.address(deadline).await?),
            expires_ms: Some(patience.as_millis().max(1)),
        };
        let asked = async {
            self.put(place, queue, message).await?;
            let lost = || {
                unavailable(
                    self.incoming.address(),
                    "the connection was lost before the answer came",
                )
            };
            question.answered().await.ok_or_else(lost)
        };
        let late = |_| BusError::NoAnswer {
            queue: name.clone(),
            waited: patience,
        };
        timeout_at(deadline, asked).await.map_err(late)?
    }

    async fn respond(&self, to: &ReplyTo, request: &Message, answer: &Message) -> Result<(), BusError> {
        check_size(answer.body.len())?;
        let place = Place {
            queue: to.0.clone(),
            reply_to: None,
            expires_ms: None,
        };
        let piece = Piece {
            message: answer.clone(),
            question: Some(request.id),
        };
        self.outgoing.follow(&self.incoming, FOLLOWS_WITHIN).await;
        match self.together.publish(place, piece).await {
            Err(BusError::Unroutable { .. }) => {
                tracing::debug!(question = %request.id, "who asked has gone away");
                Ok(())
            }
            other => other,
        }
    }

    async fn health(&self) -> Result<(), BusError> {
        for link in [&self.outgoing, &self.incoming] {
            let live = link.live()?;
            // A round trip: a connection can look alive for some time after its broker has died.
            let channel = timeout(HEALTH_TIMEOUT, live.connection.create_channel()).await;
            channel
                .map_err(|_| unavailable(link.address(), "it does not answer"))?
                .map_err(|error| fault(link.address(), || "to open a channel".to_owned(), error))?;
        }
        Ok(())
    }

    async fn queue_load(&self, queue: &Queue) -> Result<Option<QueueLoad>, BusError> {
        self.look_at(queue).await
    }

    fn dead_letter_box(&self) -> Option<&dyn DeadLetters> {
        Some(self)
    }

    async fn close(&self) {
        self.closed.cancel();
        self.tasks.close();
        if timeout(CLOSE_TIMEOUT, self.tasks.wait()).await.is_err() {
            tracing::warn!(broker = self.outgoing.address(), "the bus did not close in time");
        }
    }
}
