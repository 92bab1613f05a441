//! Answers to the questions of this process.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use lapin::Consumer;
use lapin::message::Delivery;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicQosOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::backoff::Backoff;
use super::bundle::{self, Piece};
use super::fault::{short, unavailable};
use super::link::{Link, Live};
use super::wire::{self, REPLIES, Unfit};
use crate::BusError;
use crate::questions::Questions;

/// The most answers that are under way to this process unacknowledged.
const PREFETCH: u16 = 256;

/// A queue for answers, of this process alone; each connection has a new one.
#[derive(Clone)]
pub(super) struct Replies {
    link: Link,
    pub questions: Arc<Questions>,
    queue: watch::Sender<Option<String>>,
}

impl Replies {
    pub fn new(link: Link) -> Self {
        Self {
            link,
            questions: Arc::default(),
            queue: watch::Sender::new(None),
        }
    }

    /// Where answers are to be sent. Waits for it only while there is a connection.
    pub async fn address(&self, deadline: Instant) -> Result<String, BusError> {
        self.link.live()?;
        let mut queue = self.queue.subscribe();
        let ready = timeout_at(deadline, queue.wait_for(Option::is_some)).await;
        match ready {
            Ok(Ok(name)) => name.clone().ok_or(BusError::Closed),
            Ok(Err(_)) => Err(BusError::Closed),
            Err(_) => Err(unavailable(
                self.link.address(),
                "there is no queue for answers yet",
            )),
        }
    }

    pub async fn serve(self) {
        let mut backoff = Backoff::new();
        let mut epoch = 0;
        while let Some(live) = self.link.newer(epoch).await {
            match self.begin(&live).await {
                Ok((queue, consumer)) => {
                    backoff.reset();
                    self.queue.send_replace(Some(queue));
                    self.receive(consumer).await;
                    self.queue.send_replace(None);
                    // Answers to these went to a queue that is no more.
                    self.questions.give_up();
                    epoch = live.epoch - 1;
                }
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "no queue for answers; trying again"
                    );
                }
            }
            self.link.pause(backoff.next()).await;
        }
        self.questions.give_up();
    }

    async fn begin(&self, live: &Live) -> lapin::Result<(String, Consumer)> {
        let name = format!("{REPLIES}{}", Uuid::new_v4());
        let channel = live.connection.create_channel().await?;
        let queue = short(&name).map_err(std::io::Error::other)?;
        let options = QueueDeclareOptions::exclusive().auto_delete();
        channel
            .queue_declare(queue.clone(), options, FieldTable::default())
            .await?;
        channel.basic_qos(PREFETCH, BasicQosOptions::default()).await?;
        let consumer = channel
            .basic_consume(
                queue,
                "".into(),
                BasicConsumeOptions::default(),
                FieldTable::default(),
            )
            .await?;
        Ok((name, consumer))
    }

    async fn receive(&self, mut consumer: Consumer) {
        loop {
            tokio::select! {
                () = self.link.closed().cancelled() => return,
                next = consumer.next() => match next {
                    Some(Ok(answer)) => self.hand_over(answer),
                    Some(Err(_)) | None => return,
                }
            }
        }
    }

    fn hand_over(&self, mut answer: Delivery) {
        let _ = answer.acker.ack(BasicAckOptions::default()).now_or_never();
        match answers(&mut answer) {
            Ok(pieces) => pieces.into_iter().for_each(|piece| self.hand_over_one(piece)),
            Err(unfit) => tracing::warn!(reason = unfit.reason(), "an answer was dropped unread"),
        }
    }

    fn hand_over_one(&self, piece: Piece) {
        let Some(question) = piece.question else {
            tracing::warn!("an answer that names no question was dropped");
            return;
        };
        if !self.questions.answer(question, piece.message) {
            tracing::debug!(%question, "no caller waits for this answer any more");
        }
    }
}

fn answers(parcel: &mut Delivery) -> Result<Vec<Piece>, Unfit> {
    if bundle::is_one(&parcel.properties) {
        return bundle::unbind(&parcel.data);
    }
    let question = wire::correlation(&parcel.properties);
    let message = wire::message(parcel)?;
    Ok(vec![Piece { message, question }])
}
