//! The events that come, each with what the log says of it.
//!
//! Behind one event that is not taken any number of others can have been delivered, so that the log is read piece by piece, as the
//! events come up. A task of its own reads: what a slow database has begun to answer is not asked for anew because something else had
//! to be done meanwhile.

use std::collections::VecDeque;
use std::time::Duration;

use ringfence_core::SubscriptionId;
use ringfence_db::DeliveryRow;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::feed::{FeedItem, Listener};
use crate::{Engine, EngineError};

/// Rows of the log that are read at once.
const ROWS_AT_ONCE: u32 = 500;
/// Events that are ready to be taken in.
const READY: usize = 16;
/// The pause before a database that failed is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// An event, with its row in the log if it was begun before.
pub(super) type Come = (FeedItem, Option<DeliveryRow>);

/// The events of a subscription that is held, in order.
pub(super) struct Coming {
    ready: mpsc::Receiver<Result<Come, EngineError>>,
    /// Ends with this.
    _reading: JoinSet<()>,
}

impl Coming {
    pub fn after(engine: &Engine, subscription_id: SubscriptionId, after: u64) -> Self {
        let reading = Reading {
            listener: engine.listen(after, None),
            log: Log {
                engine: engine.clone(),
                subscription_id,
                rows: VecDeque::new(),
                read_up_to: after,
            },
            unmatched: None,
        };
        let (to, ready) = mpsc::channel(READY);
        let mut tasks = JoinSet::new();
        tasks.spawn(reading.run(to));
        Self {
            ready,
            _reading: tasks,
        }
    }

    /// The next event. After an error the next call goes on where it was; `None` if the reader has ended, which it never should.
    pub async fn next(&mut self) -> Option<Result<Come, EngineError>> {
        self.ready.recv().await
    }
}

struct Reading {
    listener: Listener,
    log: Log,
    /// An event whose row could not be read yet.
    unmatched: Option<FeedItem>,
}

impl Reading {
    async fn run(mut self, to: mpsc::Sender<Result<Come, EngineError>>) {
        loop {
            let come = self.next().await;
            let is_error = come.is_err();
            if to.send(come).await.is_err() {
                return;
            }
            if is_error {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    async fn next(&mut self) -> Result<Come, EngineError> {
        let item = match self.unmatched.take() {
            Some(item) => item,
            None => self.listener.next().await?,
        };
        match self.log.row_of(item.sequence).await {
            Ok(row) => Ok((item, row)),
            Err(error) => {
                self.unmatched = Some(item);
                Err(error)
            }
        }
    }
}

/// What was begun before the subscription was taken. No other engine adds to it while it is held, and what its holder adds is of events
/// that have come up already.
struct Log {
    engine: Engine,
    subscription_id: SubscriptionId,
    /// Read and not asked for yet, by number.
    rows: VecDeque<DeliveryRow>,
    /// All rows of events with a number up to this one were read.
    read_up_to: u64,
}

impl Log {
    /// The row of an event. Events are asked for in their order.
    async fn row_of(&mut self, sequence: u64) -> Result<Option<DeliveryRow>, EngineError> {
        if sequence > self.read_up_to {
            self.read(sequence).await?;
        }
        while self.rows.front().is_some_and(|row| row.sequence < Some(sequence)) {
            self.rows.pop_front();
        }
        let is_known = self
            .rows
            .front()
            .is_some_and(|row| row.sequence == Some(sequence));
        Ok(if is_known { self.rows.pop_front() } else { None })
    }

    async fn read(&mut self, from: u64) -> Result<(), EngineError> {
        let mut reader = self.engine.0.db.reader();
        let before = from.saturating_sub(1);
        let rows =
            ringfence_db::deliveries_after(&mut reader, self.subscription_id, before, ROWS_AT_ONCE).await?;
        let is_all = rows.len() < ROWS_AT_ONCE as usize;
        let last = rows.last().and_then(|row| row.sequence);
        self.read_up_to = last.filter(|_| !is_all).unwrap_or(u64::MAX);
        self.rows = rows.into();
        Ok(())
    }
}
