//! What is known of the queues of tasks: those that move, where a task waits for its turn, those in which none waits, and whether the
//! broker is there at all.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use chrono::TimeDelta;
use parking_lot::{Mutex, MutexGuard};
use ringfence_bus::{Queue, QueueLoad};
use ringfence_core::{Attempt, AttemptStatus, Claim, HostState, Queues, TaskQueue, TaskStatus, Timestamp};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Engine;
use crate::pause::pause;

/// A queue from which no worker has taken anything for so long does not move.
const MOVES_FOR: Duration = Duration::from_secs(30);

/// How often the broker is looked after.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often queues are looked into in which a task may wait.
const LOOK_INTO_EVERY: Duration = Duration::from_secs(5);
/// A queue may hold an unclaimed task for so long after one was sent to it, or was seen to wait.
const LOOKED_INTO_FOR: Duration = Duration::from_secs(60);
/// What was seen of a queue is known for so long.
const SEEN_FOR: Duration = Duration::from_secs(10);
/// Queues that are looked into at most.
const MAX_LOOKED_INTO: usize = 256;
/// When the broker is back, workers need some time to find out; what waits for them may wait so much longer.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(30);

/// What this process knows of the queues.
#[derive(Debug, Default)]
pub(crate) struct TaskQueues {
    /// When each has last moved.
    moved: Mutex<HashMap<TaskQueue, Instant>>,
    /// When a task was last known to be on its way in each.
    awaited: Mutex<HashMap<TaskQueue, Instant>>,
    /// When each was last seen to be served and empty.
    empty: Mutex<HashMap<TaskQueue, Instant>>,
    /// When the broker was last seen away.
    away_at: Mutex<Option<Instant>>,
}

/// Looks after the broker until it is told to stop.
pub(crate) async fn watch_broker(engine: Engine, stop: CancellationToken) {
    while pause(&stop, LOOK_EVERY).await {
        if engine.0.bus.health().await.is_err() {
            *lock(&engine.0.task_queues.away_at) = Some(Instant::now());
        }
    }
}

/// Looks into the queues in which tasks may wait, until it is told to stop: whether they still do.
pub(crate) async fn look_into_queues(engine: Engine, stop: CancellationToken) {
    while pause(&stop, LOOK_INTO_EVERY).await {
        for task_queue in engine.0.task_queues.awaited() {
            let queue = Queue::Tasks {
                resource: task_queue.resource,
                zone: task_queue.zone.clone(),
            };
            let load = engine.0.bus.queue_load(&queue).await;
            engine.0.task_queues.seen(task_queue, load.ok().flatten());
        }
    }
}

impl TaskQueues {
    /// A worker has claimed what it took from its queue. `state` is the host as the claim has left it.
    pub fn moved(&self, state: &HostState, claim: &Claim) {
        let live = state.operation.as_ref();
        let found = live.and_then(|live| {
            let (task, attempt) = live.find(claim.attempt)?;
            live.queue_of(task, attempt)
        });
        if let Some(task_queue) = found {
            lock(&self.moved).insert(task_queue, Instant::now());
        }
    }

    /// The unclaimed tasks of a host wait in their queues.
    pub fn wait(&self, state: &HostState) {
        let Some(live) = &state.operation else { return };
        let running = live.tasks().filter(|task| task.status == TaskStatus::Running);
        for task in running {
            let is_unclaimed = |a: &&Attempt| matches!(a.state, AttemptStatus::Dispatched { .. });
            for task_queue in task
                .attempts
                .iter()
                .filter(is_unclaimed)
                .filter_map(|attempt| live.queue_of(task, attempt))
            {
                lock(&self.awaited).insert(task_queue, Instant::now());
            }
        }
    }

    /// Those that move, the others are forgotten, and those that are empty; or that the broker is away, or was a moment ago. `began` is
    /// when a bus began that began empty.
    pub fn queues(&self, began: Option<Instant>, now: Timestamp) -> Queues {
        let away_at = *lock(&self.away_at);
        if away_at.is_some_and(|at| at.elapsed() < COMES_BACK_WITHIN) {
            return Queues::Away;
        }
        Queues::There {
            moving: newer(&self.moved, MOVES_FOR),
            empty: newer(&self.empty, SEEN_FOR),
            began_at: began.and_then(|began| Some(now - TimeDelta::from_std(began.elapsed()).ok()?)),
        }
    }

    fn awaited(&self) -> Vec<TaskQueue> {
        newer(&self.awaited, LOOKED_INTO_FOR)
            .into_iter()
            .take(MAX_LOOKED_INTO)
            .collect()
    }

    fn seen(&self, task_queue: TaskQueue, load: Option<QueueLoad>) {
        let is_empty = load.is_some_and(|load| load.messages == 0 && load.consumers > 0);
        let mut empty = lock(&self.empty);
        if is_empty {
            empty.insert(task_queue, Instant::now());
        } else {
            empty.remove(&task_queue);
        }
    }
}

/// The queues about which something is known that is no older than that; the others are forgotten.
fn newer(known: &Mutex<HashMap<TaskQueue, Instant>>, than: Duration) -> BTreeSet<TaskQueue> {
    let mut known = lock(known);
    known.retain(|_, at| at.elapsed() < than);
    known.keys().cloned().collect()
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock()
}
