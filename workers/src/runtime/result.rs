//! Saying how an attempt ended, until the bus has it.

use std::time::Duration;

use ringfence_bus::{Audience, BusError, Queue};
use ringfence_core::TaskResult;
use tokio::time::{Instant, sleep};

use super::context::Context;
use super::metrics::Metrics;
use super::unless;

/// How long a result is worth delivering. The engine has given the attempt up long before.
const WORTH: Duration = Duration::from_secs(600);
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

/// Publishes until it is confirmed. `false` if it never was.
pub(super) async fn publish(context: &Context, result: &TaskResult, trace: &str) -> bool {
    let until = Instant::now() + WORTH;
    let mut pause = PAUSE.0;
    loop {
        match publish_once(context, result, trace).await {
            Ok(()) => return true,
            Err(error) => {
                tracing::warn!(%error, "a result could not be published; trying again");
            }
        }
        if Instant::now() + pause >= until || unless(&context.stop_drivers, sleep(pause)).await.is_none() {
            Metrics::count(&context.metrics.results_lost);
            return false;
        }
        pause = (pause * 2).min(PAUSE.1);
    }
}

async fn publish_once(context: &Context, result: &TaskResult, trace: &str) -> Result<(), BusError> {
    let message = context.seal(&Audience::Queue(Queue::Results), result, Some(trace))?;
    context.bus.publish(&Queue::Results, &message).await
}
