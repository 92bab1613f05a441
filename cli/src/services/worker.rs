//! `ringfence worker`.

use std::sync::Arc;
use std::time::Duration;

use ringfence_bus::Bus;
use ringfence_engine::Exposition;
use tokio_util::sync::CancellationToken;

use super::{metrics, parts, stop};
use crate::config::Settings;
use crate::error::CliError;
use crate::traces;

/// How long claimed attempts may go on when the worker is told to stop.
const GRACE: Duration = Duration::from_secs(30);

/// Between two checks whether the broker can be reached.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Runs until the process is told to stop.
pub async fn run(settings: Settings) -> Result<(), CliError> {
    let stop = stop::on_signal()?;
    metrics::check(&settings)?;
    let keys = parts::keys(&settings)?;
    let bus = parts::broker("worker", &settings.worker.name, &settings)?;
    let worker = parts::worker(
        &settings,
        Arc::clone(&bus),
        keys,
        settings.worker.simulator_url.clone(),
    )?;
    let metrics = metrics::serve("worker", &settings, &stop, || {
        let mut exposition = Exposition::new(None);
        worker.register_metrics(exposition.registry());
        traces::register_metrics(exposition.registry());
        exposition
    })?;
    if is_there(&*bus, &stop).await {
        tracing::info!(
            worker = settings.worker.name,
            zones = settings.worker.zones.join(","),
            "the worker serves"
        );
    }
    stop.cancelled().await;
    worker.shutdown(GRACE).await;
    metrics.wait().await;
    Ok(())
}

/// Waits for the broker, without which nothing can be served. `false` if the worker is told to stop first.
async fn is_there(bus: &dyn Bus, stop: &CancellationToken) -> bool {
    while bus.health().await.is_err() {
        tokio::select! {
            () = stop.cancelled() => return false,
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
    !stop.is_cancelled()
}
