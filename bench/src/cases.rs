//! What is measured.

pub mod fence;
pub mod gates;
pub mod instant;
pub mod start;
pub mod storm;
pub mod stream;

use std::time::{Duration, Instant};

use crate::error::BenchError;
use crate::listener::Listener;
use crate::plant::Plant;

/// How much is measured.
pub struct Case {
    /// Measurements of one thing.
    pub samples: usize,
    /// Whether the long ones are taken too.
    pub is_full: bool,
}

/// How long an event may take that follows a change at once.
const PATIENCE: Duration = Duration::from_secs(60);

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// From the answer to a change of the host `beside`, which is given after the commit, to its event: milliseconds. Each call needs
/// another number than the one before.
async fn stream_alone(plant: &Plant, number: usize, listener: &mut Listener) -> Result<f64, BenchError> {
    let state = ["UNREACHABLE", "UNKNOWN"][number % 2];
    plant.client.seen("beside", state).await.ok(200);
    let answered = Instant::now();
    let heard = listener.until("host.failure_state", "beside", PATIENCE).await?;
    Ok(heard.at.saturating_duration_since(answered).as_secs_f64() * 1000.0)
}
