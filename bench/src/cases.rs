//! The cases of the benchmark.

pub mod fence;
pub mod gates;
pub mod hook;
pub mod instant;
pub mod kubernetes;
pub mod observe;
pub mod recover;
pub mod start;
pub mod storm;
pub mod stream;

use std::time::Instant;

use crate::plant::Plant;

/// How much a run measures.
pub struct Case {
    /// Measurements of one figure.
    pub samples: usize,
    /// Whether the long figures are taken too.
    pub is_full: bool,
}

fn ms(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// A request that reads and writes nothing, in milliseconds.
async fn request_alone(plant: &Plant) -> f64 {
    let begun = Instant::now();
    plant.client.get("/").await.ok(200);
    ms(begun)
}
