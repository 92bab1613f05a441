//! A bus of a process that dies: after a given number of uses the bus sends and delivers nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ringfence_bus::{Bus, BusError, DeadLetters, Deliveries, Message, Queue, QueueLoad, ReplyTo};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Counts the uses of a bus by one process, and cuts the process off at one of them.
pub struct DyingBus {
    inner: Arc<dyn Bus>,
    left: AtomicUsize,
    /// Whether the last use still takes effect.
    after: bool,
    dead: CancellationToken,
}

impl DyingBus {
    /// The process dies at the use after `uses` others: before that use takes effect, or right after.
    pub fn new(inner: Arc<dyn Bus>, uses: usize, after: bool) -> Arc<Self> {
        Arc::new(Self {
            inner,
            left: AtomicUsize::new(uses),
            after,
            dead: CancellationToken::new(),
        })
    }

    /// Cancelled when the process has died.
    pub fn dead(&self) -> CancellationToken {
        self.dead.clone()
    }

    async fn used<T>(&self, work: impl Future<Output = T> + Send) -> T {
        let is_dead = self.dead.is_cancelled();
        let is_last = !is_dead
            && self
                .left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                .is_err();
        if is_dead || (is_last && !self.after) {
            self.dead.cancel();
            return std::future::pending().await;
        }
        let result = work.await;
        if is_last {
            self.dead.cancel();
            return std::future::pending().await;
        }
        result
    }
}

#[async_trait::async_trait]
impl Bus for DyingBus {
    async fn publish(&self, queue: &Queue, message: &Message) -> Result<(), BusError> {
        self.used(self.inner.publish(queue, message)).await
    }

    async fn consume(&self, queue: &Queue, prefetch: u16) -> Result<Deliveries, BusError> {
        let mut deliveries = self.inner.consume(queue, prefetch).await?;
        let (sender, receiver) = mpsc::channel(usize::from(prefetch));
        let dead = self.dead.clone();
        tokio::spawn(async move {
            loop {
                let delivery = tokio::select! {
                    () = dead.cancelled() => return,
                    delivery = deliveries.recv() => delivery,
                };
                let Some(delivery) = delivery else { return };
                if sender.send(delivery).await.is_err() {
                    return;
                }
            }
        });
        Ok(receiver)
    }

    async fn request(
        &self,
        queue: &Queue,
        message: &Message,
        timeout: Duration,
    ) -> Result<Message, BusError> {
        self.used(self.inner.request(queue, message, timeout)).await
    }

    async fn respond(&self, to: &ReplyTo, request: &Message, answer: &Message) -> Result<(), BusError> {
        self.used(self.inner.respond(to, request, answer)).await
    }

    fn began(&self) -> Option<tokio::time::Instant> {
        self.inner.began()
    }

    async fn queue_load(&self, queue: &Queue) -> Result<Option<QueueLoad>, BusError> {
        self.used(self.inner.queue_load(queue)).await
    }

    async fn health(&self) -> Result<(), BusError> {
        self.inner.health().await
    }

    fn dead_letter_box(&self) -> Option<&dyn DeadLetters> {
        self.inner.dead_letter_box()
    }

    async fn close(&self) {
        self.inner.close().await;
    }
}
