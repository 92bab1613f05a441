//! The bus of standalone: queues in memory, which follow the rules of the broker's queues.
//!
//! It is lost with the process, which is no loss: the database knows what has to be done, and a new start publishes it again.

mod dead;
mod memory_queue;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::RwLock;
use tokio::time::{Instant, timeout_at};

use self::dead::Dead;
use self::memory_queue::{Entry, MemoryQueue};
use crate::questions::Questions;
use crate::wire::check_size;
use crate::{Bus, BusError, DeadLetter, DeadLetters, Deliveries, Message, Queue, ReplyTo, Survey};

/// All questions go through one bus, so that an answer needs no other address than the id of its question.
const HERE: &str = "in-process";

/// A bus within one process. Clones share the bus.
#[derive(Clone)]
pub struct InProcessBus(Arc<Inner>);

struct Inner {
    began: Instant,
    queues: RwLock<HashMap<Queue, Arc<MemoryQueue>>>,
    dead: Arc<Dead>,
    questions: Questions,
    closed: AtomicBool,
}

impl Default for InProcessBus {
    fn default() -> Self {
        Self::new()
    }
}

impl InProcessBus {
    /// An empty bus.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(Inner {
            began: Instant::now(),
            queues: RwLock::default(),
            dead: Arc::default(),
            questions: Questions::default(),
            closed: AtomicBool::default(),
        }))
    }

    fn ensure_open(&self) -> Result<(), BusError> {
        if self.0.closed.load(Ordering::Acquire) {
            return Err(BusError::Closed);
        }
        Ok(())
    }

    fn line(&self, queue: &Queue) -> Result<Arc<MemoryQueue>, BusError> {
        self.ensure_open()?;
        let queues = self.0.queues.read();
        queues.get(queue).cloned().ok_or_else(|| BusError::Unroutable {
            queue: queue.to_string(),
        })
    }

    fn queue_or_new(&self, queue: &Queue) -> Arc<MemoryQueue> {
        let mut queues = self.0.queues.write();
        let new = || Arc::new(MemoryQueue::new(queue.to_string(), self.0.dead.clone()));
        queues.entry(queue.clone()).or_insert_with(new).clone()
    }
}

#[async_trait]
impl Bus for InProcessBus {
    async fn publish(&self, queue: &Queue, message: &Message) -> Result<(), BusError> {
        check_size(message.body.len())?;
        self.line(queue)?.put(Entry::new(message))
    }

    async fn consume(&self, queue: &Queue, prefetch: u16) -> Result<Deliveries, BusError> {
        self.ensure_open()?;
        let deliveries = self.queue_or_new(queue).serve(prefetch);
        if self.ensure_open().is_err() {
            self.close().await;
        }
        Ok(deliveries)
    }

    async fn request(
        &self,
        queue: &Queue,
        message: &Message,
        timeout: Duration,
    ) -> Result<Message, BusError> {
        check_size(message.body.len())?;
        let deadline = Instant::now() + timeout;
        let line = self.line(queue)?;
        let mut question = self.0.questions.ask(message.id)?;
        line.put(Entry::question(message, ReplyTo(HERE.to_owned()), deadline))?;
        match timeout_at(deadline, question.answered()).await {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(BusError::Closed),
            Err(_) => Err(BusError::NoAnswer {
                queue: queue.to_string(),
                waited: timeout,
            }),
        }
    }

    async fn respond(&self, _to: &ReplyTo, request: &Message, answer: &Message) -> Result<(), BusError> {
        check_size(answer.body.len())?;
        self.ensure_open()?;
        if !self.0.questions.answer(request.id, answer.clone()) {
            tracing::debug!(question = %request.id, "no caller waits for this answer any more");
        }
        Ok(())
    }

    async fn health(&self) -> Result<(), BusError> {
        self.ensure_open()
    }

    fn began(&self) -> Option<Instant> {
        Some(self.0.began)
    }

    fn dead_letter_box(&self) -> Option<&dyn DeadLetters> {
        Some(self)
    }

    async fn close(&self) {
        self.0.closed.store(true, Ordering::Release);
        let queues: Vec<_> = self.0.queues.read().values().cloned().collect();
        queues.iter().for_each(|line| line.close());
        self.0.questions.give_up();
    }
}

#[async_trait]
impl DeadLetters for InProcessBus {
    async fn dead_letter_count(&self) -> Result<u64, BusError> {
        Ok(self.0.dead.count())
    }

    async fn dead_letters(&self, limit: u16) -> Result<Vec<DeadLetter>, BusError> {
        Ok(self.0.dead.oldest(limit))
    }

    async fn survey_dead_letters(&self, limit: u16) -> Result<Survey, BusError> {
        Ok(self.0.dead.survey(limit))
    }

    async fn remove_dead_letters(&self, queue: Option<&str>) -> Result<u64, BusError> {
        Ok(self.0.dead.remove(queue))
    }
}
