//! What all tasks of one worker share.

use std::sync::Arc;

use ringfence_bus::{Audience, Bus, BusError, Keys, Message, Payload};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::NewId;
use super::config::WorkerConfig;
use super::locks::DeviceLocks;
use super::metrics::Metrics;
use crate::Drivers;

/// Questions that are answered at a time. They have places of their own, so that no number of them keeps a fence waiting.
const CONCURRENT_QUESTIONS: usize = 16;

pub(super) struct Context {
    pub config: WorkerConfig,
    pub bus: Arc<dyn Bus>,
    pub keys: Keys,
    pub drivers: Drivers,
    pub new_id: NewId,
    pub metrics: Metrics,
    pub locks: DeviceLocks,
    /// Places for attempts that act.
    pub acting: Arc<Semaphore>,
    /// Places for questions that are being answered.
    pub answering: Semaphore,
    /// What was delivered and is not settled.
    pub deliveries: TaskTracker,
    /// Nothing new is begun.
    pub stop: CancellationToken,
    /// What is under way is stopped and reported.
    pub stop_drivers: CancellationToken,
    /// Everything is dropped where it stands.
    pub killed: CancellationToken,
}

impl Context {
    pub(super) fn new(
        config: WorkerConfig,
        bus: Arc<dyn Bus>,
        keys: Keys,
        drivers: Drivers,
        new_id: NewId,
    ) -> Self {
        Self {
            acting: Arc::new(Semaphore::new(config.concurrency)),
            config,
            bus,
            keys,
            drivers,
            new_id,
            metrics: Metrics::default(),
            locks: DeviceLocks::default(),
            answering: Semaphore::new(CONCURRENT_QUESTIONS),
            deliveries: TaskTracker::new(),
            stop: CancellationToken::new(),
            stop_drivers: CancellationToken::new(),
            killed: CancellationToken::new(),
        }
    }

    /// Attempts that act at this moment.
    pub(super) fn acting_now(&self) -> u64 {
        let idle = self.acting.available_permits();
        self.config.concurrency.saturating_sub(idle) as u64
    }

    /// A signed message in the trace of the message that led to it.
    pub(super) fn seal<P: Payload>(
        &self,
        audience: &Audience,
        payload: &P,
        trace: Option<&str>,
    ) -> Result<Message, BusError> {
        let mut message = self.keys.seal((self.new_id)(), audience, payload)?;
        message.trace = trace.map(str::to_owned);
        Ok(message)
    }

    /// Reads a message, and counts one that cannot be believed.
    pub(super) fn open<P: Payload>(&self, audience: &Audience, message: &Message) -> Result<P, BusError> {
        self.keys.open(audience, message).inspect_err(|error| {
            self.metrics.count_bad_message(error);
            // The message's own words are not repeated: a forger may have written them.
            tracing::warn!(message = %message.id, bytes = message.body.len(), "a message was refused unread or unreadable");
        })
    }
}
