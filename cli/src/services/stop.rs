//! An orderly stop on SIGINT and SIGTERM.

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::CliError;

/// A token that SIGINT or SIGTERM cancels.
pub fn on_signal() -> Result<CancellationToken, CliError> {
    let fault = |error| CliError::service("signals", "cannot be listened to", error);
    let mut interrupt = signal(SignalKind::interrupt()).map_err(fault)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(fault)?;
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => tracing::info!("stopping (SIGINT)"),
            _ = terminate.recv() => tracing::info!("stopping (SIGTERM)"),
        }
        stopped.cancel();
    });
    Ok(stop)
}
