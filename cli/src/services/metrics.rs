//! `/metrics` of services without an API, where `metrics.listen` is set.

use ringfence_api::MetricsListener;
use ringfence_engine::Exposition;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::listen;
use crate::config::Settings;
use crate::error::CliError;

/// Refuses an address that cannot be listened on.
pub fn check(settings: &Settings) -> Result<(), CliError> {
    let listen = settings.metrics.listen;
    listen.map_or(Ok(()), |listen| listen::check("metrics.listen", listen))
}

/// Begins to serve metrics, if an address is configured; the caller waits for the returned task after `stop`.
pub fn serve(
    service: &'static str,
    settings: &Settings,
    stop: &CancellationToken,
    exposition: impl FnOnce() -> Exposition,
) -> Result<TaskTracker, CliError> {
    let serving = TaskTracker::new();
    if let Some(listen) = settings.metrics.listen {
        let listener = MetricsListener::build(listen, exposition())
            .map_err(|e| CliError::service(service, "cannot serve its metrics", e))?;
        tracing::info!(address = %listener.address(), "the metrics listen");
        let stop = stop.clone();
        serving.spawn(async move {
            if let Err(error) = listener.run(stop).await {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "the metrics are not served"
                );
            }
        });
    }
    serving.close();
    Ok(serving)
}
