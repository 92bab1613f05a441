//! Fences in a real Kubernetes: from a node's death to its pods elsewhere, compared with the bare calls of the API.
//!
//! The cluster is the newest that can be built on any machine, a 1.20. It does not know the taint `out-of-service`: Ringfence and
//! the floor both delete pods by force and remove attachments.

mod cluster;
mod crowd;
mod following;
mod member;
mod removal;
mod watch;

use ringfence_tests::{Ground, tell};

use self::cluster::Cluster;
use super::Case;
use crate::error::BenchError;
use crate::report::{Report, ground_name};

const NAME: &str = "kubernetes";

/// Measures on one ground.
pub async fn measure(case: &Case, ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    if !Cluster::is_possible() {
        report.skip(NAME, no_kubernetes(ground));
        return Ok(());
    }
    tell("a member of a set whose node dies");
    Box::pin(member::measure(case, ground, report)).await?;
    tell("nodes with many pods, and many nodes");
    Box::pin(removal::measure(ground, report)).await
}

/// Measures the watch of a large cluster on one ground.
pub async fn measure_watch(ground: Ground, report: &mut Report) -> Result<(), BenchError> {
    if !Cluster::is_possible() {
        report.skip(watch::NAME, no_kubernetes(ground));
        return Ok(());
    }
    Box::pin(watch::measure(ground, report)).await
}

fn no_kubernetes(ground: Ground) -> String {
    format!("there is no Kubernetes to measure on ({})", ground_name(ground))
}
