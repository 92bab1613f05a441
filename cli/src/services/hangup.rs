//! Rereading files on SIGHUP.

use tokio::signal::unix::{SignalKind, signal};

use crate::error::CliError;

/// Calls `act` at each SIGHUP, as long as the process lives.
pub fn on_signal(act: impl Fn() + Send + 'static) -> Result<(), CliError> {
    let mut hangup = signal(SignalKind::hangup())
        .map_err(|error| CliError::service("signals", "cannot be listened to", error))?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            tracing::info!("reading files again (SIGHUP)");
            act();
        }
    });
    Ok(())
}
