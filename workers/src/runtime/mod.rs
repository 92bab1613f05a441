//! The worker itself: takes tasks from the bus, claims, acts within the granted time, reports, and only then lets the task go.

mod attempt;
mod claim;
mod config;
mod context;
mod device;
mod exported;
mod kdump;
mod locks;
mod metrics;
mod result;
mod serve;
mod task;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::registry::Registry;
use ringfence_bus::{Bus, Keys, Queue};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::{Drivers, WorkerError};

pub use config::WorkerConfig;
pub use metrics::MetricsSnapshot;

use context::Context;

/// Makes an id that was never used before.
pub type NewId = Arc<dyn Fn() -> Uuid + Send + Sync>;

/// Starts workers.
pub struct Worker;

impl Worker {
    /// Begins to serve. Fails only if the settings are unusable: a bus that is not there is tried again until it is.
    ///
    /// Must be called within a Tokio runtime.
    pub fn start(
        config: WorkerConfig,
        bus: Arc<dyn Bus>,
        keys: Keys,
        drivers: Drivers,
        new_id: NewId,
    ) -> Result<WorkerHandle, WorkerError> {
        config.check()?;
        let queues = config.queues();
        let listener = config.kdump_listen.map(kdump::Listener::bind).transpose()?;
        let kdump_address = listener.as_ref().map(kdump::Listener::address);
        let context = Arc::new(Context::new(config, bus, keys, drivers, new_id));
        let serving = TaskTracker::new();
        for queue in queues {
            let context = Arc::clone(&context);
            serving.spawn(async move {
                match &queue {
                    Queue::Devices { .. } => serve::serve(context, queue, device::handle).await,
                    _ => serve::serve(context, queue, task::handle).await,
                }
            });
        }
        if let Some(listener) = listener {
            serving.spawn(listener.run(Arc::clone(&context)));
        }
        serving.close();
        Ok(WorkerHandle {
            context,
            serving,
            kdump_address,
        })
    }
}

/// A worker at work. Dropping the handle does not stop it; [`WorkerHandle::shutdown`] does.
pub struct WorkerHandle {
    context: Arc<Context>,
    serving: TaskTracker,
    kdump_address: Option<SocketAddr>,
}

impl WorkerHandle {
    /// What it has counted since it started.
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        self.context.metrics.snapshot()
    }

    /// Where it listens for kdump messages, if it does.
    #[must_use]
    pub fn kdump_address(&self) -> Option<SocketAddr> {
        self.kdump_address
    }

    /// Puts its numbers where Prometheus reads them.
    pub fn register_metrics(&self, registry: &mut Registry) {
        exported::register(&self.context, registry);
    }

    /// Takes no new tasks, returns unclaimed ones to the broker, and lets claimed attempts end and report. After `grace`, stops their
    /// drivers, reports them as unknown, and waits for that as long again.
    pub async fn shutdown(self, grace: Duration) {
        self.context.stop.cancel();
        if timeout(grace, self.ended()).await.is_err() {
            self.context.stop_drivers.cancel();
            if timeout(grace, self.ended()).await.is_err() {
                tracing::warn!(
                    worker = self.context.config.name,
                    "gave up waiting for attempts to end"
                );
            }
        }
    }

    async fn ended(&self) {
        self.serving.wait().await;
        self.context.deliveries.close();
        self.context.deliveries.wait().await;
    }

    /// Stops at once, as a crash would: nothing is reported, and what was delivered goes back to the bus.
    pub fn abandon(self) {
        self.context.killed.cancel();
        self.context.stop.cancel();
    }
}

/// Ends together with `token`; `None` if the token came first.
pub(crate) async fn unless<T>(token: &CancellationToken, work: impl Future<Output = T>) -> Option<T> {
    token.run_until_cancelled(work).await
}
