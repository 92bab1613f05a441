//! Which engines run, and which queues workers serve.

use std::time::Duration;

use chrono::TimeDelta;
use ringfence_bus::{Queue, QueueLoad};
use ringfence_core::{TaskQueue, error_chain};
use ringfence_db::EngineRow;
use tokio_util::sync::CancellationToken;

use crate::pause::pause;
use crate::{Engine, EngineError};

/// How often an engine says that it runs.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// An engine that says nothing for so long is forgotten.
const REMEMBERED_FOR: TimeDelta = TimeDelta::hours(24);
/// Engines, and queues, that are shown at most.
const MOST_SHOWN: u32 = 256;

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services {
    /// The engines of the last day, by name.
    pub engines: Vec<EngineRow>,
    /// The queues that tasks can go to, by zone. `None`: the broker does not tell, or no worker was ever there.
    pub queues: Vec<(TaskQueue, Option<QueueLoad>)>,
}

/// Says that this engine runs, until it is told to stop.
pub(crate) async fn tell(engine: Engine, stop: CancellationToken) {
    loop {
        if let Err(error) = tell_once(&engine).await {
            tracing::debug!(error = %error_chain(&error), "it could not be told that the engine runs");
        }
        if !pause(&stop, TELL_EVERY).await {
            return;
        }
    }
}

async fn tell_once(engine: &Engine) -> Result<(), EngineError> {
    let shared = &engine.0;
    let now = shared.clock.now();
    let row = EngineRow {
        id: shared.id.clone(),
        name: shared.config.name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        seen_at: now,
    };
    let mut run = shared.db.reader();
    ringfence_db::save_engine(&mut run, &row).await?;
    ringfence_db::forget_engines(&mut run, now - REMEMBERED_FOR).await?;
    Ok(())
}

impl Engine {
    /// What runs now.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn services(&self) -> Result<Services, EngineError> {
        let mut run = self.0.db.reader();
        let engines = ringfence_db::list_engines(&mut run, MOST_SHOWN).await?;
        let mut queues = Vec::new();
        for task_queue in ringfence_db::task_queues(&mut run, MOST_SHOWN).await? {
            let queue = Queue::Tasks {
                resource: task_queue.resource,
                zone: task_queue.zone.clone(),
            };
            let load = self.0.bus.queue_load(&queue).await;
            queues.push((task_queue, load.ok().flatten()));
        }
        Ok(Services { engines, queues })
    }
}
