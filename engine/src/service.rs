//! An engine and its loops.

use std::sync::Arc;
use std::time::Duration;

use ringfence_backends::{Platform, Records};
use ringfence_bus::{Bus, Keys};
use ringfence_core::Catalogue;
use ringfence_db::Database;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::checks::{CheckConfig, Unserved};
use crate::clock::{Clock, ClockSource};
use crate::commit::RequestQueue;
use crate::event_sink::{self, EventSink};
use crate::feed::Feed;
use crate::known_plans::KnownPlans;
use crate::metrics::Metrics;
use crate::observer::{self, ObserverConfig};
use crate::opinions::{self, Asking};
use crate::records::RecordBook;
use crate::relay::Relay;
use crate::retention::RetentionConfig;
use crate::task_queues::{self, TaskQueues};
use crate::waker::Waker;
use crate::webhooks::{WebhookConfig, Webhooks};
use crate::writes::{self, Writes};
use crate::{
    EngineError, checks, heartbeats, intake, kdump, moves, reconcile, retention, services, sight, webhooks,
};

/// How an engine works. The defaults suit both one machine and many.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The engine's name, for logs and the audit trail.
    pub name: String,
    /// Between two looks for hosts that time has made due.
    pub tick_every: Duration,
    /// Between two looks for messages that were committed and not published.
    pub sweep_every: Duration,
    /// Unsettled claims, and unsettled results, that are taken from the bus at once.
    pub prefetch: u16,
    /// How webhooks are called.
    pub webhooks: WebhookConfig,
    /// How devices are checked.
    pub checks: CheckConfig,
    /// How long things are kept.
    pub retention: RetentionConfig,
    /// The platforms, and how their hosts are watched.
    pub platforms: Vec<(Arc<dyn Platform>, ObserverConfig)>,
    /// Where the records of hosts outlive the database, if they have to.
    pub records: Option<Arc<dyn Records>>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            name: "engine".to_owned(),
            tick_every: Duration::from_millis(200),
            sweep_every: Duration::from_millis(500),
            prefetch: 64,
            webhooks: WebhookConfig::default(),
            checks: CheckConfig::default(),
            retention: RetentionConfig::default(),
            platforms: Vec::new(),
            records: None,
        }
    }
}

/// What an engine is made of.
pub struct Parts {
    /// The database, with this build's schema.
    pub db: Database,
    /// The bus.
    pub bus: Arc<dyn Bus>,
    /// The keys that messages are signed with.
    pub keys: Keys,
    /// Where the time comes from.
    pub clock: ClockSource,
    /// The drivers that methods may name.
    pub drivers: Catalogue,
}

/// The only way to change anything. Clones share it.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub db: Database,
    pub bus: Arc<dyn Bus>,
    pub keys: Keys,
    pub drivers: Catalogue,
    pub clock: Clock,
    pub config: EngineConfig,
    pub relay: Relay,
    pub feed: Feed,
    /// Requests that wait for a transaction.
    pub queue: RequestQueue,
    pub task_queues: TaskQueues,
    pub writes: Writes,
    /// Something that has to be numbered was committed.
    pub events_written: Notify,
    /// When this engine knows a host to be due.
    pub waker: Waker,
    pub metrics: Metrics,
    pub webhooks: Webhooks,
    pub unserved: Unserved,
    pub known_plans: KnownPlans,
    pub asking: Asking,
    pub kdump: kdump::Known,
    pub counted: sight::Counted,
    pub records: Option<RecordBook>,
    /// Tells it from all others, also from one with an equal name.
    pub id: String,
}

impl Engine {
    /// Makes an engine; its loops do not run yet.
    pub async fn new(parts: Parts, config: EngineConfig) -> Result<Self, EngineError> {
        let clock = Clock::start(parts.clock, &parts.db).await?;
        let relay = Relay::new(
            parts.db.clone(),
            Arc::clone(&parts.bus),
            parts.keys.clone(),
            clock.clone(),
        );
        let feed = Feed::new();
        let webhooks = Webhooks::new(&config.webhooks)?;
        let id = format!("{} {}", config.name, Uuid::new_v4());
        let records = config.records.clone().map(RecordBook::new);
        Ok(Self(Arc::new(Shared {
            queue: RequestQueue::new(parts.db.is_sqlite()),
            task_queues: TaskQueues::default(),
            writes: Writes::default(),
            db: parts.db,
            bus: parts.bus,
            keys: parts.keys,
            metrics: Metrics::new(&parts.drivers),
            drivers: parts.drivers,
            clock,
            config,
            relay,
            feed,
            waker: Waker::default(),
            events_written: Notify::new(),
            webhooks,
            unserved: Unserved::default(),
            known_plans: KnownPlans::default(),
            asking: Asking::new(),
            kdump: kdump::Known::default(),
            counted: sight::Counted::default(),
            records,
            id,
        })))
    }

    /// The database, to read.
    #[must_use]
    pub fn db(&self) -> &Database {
        &self.0.db
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// The drivers that methods may name.
    #[must_use]
    pub fn drivers(&self) -> &Catalogue {
        &self.0.drivers
    }

    /// New events as they are numbered.
    #[must_use]
    pub fn feed(&self) -> &Feed {
        &self.0.feed
    }

    /// Whether the bus can be used.
    pub async fn bus_health(&self) -> Result<(), EngineError> {
        Ok(self.0.bus.health().await?)
    }

    /// Starts the loops that every process that changes anything needs: the time, publishing, and following the events.
    #[must_use]
    pub fn start_writer(&self) -> Running {
        let mut running = Running::new();
        self.spawn_writer(&mut running);
        running
    }

    /// Starts all loops: those of [`Self::start_writer`], and timers, claims and results.
    #[must_use]
    pub fn start(&self) -> Running {
        let mut running = Running::new();
        self.spawn_writer(&mut running);
        running.run(self, intake::claims);
        running.run(self, intake::results);
        running.run(self, kdump::messages);
        running.run(self, reconcile::tick);
        running.run(self, task_queues::watch_broker);
        running.run(self, task_queues::look_into_queues);
        running.run(self, reconcile::find_stranded);
        running.run(self, moves::run);
        running.run(self, reconcile::forget_keys);
        running.run(self, webhooks::work);
        running.run(self, webhooks::answer_asked);
        running.run(self, checks::run);
        running.run(self, heartbeats::run);
        running.run(self, retention::run);
        running.run(self, services::tell);
        for (platform, config) in &self.0.config.platforms {
            let (platform, config) = (Arc::clone(platform), config.clone());
            running.run(self, |engine, stop| {
                observer::watch(engine, platform, config, stop)
            });
        }
        running
    }

    fn spawn_writer(&self, running: &mut Running) {
        running.run(self, reconcile::follow_clock);
        running.run(self, writes::watch);
        running.run(self, reconcile::sweep_outbox);
        running.run(self, reconcile::number_events);
        running.run(self, crate::feed::follow);
        running.run(self, crate::feed::listen);
        running.run(self, crate::relay::clear);
        running.run(self, opinions::ask);
    }
}

/// Loops that run until they are stopped.
pub struct Running {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Running {
    fn new() -> Self {
        Self {
            stop: CancellationToken::new(),
            tasks: JoinSet::new(),
        }
    }

    /// Runs a loop of the engine.
    fn run<F>(&mut self, engine: &Engine, work: impl FnOnce(Engine, CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.tasks.spawn(work(engine.clone(), self.stop.clone()));
    }

    /// Tells an event sink of every event as well.
    pub fn tell(&mut self, engine: &Engine, event_sink: EventSink) {
        self.run(engine, |engine, stop| event_sink::tell(engine, event_sink, stop));
    }

    /// Lets each loop finish what it is at, and waits for it.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}
