//! The wait of a loop.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// Waits; `false` if the loop has to stop.
pub(crate) async fn pause(stop: &CancellationToken, time: Duration) -> bool {
    tokio::select! {
        () = stop.cancelled() => false,
        () = tokio::time::sleep(time) => true,
    }
}
