//! `ringfence worker`.

use std::time::Duration;

use ringfence_engine::Exposition;

use super::{metrics, parts, stop};
use crate::config::Settings;
use crate::error::CliError;
use crate::traces;

/// How long attempts that were claimed may go on when the worker is told to stop.
const GRACE: Duration = Duration::from_secs(30);

/// Runs until it is told to stop.
pub async fn run(settings: Settings) -> Result<(), CliError> {
    let stop = stop::on_signal()?;
    let keys = parts::keys(&settings)?;
    let bus = parts::broker("worker", &settings.worker.name, &settings)?;
    let worker = parts::worker(&settings, bus, keys, settings.worker.simulator_url.clone())?;
    let metrics = metrics::serve("worker", &settings, &stop, || {
        let mut exposition = Exposition::new(None);
        worker.register_metrics(exposition.registry());
        traces::register_metrics(exposition.registry());
        exposition
    })?;
    tracing::info!(
        worker = settings.worker.name,
        zones = settings.worker.zones.join(","),
        "the worker serves"
    );
    stop.cancelled().await;
    worker.shutdown(GRACE).await;
    metrics.wait().await;
    Ok(())
}
