//! Publishes what was committed.
//!
//! The engine that commits a message publishes it at once, without a look at the table; the row is there for the case that this process dies
//! or the broker is away, and is removed a little later together with others.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::poll;
use ringfence_bus::{Audience, Bus, BusError, Keys, Queue, TaskMessage, Trace};
use ringfence_core::{Dispatch, Resource, Timestamp, error_chain};
use ringfence_db::{Database, OutboxRow};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::field::{Empty, display};
use tracing::{Instrument, Span};
use uuid::Uuid;

use crate::clock::Clock;
use crate::ids::new_id;
use crate::warnings::{UNROUTABLE, Warnings};
use crate::{Engine, EngineError};

/// For so long after the commit only the process that wrote a message publishes it.
pub(crate) const HEAD_START: TimeDelta = TimeDelta::milliseconds(2_000);
/// After a failure a message is left alone for so long.
const PAUSE_AFTER_FAILURE: TimeDelta = TimeDelta::milliseconds(500);
/// While the broker is away, no worker could have claimed an attempt: a message stays good for so long after each try.
const KEPT_FOR_THE_BROKER: TimeDelta = TimeDelta::seconds(30);
/// Messages that one sweep takes.
const SWEPT_AT_ONCE: u32 = 256;
/// Published messages whose rows are removed together.
const CLEARED_AT_ONCE: usize = 256;
/// Published messages whose rows wait to be removed; beyond that the sweep finds them, and they are published twice, which does no harm.
const CLEAR_QUEUE: usize = 65_536;
/// How long rows of published messages wait for company.
const CLEAR_EVERY: Duration = Duration::from_millis(100);

/// A message on its way.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub id: Uuid,
    pub task: TaskMessage,
    pub trace: Option<String>,
    pub claim_by: Timestamp,
}

impl Outgoing {
    pub fn new(dispatch: Dispatch) -> Self {
        Self {
            id: new_id(),
            trace: Some(Trace::of(dispatch.attempt).to_string()),
            claim_by: dispatch.claim_by,
            task: TaskMessage {
                host_id: dispatch.host_id,
                host: dispatch.host,
                attempt: dispatch.attempt,
                generation: dispatch.generation,
                job: dispatch.job,
            },
        }
    }

    /// The trace that the message carries: its span is the first try to publish it.
    fn trace(&self) -> Trace {
        let carried = self.trace.as_deref().and_then(Trace::parse);
        carried.unwrap_or_else(|| Trace::of(self.task.attempt))
    }

    /// The first try, by the one who decided it.
    fn first(&self, decided: &Span) -> Span {
        let span = self.span(decided);
        span.record("span_id", display(self.trace().span_id()));
        span
    }

    /// A later try, by any engine that finds the row.
    fn again(&self) -> Span {
        let span = self.span(&Span::none());
        span.record("parent_id", display(self.trace().span_id()));
        span
    }

    fn span(&self, around: &Span) -> Span {
        let task = &self.task;
        tracing::error_span!(
            parent: around,
            "publish",
            trace_id = %self.trace().id(),
            span_id = Empty,
            parent_id = Empty,
            operation_id = %task.attempt.operation_id,
            attempt = task.attempt.number,
            host = task.host,
            generation = task.generation.0,
            task = %task.job.kind(),
            resource = task.job.kind().resource().as_str(),
            zone = task.job.zone(),
            method = task.job.by(),
        )
    }

    fn queue(&self) -> Queue {
        Queue::Tasks {
            resource: self.task.job.kind().resource(),
            zone: self.task.job.zone().to_owned(),
        }
    }
}

/// Publishes messages and remembers which rows can go.
#[derive(Clone)]
pub(crate) struct Relay {
    db: Database,
    bus: Arc<dyn Bus>,
    keys: Keys,
    clock: Clock,
    warnings: Arc<Warnings>,
    published: mpsc::Sender<Uuid>,
    to_clear: Arc<tokio::sync::Mutex<mpsc::Receiver<Uuid>>>,
}

impl Relay {
    pub fn new(db: Database, bus: Arc<dyn Bus>, keys: Keys, clock: Clock) -> Self {
        let (published, to_clear) = mpsc::channel(CLEAR_QUEUE);
        Self {
            db,
            bus,
            keys,
            clock,
            warnings: Arc::default(),
            published,
            to_clear: Arc::new(tokio::sync::Mutex::new(to_clear)),
        }
    }

    /// Publishes on behalf of the decision whose span is given, in the background; a failure leaves the row for the sweep. A decision
    /// that was alone has all its messages on their way when this returns: for many, that would hold up those who wait behind them.
    pub async fn send(&self, outgoing: Vec<Outgoing>, decided: &Span, is_alone: bool) {
        for message in outgoing {
            let relay = self.clone();
            let span = message.first(decided);
            let publishing = async move {
                // It is told, and the sweep finds the row.
                let _ = relay.publish(&message).await;
            };
            let mut publishing = Box::pin(publishing.instrument(span));
            if !is_alone || poll!(&mut publishing).is_pending() {
                tokio::spawn(publishing);
            }
        }
    }

    async fn publish(&self, message: &Outgoing) -> Result<(), BusError> {
        let published = self.try_publish(message).await;
        if let Err(error) = &published {
            let job = &message.task.job;
            self.tell(job.kind().resource().as_str(), job.zone(), error).await;
        }
        published
    }

    async fn try_publish(&self, message: &Outgoing) -> Result<(), BusError> {
        let queue = message.queue();
        let mut sealed = self
            .keys
            .seal(message.id, &Audience::Queue(queue.clone()), &message.task)?;
        sealed.trace.clone_from(&message.trace);
        self.bus.publish(&queue, &sealed).await?;
        tracing::debug!(outcome = "published", "a task was published");
        // A full queue costs a second delivery, not a message.
        let _ = self.published.try_send(message.id);
        Ok(())
    }

    /// Publishes what others have left behind; returns how many messages it took.
    pub async fn sweep(&self) -> Result<usize, EngineError> {
        let now = self.clock.now();
        let rows = ringfence_db::take_outbox(&self.db, now, now + HEAD_START, SWEPT_AT_ONCE).await?;
        let taken = rows.len();
        let mut gone = Vec::new();
        let (mut failed, mut kept) = (Vec::new(), Vec::new());
        for row in rows {
            match self.republish(&row, now).await {
                Ok(()) => gone.push(row.id),
                Err(error) => {
                    failed.push(row.id);
                    if matches!(error, BusError::Unavailable { .. }) {
                        kept.push(row.id);
                    }
                }
            }
        }
        if !gone.is_empty() {
            ringfence_db::delete_outbox(&mut self.db.reader(), gone).await?;
        }
        if !failed.is_empty() {
            ringfence_db::postpone_outbox(&mut self.db.reader(), failed, now + PAUSE_AFTER_FAILURE).await?;
        }
        if !kept.is_empty() {
            let until = now + KEPT_FOR_THE_BROKER;
            ringfence_db::prolong_outbox(&mut self.db.reader(), kept, until).await?;
        }
        Ok(taken)
    }

    /// A message whose attempt no worker may claim any more is dropped: the attempt has been given up by its own time.
    async fn republish(&self, row: &OutboxRow, now: Timestamp) -> Result<(), BusError> {
        if row.expires_at <= now {
            return Ok(());
        }
        let task = match task_in(row) {
            Ok(task) => task,
            Err(error) => {
                self.tell(&row.resource, &row.zone, &error).await;
                return Err(error);
            }
        };
        let outgoing = Outgoing {
            id: row.id,
            task,
            trace: row.trace.clone(),
            claim_by: row.expires_at,
        };
        self.publish(&outgoing).instrument(outgoing.again()).await
    }

    /// Says that a task could not be published: once a minute in a warning with the number of those that wait, for many may fail at once.
    async fn tell(&self, resource: &str, zone: &str, error: &BusError) {
        let outcome = outcome(error);
        let error = error_chain(error);
        if !self.warnings.is_due(outcome, resource, zone, Instant::now()) {
            tracing::debug!(outcome, resource, zone, error, "a task could not be published");
            return;
        }
        let waiting = ringfence_db::count_outbox(&mut self.db.reader()).await.ok();
        tracing::warn!(
            outcome,
            resource,
            zone,
            error,
            waiting,
            "tasks cannot be published; each is tried again for as long as it may be claimed"
        );
    }
}

fn task_in(row: &OutboxRow) -> Result<TaskMessage, BusError> {
    let unreadable = |source| BusError::Unreadable {
        kind: "outbox".to_owned(),
        wanted: "task",
        source,
    };
    let is_known = Resource::ALL
        .iter()
        .any(|resource| resource.as_str() == row.resource);
    if !is_known {
        return Err(unreadable(None));
    }
    serde_json::from_value(row.payload.clone()).map_err(|e| unreadable(Some(e)))
}

/// A broker returns a message that no queue takes; the error tells everything else.
fn outcome(error: &BusError) -> &'static str {
    if matches!(error, BusError::Unroutable { .. }) {
        UNROUTABLE
    } else {
        "failed"
    }
}

/// Removes the rows of published messages, many at a time.
pub(crate) async fn clear(engine: Engine, stop: CancellationToken) {
    let relay = engine.0.relay.clone();
    let mut to_clear = relay.to_clear.lock().await;
    let mut ids = Vec::new();
    loop {
        let stopping = tokio::select! {
            () = stop.cancelled() => true,
            () = tokio::time::sleep(CLEAR_EVERY) => false,
        };
        while let Ok(id) = to_clear.try_recv() {
            ids.push(id);
            if ids.len() == CLEARED_AT_ONCE {
                remove(&relay.db, &mut ids).await;
            }
        }
        remove(&relay.db, &mut ids).await;
        if stopping {
            return;
        }
    }
}

async fn remove(db: &Database, ids: &mut Vec<Uuid>) {
    let ids = std::mem::take(ids);
    if ids.is_empty() {
        return;
    }
    if let Err(error) = ringfence_db::delete_outbox(&mut db.reader(), ids).await {
        tracing::warn!(error = %error_chain(&error), "published messages stay in the outbox and will be published again");
    }
}
